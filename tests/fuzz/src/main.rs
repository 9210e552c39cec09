//! All fuzz targets in one program; `ZLINK_FUZZ_TARGET` says which one it runs.
#![no_main]

use std::cell::OnceCell;
use std::env;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use zlink_test_conformance::model::{Choices, Driver};
use zlink_test_conformance::place::Place;

/// More steps than an input has bytes for.
const STEPS: usize = 10_000;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(
    init: {
        let name = env::var("ZLINK_FUZZ_TARGET").unwrap_or_default();
        let mut targets = zlink_store::fuzz::TARGETS.into_iter().chain([("steps", steps as fn(&[u8]))]);
        let target = targets.find(|(known, _)| *known == name).map(|(_, target)| target);
        TARGET.set(target.unwrap_or_else(|| panic!("ZLINK_FUZZ_TARGET names no target: {name:?}"))).ok();
    },
    |data: &[u8]| TARGET.get().expect("set at the start")(data)
);

/// Steps that the bytes choose, on stores in memory; each answer is compared with the model.
fn steps(data: &[u8]) {
    thread_local!(static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() });
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| Builder::new_current_thread().build().expect("a runtime"));
        let place = Place::in_memory();
        if let Err(said) = runtime.block_on(Driver::run(&place, Choices::Given(data), STEPS)) {
            panic!("{said}");
        }
    });
}
