//! Long random sequences of operations, each answer compared with a plain model: one test for each engine and seed.
//!
//! `ZLINK_MODEL_SEEDS` is how many seeds (or a list such as `7,9`), `ZLINK_MODEL_STEPS` how many steps each. A failure prints
//! both, so that it can be run again, and the steps that had to do with it.

use std::sync::Arc;
use std::{env, io};

use libtest_mimic::{Arguments, Failed, Trial};
use zlink_test_conformance::model::{Choices, Driver};
use zlink_test_conformance::place::{Engine, Places};

/// A short run; the full one is 20 seeds of 5,000 steps.
const SEEDS: u64 = 4;
const STEPS: usize = 1_000;

fn main() -> io::Result<()> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(4);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?);
    let places = Arc::new(Places::default());
    let steps = number("ZLINK_MODEL_STEPS").unwrap_or(STEPS);
    let mut trials = Vec::new();
    for engine in Engine::ALL {
        for seed in seeds() {
            let (runtime, places) = (Arc::clone(&runtime), Arc::clone(&places));
            trials.push(Trial::test(format!("{engine}/seed-{seed}"), move || {
                let place = places.new_place(engine)?;
                runtime
                    .block_on(Driver::run(&place, Choices::of_seed(seed), steps))
                    .map_err(|said| Failed::from(format!("seed {seed}, {said}")))
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The servers end with their handle, which a plain exit would skip.
    drop(places);
    conclusion.exit()
}

fn seeds() -> Vec<u64> {
    match env::var("ZLINK_MODEL_SEEDS") {
        Ok(list) if list.contains(',') => list.split(',').filter_map(|seed| seed.trim().parse().ok()).collect(),
        _ => (1..=number("ZLINK_MODEL_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}
