//! Operations are dropped at random moments, many of each kind (a thousand in the long form), beside others that must not notice.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use zlink_store::ScanRequest;
use zlink_test_faults::drops::{blobs_have_all_their_room, drop_each_kind, drop_each_kind_of_project};
use zlink_test_faults::party::{Location, Party, Relocation};
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Proxy, RedisServer};

use crate::left::nothing_stays;
use crate::rig::{OPERATION_TIMEOUT, for_parties, server, turn_to_work};

async fn many_of_each_kind_dropped(party: Party) {
    let _turn = turn_to_work().await;
    let server = server();
    let proxy = Proxy::to(server.port()).expect("a proxy");
    // Two sets of connections, of which the load's stores and those below share one.
    let mut load = Load::open(&proxy.url(), Plan { clients: 2, blob_clients: 1, project_clients: 1, ..Plan::of(party) }).await;
    load.start();
    load.goes_on(50).await;
    let url = format!("{}?client_name=one", proxy.url());
    let store = party.location(&url, "cancel", OPERATION_TIMEOUT).await;
    let blobs = party.relocation(&url, "cancel", OPERATION_TIMEOUT).await;
    let project = party.project(&url, "cancel", OPERATION_TIMEOUT).await;
    let connections = proxy.open();

    drop_each_kind(&store, &blobs).await;
    let other = party.project(&server.url(), "cancel", OPERATION_TIMEOUT).await;
    drop_each_kind_of_project(&project, &other).await;

    assert_eq!(proxy.open(), connections, "connections were lost or left behind");
    let counts = load.finish("operations cancelled at random").await;
    assert!(counts.acknowledged > 100, "{counts:?}");
    pages_have_all_their_room(&store, &proxy, &server).await;
    if let Relocation::Core(blobs) = &blobs {
        blobs_have_all_their_room(blobs).await;
    }
    nothing_stays(&server, "cancel");
}

/// All that small operations may hold is free: of 4 MiB each, as many pages as that allows are under way at once.
async fn pages_have_all_their_room(store: &Location, proxy: &Proxy, server: &RedisServer) {
    const PAGES: u64 = 32;
    let seen = proxy.seen("ZRANGEBYLEX");
    // Nobody is answered until all have asked.
    server.pause().expect("the server stands still");
    let scans = join_all((0..PAGES).map(|_| store.scan(ScanRequest::new("none", 10))));
    let all = async {
        while proxy.seen("ZRANGEBYLEX") < seen + PAGES {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let asked = async {
        let asked = timeout(Duration::from_secs(15), all).await;
        server.resume().expect("the server goes on");
        asked.expect("room for all pages at once");
    };
    let (pages, ()) = tokio::join!(scans, asked);
    pages.into_iter().for_each(|page| drop(page.expect("a page")));
}

for_parties!([core Core, node Node, java Java] [many_of_each_kind_dropped]);
