//! The server is made a replica while its connections stay open.

use std::time::Duration;

use zlink_store::Code;
use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Proxy, RedisServer, Settings};

use crate::rig::{for_parties, server, turn};

/// A replica of nobody that answers reads and refuses writes.
async fn demoted(server: &RedisServer, time: Duration) {
    server.say(&["REPLICAOF", "127.0.0.1", "1"]);
    tokio::time::sleep(time).await;
    server.say(&["REPLICAOF", "NO", "ONE"]);
}

async fn a_demotion_is_waited_out(party: Party) {
    let _turn = turn().await;
    let server = server();
    let mut load = Load::open(&server.url(), Plan::of(party)).await;
    load.start();
    for _ in 0..2 * rounds() {
        load.goes_on(200).await;
        demoted(&server, Duration::from_secs(2)).await;
    }
    load.goes_on(200).await;
    load.finish("READONLY for 2 s").await;
}

async fn a_demotion_that_is_longer_than_the_timeout_ends_in_errors(party: Party) {
    let _turn = turn().await;
    let server = server();
    let plan = Plan { timeout: Duration::from_millis(300), allowed: &[Code::Unavailable, Code::Timeout], ..Plan::of(party) };
    let mut load = Load::open(&server.url(), plan).await;
    load.start();
    for _ in 0..2 * rounds() {
        load.goes_on(200).await;
        demoted(&server, Duration::from_secs(2)).await;
        load.works().await;
    }
    let counts = load.finish("READONLY for 2 s, timeout of 0.3 s").await;
    assert!(counts.errors["UNAVAILABLE"] > 20, "{counts:?}");
    // READONLY says that nothing was done, and whoever was told so is told that; only a request that was on its way when its
    // time was up cannot know.
    assert!(counts.unknown_errors.keys().all(|code| *code == "TIMEOUT"), "{counts:?}");
}

async fn roles_are_swapped_behind_one_address(party: Party) {
    let _turn = turn().await;
    let first = server();
    let second = RedisServer::with(Settings { replica_of: Some(first.port()), ..Settings::default() }).expect("servers");
    let proxy = Proxy::to(first.port()).expect("a proxy");
    let mut load = Load::open(&proxy.url(), Plan::of(party)).await;
    load.start();
    let (mut primary, mut replica) = (&first, &second);
    for _ in 0..3 * rounds() {
        load.goes_on(200).await;
        in_step(primary).await;
        replica.say(&["REPLICAOF", "NO", "ONE"]);
        proxy.retarget(replica.port());
        primary.say(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
        primary.say(&["CLIENT", "UNPAUSE"]);
        std::mem::swap(&mut primary, &mut replica);
    }
    load.goes_on(200).await;
    load.finish("roles swapped").await;
}

/// Holds all writes back until the replica has everything, so that a swap of roles loses nothing.
async fn in_step(primary: &RedisServer) {
    let line = |info: &str, name: &str| {
        let value = info.lines().find_map(|line| line.split_once(name)).map(|(_, value)| value.to_owned());
        value.map(|value| value.chars().take_while(char::is_ascii_digit).collect::<String>())
    };
    primary.say(&["CLIENT", "PAUSE", "20000", "WRITE"]);
    for _ in 0..2_000 {
        let info = primary.say(&["INFO", "replication"]).text();
        if info.contains("state=online") && line(&info, "offset=") == line(&info, "master_repl_offset:") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the replica does not catch up");
}

for_parties!([core Core, node Node] [
    a_demotion_is_waited_out,
    a_demotion_that_is_longer_than_the_timeout_ends_in_errors,
    roles_are_swapped_behind_one_address,
]);
