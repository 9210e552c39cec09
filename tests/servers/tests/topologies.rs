//! Servers that belong together.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use zlink_test_servers::{Certificates, Cluster, ClusterSettings, SentinelSettings, SentinelTrio, User};

#[test]
fn sentinels_promote_a_replica() {
    let secret = |text: &str| Some(text.to_owned());
    let settings =
        SentinelSettings { password: secret("data"), sentinel_password: secret("watch"), ..SentinelSettings::default() };
    let mut trio = SentinelTrio::with(settings).unwrap();
    assert!(trio.url().starts_with("redis+sentinel://:data@127.0.0.1:"), "{}", trio.url());
    assert!(trio.url().ends_with("/mymaster?sentinel_password=watch"), "{}", trio.url());
    failover(&mut trio);
}

#[test]
fn sentinels_promote_a_replica_by_tls() {
    let user = |name: &str| Some(User { name: name.to_owned(), password: format!("{name}%"), rules: "~* +@all".to_owned() });
    let settings = SentinelSettings {
        tls: Some(Arc::new(Certificates::make().unwrap())),
        password: Some("data".to_owned()),
        user: user("app"),
        sentinel_password: Some("watch".to_owned()),
        sentinel_user: user("asks"),
        aof: true,
        ..SentinelSettings::default()
    };
    let mut trio = SentinelTrio::with(settings).unwrap();
    assert!(trio.url().starts_with("rediss+sentinel://app:app%25@127.0.0.1:"), "{}", trio.url());
    assert!(trio.url().contains("/mymaster?tls_ca=") && trio.url().contains("&tls_key="), "{}", trio.url());
    assert!(trio.url().ends_with("&sentinel_user=asks&sentinel_password=asks%25"), "{}", trio.url());
    failover(&mut trio);
}

fn failover(trio: &mut SentinelTrio) {
    trio.in_step(2);
    trio.servers()[0].kill().unwrap();
    let primary = trio.promoted(0);
    trio.servers()[0].restart().unwrap();
    assert_eq!(trio.primary(), primary);
}

#[test]
fn a_cluster_moves_slots_and_fails_over() {
    move_and_fail_over(&mut Cluster::with(ClusterSettings::default()).unwrap());
}

#[test]
fn a_cluster_moves_slots_and_fails_over_by_tls() {
    let settings = ClusterSettings {
        tls: Some(Arc::new(Certificates::make().unwrap())),
        password: Some("data".to_owned()),
        aof: true,
        ..ClusterSettings::default()
    };
    let mut cluster = Cluster::with(settings).unwrap();
    assert!(cluster.url().starts_with("rediss+cluster://:data@127.0.0.1:"), "{}", cluster.url());
    move_and_fail_over(&mut cluster);
}

fn move_and_fail_over(cluster: &mut Cluster) {
    let slot = cluster.slot("foo");
    assert_eq!((slot, cluster.owner(slot)), (12_182, 2));
    cluster.node(2).say(&["SET", "foo", "1"]);
    cluster.move_slot(slot, 0);
    assert_eq!(cluster.node(0).say(&["GET", "foo"]).text(), "1");
    assert!(cluster.node(2).say(&["GET", "foo"]).text().starts_with("MOVED"));
    cluster.nodes()[0].kill().unwrap();
    assert_eq!(cluster.promoted(slot, 0), 3);
}
