//! The slots of a Cluster move from node to node, that of the Location Stores, that of a project, and those of blobs.

use std::time::Duration;

use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{Cluster, ClusterSettings};

use crate::rig::{for_parties, turn};

async fn slots_move_under_load(party: Party) {
    let _turn = turn().await;
    let cluster = Cluster::with(ClusterSettings { replicas: 0, ..ClusterSettings::default() }).expect("servers");
    let plan = Plan { timeout: Duration::from_secs(20), ..Plan::of(party) };
    let mut load = Load::open(&cluster.url(), plan).await;
    load.start();
    load.goes_on(200).await;
    for _ in 0..2 * rounds() {
        let mut slots = vec![cluster.slot("{load}"), cluster.slot("zlink-project{4:acme:load}:x")];
        let manifests = (0..3).flat_map(|node| cluster.node(node).say(&["KEYS", "{load:*}:b"]).items().to_vec());
        slots.extend(manifests.map(|manifest| cluster.slot(&manifest.text())));
        for slot in slots {
            tokio::task::block_in_place(|| {
                let from = cluster.owner(slot);
                let to = (from + 1) % 3;
                cluster.begin_move(slot, to);
                while cluster.move_keys(slot, from, to, 3) > 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                cluster.end_move(slot, from, to);
            });
            load.goes_on(20).await;
        }
    }
    load.goes_on(200).await;
    load.finish("slots that move").await;
}

for_parties!([core Core, node Node] [slots_move_under_load]);
