//! Silence: the server stands still, or the line swallows everything, and no connection is closed.

use std::time::Duration;

use zlink_store::{Code, Key};
use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::Proxy;

use crate::rig::{for_parties, server, turn};

fn impatient(party: Party) -> Plan {
    Plan { timeout: Duration::from_secs(1), allowed: &[Code::Timeout, Code::Unavailable], ..Plan::of(party) }
}

async fn the_server_stands_still_for_five_seconds(party: Party) {
    let _turn = turn().await;
    let server = server();
    let mut load = Load::open(&server.url(), impatient(party)).await;
    load.start();
    for _ in 0..rounds() {
        load.goes_on(300).await;
        server.pause().expect("the server does so");
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.resume().expect("the server does so");
        load.works().await;
    }
    load.goes_on(300).await;
    let counts = load.finish("5 s of silence").await;
    assert!(counts.errors["TIMEOUT"] > 50, "nobody waited");
}

async fn the_other_end_of_the_line_vanishes(party: Party) {
    let _turn = turn().await;
    let server = server();
    let proxy = Proxy::to(server.port()).expect("a proxy");
    let mut load = Load::open(&proxy.url(), impatient(party)).await;
    load.start();
    for _ in 0..2 * rounds() {
        load.goes_on(300).await;
        proxy.swallow();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        proxy.heal();
        // The connections that were open stay silent: everybody needs new ones, and finds out by at most one timeout for each.
        load.goes_on(300).await;
        load.tries().await;
        load.works().await;
    }
    let counts = load.finish("half-open connections").await;
    assert!(counts.errors["TIMEOUT"] > 10, "nobody waited");
}

async fn a_patient_caller_that_connects_into_silence_holds_up_nobody(party: Party) {
    let _turn = turn().await;
    let server = server();
    let proxy = Proxy::to(server.port()).expect("a proxy");
    let patient = party.location(&proxy.url(), "p", Duration::from_secs(60)).await;
    let other = party.location(&proxy.url(), "p", Duration::from_secs(10)).await;
    proxy.swallow();
    let waiting = tokio::spawn(patient.read(Key::new("a").expect("a legal key")));
    while proxy.accepted() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    proxy.heal();
    // Its attempt to connect stays silent for good, and both stores share their connections.
    other.read(Key::new("a").expect("a legal key")).await.expect("an answer");
    waiting.await.expect("an answer").expect("an answer");
}

for_parties!([core Core, node Node, java Java] [
    the_server_stands_still_for_five_seconds,
    the_other_end_of_the_line_vanishes,
    a_patient_caller_that_connects_into_silence_holds_up_nobody,
]);
