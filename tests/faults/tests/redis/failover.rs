//! The primary is killed, and a replica promoted: by sentinels, and by a Cluster. Every commit is acknowledged by all replicas,
//! so nothing that was acknowledged may be lost.

use std::time::Duration;

use zlink_store::Code;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Cluster, ClusterSettings, SentinelSettings, SentinelTrio};

use crate::rig::turn;

/// What the clients of a primary that is gone are told.
const FAILOVER: &[Code] = &[Code::Unavailable, Code::Timeout];

fn plan() -> Plan {
    Plan { allowed: FAILOVER, ..Plan::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn sentinels_promote_a_replica_under_load() {
    let _turn = turn().await;
    let settings = SentinelSettings { replicas: 1, ..SentinelSettings::default() };
    let mut trio = SentinelTrio::with(settings).unwrap();
    let mut load = Load::open(&format!("{}?min_acked_replicas=1", trio.url()), plan()).await;
    load.start();
    for _ in 0..2 * rounds() {
        load.goes_on(200).await;
        let old = trio.primary();
        trio.servers()[old].kill().unwrap();
        tokio::task::block_in_place(|| {
            trio.promoted(old);
            trio.servers()[old].restart().unwrap();
            trio.in_step(1);
        });
        back_within_five_seconds(&load).await;
    }
    load.goes_on(200).await;
    let counts = load.finish("failover by sentinels").await;
    assert!(counts.unknown > 0, "no round met a write under way: {counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_cluster_promotes_a_replica_under_load() {
    let _turn = turn().await;
    let mut cluster = Cluster::with(ClusterSettings::default()).unwrap();
    let mut load = Load::open(&format!("{}?min_acked_replicas=1", cluster.url()), plan()).await;
    load.start();
    let slot = cluster.slot("{load}");
    for _ in 0..2 * rounds() {
        load.goes_on(200).await;
        let old = cluster.owner(slot);
        cluster.nodes()[old].kill().unwrap();
        tokio::task::block_in_place(|| {
            cluster.promoted(slot, old);
            cluster.nodes()[old].restart().unwrap();
            cluster.settled().unwrap();
        });
        back_within_five_seconds(&load).await;
    }
    load.goes_on(200).await;
    let counts = load.finish("failover in a Cluster").await;
    assert!(counts.unknown > 0, "no round met a write under way: {counts:?}");
}

/// As docs/operations.md states it.
async fn back_within_five_seconds(load: &Load) {
    tokio::time::timeout(Duration::from_secs(5), load.goes_on(1)).await.expect("a commit within 5 s");
}
