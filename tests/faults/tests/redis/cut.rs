//! The line is cut, at any request, at any byte.

use std::time::Duration;

use parking_lot::Mutex;
use zlink_store::Code;
use zlink_test_faults::party::Party;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Action, Proxy, Way};

use crate::left::each_value_has_its_expiry;
use crate::rig::{for_parties, long, server, turn_to_work};

const LOST: &[Code] = &[Code::Unavailable, Code::Timeout];

async fn cut_before_in_and_after_requests(party: Party) {
    let _turn = turn_to_work().await;
    let server = server();
    let proxy = Proxy::to(server.port()).expect("a proxy");
    let mut load = Load::open(&proxy.url(), Plan { allowed: LOST, ..Plan::of(party) }).await;
    load.start();
    load.goes_on(100).await;
    let random = Mutex::new(fastrand::Rng::with_seed(1));
    proxy.judge(move |_| match random.lock().u8(..150) {
        0 => Action::CutBefore,
        1 => Action::CutInside,
        2 => Action::CutAfter,
        3 => Action::DropReply,
        4 => Action::CutReply,
        _ => Action::Pass,
    });
    tokio::time::sleep(long(8)).await;
    proxy.pass();
    let counts = load.finish("cut before, in and after requests").await;
    assert!(counts.unknown > 20 && counts.acknowledged > 200, "{counts:?}");
    assert!(proxy.accepted() > 30, "only {} connections", proxy.accepted());
    each_value_has_its_expiry(&server);
}

async fn cut_at_random_bytes(party: Party) {
    let _turn = turn_to_work().await;
    let server = server();
    let proxy = Proxy::to(server.port()).expect("a proxy");
    let mut load = Load::open(&proxy.url(), Plan { allowed: LOST, ..Plan::of(party) }).await;
    load.start();
    load.goes_on(100).await;
    let mut random = fastrand::Rng::with_seed(2);
    let stop = tokio::time::sleep(long(8));
    tokio::pin!(stop);
    while !stop.is_elapsed() {
        let way = if random.bool() { Way::Requests } else { Way::Replies };
        let most = if random.bool() { 2_000 } else { 2_000_000 };
        proxy.cut_after(way, random.u64(1..most));
        tokio::select! {
            () = &mut stop => {}
            () = tokio::time::sleep(Duration::from_millis(random.u64(1..60))) => {}
        }
    }
    proxy.cut_after(Way::Requests, u64::MAX);
    proxy.cut_after(Way::Replies, u64::MAX);
    let counts = load.finish("cut at random bytes").await;
    assert!(counts.unknown > 20 && counts.acknowledged > 200, "{counts:?}");
    assert!(proxy.accepted() > 30, "only {} connections", proxy.accepted());
    each_value_has_its_expiry(&server);
}

for_parties!([core Core, node Node, java Java] [cut_before_in_and_after_requests, cut_at_random_bytes]);
