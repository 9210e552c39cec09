//! Every scenario of `tests/conformance` against every engine: one test each, `engine/group/name`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;
use zlink_test_conformance::place::{Engine, Places};
use zlink_test_conformance::scenario::{run, scenarios};

/// Scenarios wait more than they work.
const AT_ONCE: usize = 12;

fn main() -> io::Result<()> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?);
    let places = Arc::new(Places::start()?);
    let executed = Arc::new(Mutex::new(BTreeSet::new()));
    let mut trials = Vec::new();
    for engine in engines() {
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
    let everything = trials.len();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if executed.lock().len() == everything {
        write_lists(&executed.lock())?;
    }
    // The servers end with their handle, which a plain exit would skip.
    drop(places);
    conclusion.exit()
}

fn engines() -> impl Iterator<Item = Engine> {
    Engine::ALL.into_iter().chain(Engine::TOPOLOGIES)
}

/// What was executed, for `compare.mjs`.
fn write_lists(executed: &BTreeSet<(String, String)>) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("conformance");
    fs::create_dir_all(&folder)?;
    for engine in engines() {
        let engine = engine.to_string();
        let names: Vec<&str> = executed.iter().filter(|(of, _)| *of == engine).map(|(_, name)| name.as_str()).collect();
        fs::write(folder.join(format!("rust-{engine}.txt")), names.join("\n") + "\n")?;
    }
    Ok(())
}
