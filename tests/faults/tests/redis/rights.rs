//! A user with the rights that docs/operations.md names, and no others.

use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};
use zlink_test_servers::{RedisServer, Settings, Value};

use crate::rig::{for_parties, turn};

const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
/// The key prefix on that page.
const APP: &str = "app";

async fn the_least_rights_are_enough_under_load(party: Party) {
    let _turn = turn().await;
    let block = OPERATIONS.split_once("```acl").and_then(|(_, block)| block.split_once("```"));
    let words = block.expect("the rules").0.split_whitespace().filter(|word| word.starts_with(['~', '&', '+']));
    let rules: Vec<&str> = words.chain([">password"]).collect();
    let users = vec![(APP.to_owned(), rules.join(" "))];
    let server = RedisServer::with(Settings { users, ..Settings::default() }).expect("servers");
    let url = format!("redis://{APP}:password@127.0.0.1:{}", server.port());
    let mut load = Load::open(&url, Plan { name: APP, ..Plan::of(party) }).await;
    load.start();
    for _ in 0..rounds() {
        load.goes_on(1_000).await;
        // Scripts are sent whole then.
        server.say(&["SCRIPT", "FLUSH"]);
    }
    load.finish("a user with the least rights").await;
    // What the page says that nobody needs.
    let optional = ["info", "client|setname"];
    for denied in server.say(&["ACL", "LOG"]).items() {
        let fields: Vec<String> = denied.items().iter().map(Value::text).collect();
        let object = fields.iter().skip_while(|field| *field != "object").nth(1).expect("what was denied");
        assert!(optional.contains(&&object[..]), "{fields:?}");
    }
}

for_parties!([core Core, node Node] [the_least_rights_are_enough_under_load]);
