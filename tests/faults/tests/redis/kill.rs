//! kill -9 of a server that syncs every write, and its restart.

use std::time::Duration;

use zlink_store::Code;
use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{RedisServer, Settings};

use crate::rig::{durable_server, for_parties, turn};

async fn killed_and_restarted_under_load(party: Party) {
    let _turn = turn().await;
    let mut server = durable_server();
    let plan = Plan { allowed: &[Code::Unavailable, Code::Timeout], ..Plan::of(party) };
    let mut load = Load::open(&server.url(), plan).await;
    load.start();
    for round in 0..8 * rounds() {
        load.goes_on(200).await;
        server.kill().expect("the server does so");
        tokio::time::sleep(Duration::from_millis(u64::from(round % 3) * 150)).await;
        server.restart().expect("the server does so");
    }
    load.goes_on(200).await;
    let counts = load.finish("kill -9 of Redis").await;
    assert!(counts.unknown > 0, "no round met a write under way");
}

/// A server that is slow to load what it has, and says LOADING meanwhile.
async fn restarted_with_much_to_load(party: Party) {
    let _turn = turn().await;
    // Microseconds for each command of the log.
    let more = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"].map(str::to_owned).to_vec();
    let mut server = RedisServer::with(Settings { aof: true, more, ..Settings::default() }).expect("servers");
    let plan = Plan { allowed: &[Code::Unavailable, Code::Timeout], ..Plan::of(party) };
    let mut load = Load::open(&server.url(), plan).await;
    load.start();
    for _ in 0..rounds() {
        load.goes_on(1_000).await;
        server.kill().expect("the server does so");
        tokio::task::block_in_place(|| server.restart()).expect("the server does so");
        load.works().await;
        assert!(server.say(&["INFO", "errorstats"]).text().contains("errorstat_LOADING"), "nobody was told LOADING");
    }
    load.goes_on(200).await;
    load.finish("LOADING after a restart").await;
}

for_parties!([core Core, node Node, java Java] [killed_and_restarted_under_load, restarted_with_much_to_load]);
