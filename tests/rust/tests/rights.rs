//! The scenarios on Redis, as a user who may do what docs/operations.md says that a store needs, and nothing else.

use std::io;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use zlink_test_conformance::place::{Engine, Places};
use zlink_test_conformance::scenario::{run, scenarios};

const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// Scenarios wait more than they work.
const AT_ONCE: usize = 12;

fn main() -> io::Result<()> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?);
    let places = Arc::new(Places::start_with_rights(&rules().join(" "))?);
    let mut trials = Vec::new();
    // Not those that name key prefixes of their own: the user may not touch them.
    for scenario in
        scenarios()?.into_iter().filter(|scenario| !Value::from(scenario.steps.clone()).to_string().contains("exactPrefix"))
    {
        let (runtime, places) = (Arc::clone(&runtime), Arc::clone(&places));
        trials.push(Trial::test(format!("redis/{}", scenario.name), move || {
            let place = places.new_place(Engine::Redis)?;
            runtime.block_on(run(&scenario, &place, Engine::Redis.capabilities())).map_err(Failed::from)
        }));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The server ends with its handle, which a plain exit would skip.
    drop(places);
    conclusion.exit()
}

/// The rules of the page, for the key prefix `app`.
fn rules() -> Vec<&'static str> {
    let block = OPERATIONS.split_once("```acl").and_then(|(_, block)| block.split_once("```"));
    let words = block.map_or("", |(block, _)| block).split_whitespace();
    words.filter(|word| word.starts_with(['~', '&', '+'])).collect()
}
