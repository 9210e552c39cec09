//! kill -9 of a server that syncs every write, and its restart.

use std::time::Duration;

use zlink_store::Code;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};

use crate::rig::{durable_server, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn killed_and_restarted_under_load() {
    let _turn = turn().await;
    let mut server = durable_server();
    let plan = Plan { allowed: &[Code::Unavailable, Code::Timeout], ..Plan::default() };
    let mut load = Load::open(&server.url(), plan).await;
    load.start();
    for round in 0..8 * rounds() {
        load.goes_on(200).await;
        server.kill().unwrap();
        tokio::time::sleep(Duration::from_millis(u64::from(round % 3) * 150)).await;
        server.restart().unwrap();
    }
    load.goes_on(200).await;
    let counts = load.finish("kill -9 of Redis").await;
    assert!(counts.unknown > 0, "no round met a write under way");
}
