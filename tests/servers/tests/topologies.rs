//! Servers that belong together.

use zlink_test_servers::{Cluster, ClusterSettings, SentinelSettings, SentinelTrio};

#[test]
fn sentinels_promote_a_replica() {
    let secret = |text: &str| Some(text.to_owned());
    let settings =
        SentinelSettings { password: secret("data"), sentinel_password: secret("watch"), ..SentinelSettings::default() };
    let mut trio = SentinelTrio::with(settings).unwrap();
    assert!(trio.url().starts_with("redis+sentinel://:data@127.0.0.1:"), "{}", trio.url());
    assert!(trio.url().ends_with("/mymaster?sentinel_password=watch"), "{}", trio.url());
    trio.in_step(2);
    trio.servers()[0].kill().unwrap();
    let primary = trio.promoted(0);
    trio.servers()[0].restart().unwrap();
    assert_eq!(trio.primary(), primary);
}

#[test]
fn a_cluster_moves_slots_and_fails_over() {
    let mut cluster = Cluster::with(ClusterSettings::default()).unwrap();
    let slot = cluster.slot("foo");
    assert_eq!((slot, cluster.owner(slot)), (12_182, 2));
    cluster.node(2).say(&["SET", "foo", "1"]);
    cluster.move_slot(slot, 0);
    assert_eq!(cluster.node(0).say(&["GET", "foo"]).text(), "1");
    assert!(cluster.node(2).say(&["GET", "foo"]).text().starts_with("MOVED"));
    cluster.nodes()[0].kill().unwrap();
    assert_eq!(cluster.promoted(slot, 0), 3);
}
