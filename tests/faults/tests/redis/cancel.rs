//! Operations are dropped at random moments, a thousand of each kind, beside others that must not notice.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use zlink_store::{LocationStore, RelocationStore, ScanRequest};
use zlink_test_faults::drops::{blobs_have_all_their_room, drop_each_kind};
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Proxy, RedisServer};

use crate::left::nothing_stays;
use crate::rig::{options, server, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_thousand_of_each_kind_dropped() {
    let _turn = turn().await;
    let server = server();
    let proxy = Proxy::to(server.port()).unwrap();
    // Two sets of connections, of which the load's stores and those below share one.
    let mut load = Load::open(&proxy.url(), Plan { clients: 2, blob_clients: 1, ..Plan::default() }).await;
    load.start();
    load.goes_on(50).await;
    let url = format!("{}?client_name=one", proxy.url());
    let store = LocationStore::open(&url, options("cancel")).unwrap();
    let blobs = RelocationStore::open(&url, options("cancel")).unwrap();
    let connections = proxy.open();

    drop_each_kind(&store, &blobs).await;

    assert_eq!(proxy.open(), connections, "connections were lost or left behind");
    let counts = load.finish("operations dropped").await;
    assert!(counts.acknowledged > 100, "{counts:?}");
    pages_have_all_their_room(&store, &proxy, &server).await;
    blobs_have_all_their_room(&blobs).await;
    nothing_stays(&server, "cancel");
}

/// All that small operations may hold is free: of 4 MiB each, as many pages as that allows are under way at once.
async fn pages_have_all_their_room(store: &LocationStore, proxy: &Proxy, server: &RedisServer) {
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
