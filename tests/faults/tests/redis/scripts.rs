//! The server forgets its scripts again and again.

use std::time::Duration;

use tokio::time::{interval, timeout};
use zlink_test_faults::party::Party;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::Value;

use crate::rig::{for_parties, long, server, turn_to_work};

async fn scripts_are_flushed_in_a_loop(party: Party) {
    let _turn = turn_to_work().await;
    let server = server();
    let mut load = Load::open(&server.url(), Plan::of(party)).await;
    load.start();
    let mut talk = server.talk().expect("a connection");
    let mut every = interval(Duration::from_millis(5));
    let mut flushes = 0;
    let flushing = async {
        loop {
            every.tick().await;
            assert_eq!(talk.say(&["SCRIPT", "FLUSH"]).expect("an answer"), Value::Bytes(b"OK".to_vec()));
            flushes += 1;
        }
    };
    timeout(long(6), flushing).await.expect_err("a refusal");
    let counts = load.finish("SCRIPT FLUSH in a loop").await;
    assert!(flushes > 100 && counts.acknowledged > 300, "{flushes} flushes beside {counts:?}");
}

for_parties!([core Core, node Node] [scripts_are_flushed_in_a_loop]);
