//! Every scenario of `tests/conformance` against every engine, and on every way to Redis: one test each, `engine/group/name`.
//!
//! With `ZLINK_SERVER=redis-6.2` or another name of `tests/tools/servers`, whose `redis-server` is the first in PATH: on that.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs, io};

use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;
use zlink_test_conformance::place::{Engine, Places};
use zlink_test_conformance::scenario::{run, scenarios};

/// Scenarios wait more than they work.
const AT_ONCE: usize = 32;

fn main() -> io::Result<()> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?);
    let places = Arc::new(Places::default());
    let executed = Arc::new(Mutex::new(BTreeSet::new()));
    let mut trials = Vec::new();
    let engines = engines();
    for &engine in &engines {
        for scenario in scenarios()? {
            let (runtime, places, executed) = (Arc::clone(&runtime), Arc::clone(&places), Arc::clone(&executed));
            trials.push(Trial::test(format!("{engine}/{}", scenario.name), move || {
                let place = places.new_place(engine)?;
                executed.lock().insert((engine.to_string(), scenario.name.clone()));
                let ended = runtime.block_on(run(&scenario, &place, engine.capabilities()));
                ended.map_err(Failed::from)
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    for engine in engines {
        write_list(engine, &executed.lock())?;
    }
    // The servers end with their handle, which a plain exit would skip.
    drop(places);
    conclusion.exit()
}

fn engines() -> Vec<Engine> {
    match env::var("ZLINK_SERVER") {
        Ok(server) => vec![Engine::Other(server.leak())],
        Err(_) => Engine::ALL.into_iter().chain(Engine::WAYS).collect(),
    }
}

/// What was executed, for `compare.mjs`, if it was everything.
fn write_list(engine: Engine, executed: &BTreeSet<(String, String)>) -> io::Result<()> {
    let of = engine.to_string();
    let names: Vec<&str> = executed.iter().filter(|(engine, _)| *engine == of).map(|(_, name)| name.as_str()).collect();
    if names.len() < scenarios()?.len() {
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("conformance");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("rust-{engine}.txt")), names.join("\n") + "\n")
}
