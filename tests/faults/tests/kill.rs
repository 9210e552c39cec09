//! A process that works on the file engine, on all four parts of it, is killed, again and again, sometimes while it opens the folder.
//!
//! 200 rounds in the long form; `ZLINK_KILL_ROUNDS` is another number of them.

use std::thread;
use std::time::Duration;

use zlink_test_faults::is_long;
use zlink_test_faults::ledger::Ledger;
use zlink_test_faults::process::Worker;
use zlink_test_faults::report::file_row;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crash-writer");

#[test]
fn nothing_acknowledged_is_lost_or_torn_when_the_process_is_killed() {
    let rounds: usize = std::env::var("ZLINK_KILL_ROUNDS")
        .ok()
        .map_or(if is_long() { 200 } else { 20 }, |rounds| rounds.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut ledger = Ledger::default();
    let mut rng = fastrand::Rng::new();
    let seed = rng.get_seed();
    for round in 0..rounds {
        let writers = rng.choice([1, 4, 16, 64]).unwrap_or(1);
        let largest = rng.choice([50, 2_000, 60_000]).unwrap_or(50);
        let orders = ledger.orders(writers, rng.bool(), largest);
        let worker = Worker::start(PROGRAM, &store, &orders).expect("the process starts");
        let opening = rng.u32(0..4) == 0;
        let after = Duration::from_micros(rng.u64(0..if opening { 60_000 } else { 400_000 }));
        if !opening {
            worker.wait_for(1);
        }
        thread::sleep(after);
        let heard = worker.kill();
        heard.iter().for_each(|line| ledger.hear(line));
        let from = if opening { "its start" } else { "its first acknowledgement" };
        let told = heard.len();
        eprintln!("round {round} (seed {seed}): {writers} writers, up to {largest} B, {after:?} after {from}: {told} lines");
        if rng.u32(0..3) > 0 {
            runtime.block_on(ledger.check(&store));
        }
    }
    runtime.block_on(ledger.check(&store));
    eprintln!("{} acknowledged commits", ledger.acknowledged);
    file_row("kill -9 of a process that uses the file engine", ledger.acknowledged as u64).write();
    assert!(ledger.acknowledged > rounds, "hardly anything was done");
}
