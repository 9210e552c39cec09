//! Somebody else's script blocks the server, which answers BUSY.

use std::time::Duration;

use zlink_store::Code;
use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{RedisServer, Value};

use crate::rig::{for_parties, server, turn};

const THREE_SECONDS: &str = "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end \
     local start = now() repeat until now() - start > 3000 return 1";

async fn block(server: &RedisServer) {
    let mut talk = server.talk().expect("a connection");
    let blocked = tokio::task::spawn_blocking(move || talk.say(&["EVAL", THREE_SECONDS, "0"]).expect("an answer"));
    assert_eq!(blocked.await.expect("an answer"), Value::Int(1), "the script was not let be");
}

async fn under_load(name: &str, plan: Plan) -> zlink_test_faults::verdict::Counts {
    let _turn = turn().await;
    let server = server();
    server.say(&["CONFIG", "SET", "busy-reply-threshold", "100"]);
    let mut load = Load::open(&server.url(), plan).await;
    load.start();
    for _ in 0..rounds() {
        load.goes_on(200).await;
        block(&server).await;
        load.works().await;
    }
    load.goes_on(200).await;
    let stats = server.say(&["INFO", "commandstats"]).text();
    assert!(!stats.contains("script|kill"), "somebody killed a script");
    assert!(server.say(&["INFO", "errorstats"]).text().contains("errorstat_BUSY"), "nobody was told BUSY");
    load.finish(name).await
}

async fn a_long_script_is_waited_for(party: Party) {
    under_load("BUSY for 3 s", Plan::of(party)).await;
}

async fn a_script_that_is_longer_than_the_timeout_ends_in_errors(party: Party) {
    let timeout = Duration::from_millis(300);
    let plan = Plan { timeout, allowed: &[Code::Timeout, Code::Unavailable], ..Plan::of(party) };
    let counts = under_load("BUSY for 3 s, timeout of 0.3 s", plan).await;
    assert!(counts.not_applied > 20, "{counts:?}");
}

for_parties!([core Core, node Node] [a_long_script_is_waited_for, a_script_that_is_longer_than_the_timeout_ends_in_errors]);
