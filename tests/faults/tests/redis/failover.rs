//! The primary is killed, and a replica promoted: by sentinels, and by a Cluster. Where all replicas acknowledge every commit, nothing
//! that was acknowledged may be lost; elsewhere only what the replica had not got.

use std::time::Duration;

use zlink_store::Code;
use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Cluster, RedisServer, SentinelTrio};

use crate::rig::{cluster, for_parties, trio, turn};

/// What the clients of a primary that is gone are told.
const FAILOVER: &[Code] = &[Code::Unavailable, Code::Timeout];

fn plan(party: Party) -> Plan {
    Plan { allowed: FAILOVER, ..Plan::of(party) }
}

async fn sentinels_promote_a_replica_under_load(party: Party) {
    let _turn = turn().await;
    let mut trio = trio();
    let mut load = Load::open(&format!("{}?min_acked_replicas=1", trio.url()), plan(party)).await;
    load.start();
    for _ in 0..2 * rounds() {
        load.goes_on(200).await;
        let old = trio.primary();
        trio.servers()[old].kill().expect("the server does so");
        a_replica_is_promoted(&mut trio, old, &load).await;
    }
    load.goes_on(200).await;
    let counts = load.finish("failover by sentinels").await;
    assert!(counts.unknown > 0, "no round met a write under way: {counts:?}");
}

async fn a_cluster_promotes_a_replica_under_load(party: Party) {
    let _turn = turn().await;
    let mut cluster = cluster();
    let mut load = Load::open(&format!("{}?min_acked_replicas=1", cluster.url()), plan(party)).await;
    load.start();
    let slot = cluster.slot("{load}");
    for _ in 0..2 * rounds() {
        load.goes_on(200).await;
        let old = cluster.owner(slot);
        cluster.nodes()[old].kill().expect("the server does so");
        a_node_is_promoted(&mut cluster, slot, old, &load).await;
    }
    load.goes_on(200).await;
    let counts = load.finish("failover in a Cluster").await;
    assert!(counts.unknown > 0, "no round met a write under way: {counts:?}");
}

/// Waits until `old` is replaced and there again, and until the load goes on.
async fn a_replica_is_promoted(trio: &mut SentinelTrio, old: usize, load: &Load) {
    tokio::task::block_in_place(|| {
        trio.promoted(old);
        trio.servers()[old].restart().expect("the server does so");
        trio.in_step(1);
    });
    back_within_five_seconds(load).await;
}

/// The same for the node that has `slot`.
async fn a_node_is_promoted(cluster: &mut Cluster, slot: u16, old: usize, load: &Load) {
    tokio::task::block_in_place(|| {
        cluster.promoted(slot, old);
        cluster.nodes()[old].restart().expect("the server does so");
        cluster.settled().expect("the server does so");
    });
    back_within_five_seconds(load).await;
}

/// As docs/operations.md states it.
async fn back_within_five_seconds(load: &Load) {
    tokio::time::timeout(Duration::from_secs(5), load.goes_on(1)).await.expect("a commit within 5 s");
}

/// Each failover has a load of its own: what one may lose is judged once.
const NAMES: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

async fn sentinels_promote_a_replica_that_lacks_the_last_writes(party: Party) {
    let _turn = turn().await;
    let mut trio = trio();
    for name in NAMES.into_iter().take(rounds() as usize) {
        let mut load = Load::open(&trio.url(), Plan { name, lease_ms: 10_000, ..plan(party) }).await;
        load.start();
        load.goes_on(200).await;
        let old = trio.primary();
        let begin = cut_replica_off(trio.server(old), &load).await;
        load.goes_on(100).await;
        trio.servers()[old].kill().expect("the server does so");
        load.may_lose(begin..=load.tick());
        a_replica_is_promoted(&mut trio, old, &load).await;
        load.goes_on(200).await;
        let counts = load.finish("failover by sentinels, without acknowledgements of replicas").await;
        assert!(counts.lost > 0, "nothing was lost, so nothing was shown: {counts:?}");
    }
}

async fn a_cluster_promotes_a_replica_that_lacks_the_last_writes(party: Party) {
    let _turn = turn().await;
    let mut cluster = cluster();
    for name in NAMES.into_iter().take(rounds() as usize) {
        let mut load = Load::open(&cluster.url(), Plan { name, lease_ms: 10_000, ..plan(party) }).await;
        load.start();
        let slot = cluster.slot(&format!("{{{name}}}"));
        load.goes_on(200).await;
        let old = cluster.owner(slot);
        let begin = cut_replica_off(cluster.node(old), &load).await;
        load.goes_on(100).await;
        cluster.nodes()[old].kill().expect("the server does so");
        load.may_lose(begin..=load.tick());
        a_node_is_promoted(&mut cluster, slot, old, &load).await;
        load.goes_on(200).await;
        let counts = load.finish("failover in a Cluster, without acknowledgements of replicas").await;
        assert!(counts.lost > 0, "nothing was lost, so nothing was shown: {counts:?}");
    }
}

/// From now on the replica gets nothing more, and nobody else notices. All that was acknowledged before the instant that comes back
/// is on the replica.
async fn cut_replica_off(primary: &RedisServer, load: &Load) -> u64 {
    let begin = load.tick();
    load.may_lose(begin..=u64::MAX);
    let number = |info: &str, name: &str| -> Option<u64> {
        let (_, rest) = info.split_once(name)?;
        rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
    };
    let info = || primary.say(&["INFO", "replication"]).text();
    let goal = number(&info(), "master_repl_offset:").expect("an offset");
    let there = async {
        while number(&info(), "offset=").is_none_or(|offset| offset < goal) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), there).await.expect("the replica follows");
    primary.say(&["ACL", "SETUSER", "default", "-psync", "-sync"]);
    primary.say(&["CLIENT", "KILL", "TYPE", "replica"]);
    begin
}

for_parties!([core Core, node Node, java Java] [
    sentinels_promote_a_replica_under_load,
    a_cluster_promotes_a_replica_under_load,
    sentinels_promote_a_replica_that_lacks_the_last_writes,
    a_cluster_promotes_a_replica_that_lacks_the_last_writes,
]);
