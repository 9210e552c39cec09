//! No acknowledgement comes before its sync, and what was synced is enough: shown by what the kernel was asked, since a kill
//! alone proves nothing about the disk.
//!
//! `ZLINK_CUT_ROUNDS` is the number of power cuts, 8 by default.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use zlink_test_faults::disk::{self, Durable};
use zlink_test_faults::ledger::Ledger;
use zlink_test_faults::process::Worker;
use zlink_test_faults::report::file_row;
use zlink_test_faults::trace::{self, Call};
use zlink_test_faults::work::{self, Orders};

const PROGRAM: &str = env!("CARGO_BIN_EXE_crash-writer");

#[test]
fn no_commit_is_acknowledged_before_its_sync() {
    for writers in [1, 16] {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, log) = (folder.path().join("store"), folder.path().join("trace"));
        let orders = Orders { writers: vec![0; writers], blob: Some(0), largest: 60 };
        let calls = "write,pwrite64,writev,fsync,fdatasync";
        let worker = Worker::start_traced(PROGRAM, &store, &orders, &log, calls, 20_000).expect("strace is installed");
        worker.wait_for(60 * writers);
        worker.kill();
        let calls = trace::parse(&fs::read_to_string(&log).expect("a trace"));
        let (commits, blobs) = check_order(&calls);
        eprintln!("{writers} writers: {commits} commits and {blobs} blobs were synced before they were acknowledged");
        file_row(&format!("acknowledged only after its sync, {writers} writers"), (commits + blobs) as u64).write();
        assert!(commits >= 40 * writers && blobs > 0);
    }
}

/// Every acknowledgement has the write of its commit before it, and a sync of the same file in between.
fn check_order(calls: &[Call]) -> (usize, usize) {
    let done = |call: &Call| call.name == "write" && call.descriptor() == Some(1);
    let syncs: Vec<_> = calls.iter().filter(|call| call.name == "fdatasync" || call.name == "fsync").collect();
    let mut written: HashMap<String, &Call> = HashMap::new();
    let mut blob_writes: HashMap<PathBuf, &Call> = HashMap::new();
    let (mut commits, mut blobs) = (0, 0);
    let synced_between = |write: &Call, acknowledged: &Call| {
        syncs.iter().any(|sync| {
            let whole = sync.result == Some(0) && sync.file() == write.file();
            whole && write.ended < sync.began && sync.ended < acknowledged.began
        })
    };
    for call in calls {
        if done(call) {
            let text = call.texts().concat();
            let words: Vec<_> = text.trim_end_matches("\\n").split(' ').collect();
            match words[..] {
                ["done", writer, commit, ..] if !work::deletes(commit.parse().expect("a number")) => {
                    let token = format!("w{writer}n{commit};");
                    let write = written.get(&token).unwrap_or_else(|| panic!("{token} was acknowledged before it was written"));
                    assert!(synced_between(write, call), "{token} was acknowledged before its sync:\n{write:?}\n{call:?}");
                    commits += 1;
                }
                ["done-put", _] => {
                    for (path, write) in blob_writes.drain() {
                        assert!(synced_between(write, call), "a blob was acknowledged before {} was synced", path.display());
                        blobs += 1;
                    }
                }
                _ => {}
            }
        } else if let Some(path) = call.file().filter(|_| call.name.contains("write")) {
            if path.extension().is_some_and(|extension| extension == "jnl") {
                for token in call.texts().iter().flat_map(|text| tokens(text)) {
                    // The last key of the group is the last write that must be synced.
                    written.insert(token, call);
                }
            } else if path.parent().is_some_and(|parent| parent.ends_with("blobs")) {
                blob_writes.insert(path, call);
            }
        }
    }
    (commits, blobs)
}

/// The commits that a write names.
fn tokens(text: &str) -> impl Iterator<Item = String> {
    text.split(';').filter_map(|before| {
        let start = before.rfind('w')?;
        let (writer, commit) = before[start + 1..].split_once('n')?;
        let numbers = [writer, commit].iter().all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.then(|| format!("{};", &before[start..]))
    })
}

#[test]
fn what_was_synced_is_enough_after_a_power_cut() {
    let rounds: usize = std::env::var("ZLINK_CUT_ROUNDS").ok().map_or(8, |rounds| rounds.parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut rng = fastrand::Rng::new();
    let seed = rng.get_seed();
    let mut acknowledged = 0;
    for round in 0..rounds {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, log) = (folder.path().join("store"), folder.path().join("trace"));
        let writers = rng.choice([1, 8, 32]).unwrap_or(1);
        let largest = rng.choice([200, 20_000, 120_000]).unwrap_or(200);
        let orders = Orders { writers: vec![0; writers], blob: Some(0), largest };
        let worker = Worker::start_traced(PROGRAM, &store, &orders, &log, disk::CALLS, 0).expect("strace is installed");
        worker.wait_for(1);
        thread::sleep(Duration::from_micros(rng.u64(0..1_500_000)));
        let mut ledger = Ledger::default();
        worker.kill().iter().for_each(|line| ledger.hear(line));
        acknowledged += ledger.acknowledged as u64;
        let durable = Durable::follow(&trace::parse(&fs::read_to_string(&log).expect("a trace")));
        // What was not synced is gone altogether, or some sectors of it are there, as the disk happened to write them.
        for survivors in [0, 50, 90] {
            let copy = folder.path().join(format!("copy{survivors}"));
            disk::copy(&store, &copy).expect("a copy");
            let cut = durable.cut_back(&store, &copy, || rng.u32(0..100) < survivors).expect("the copy can be cut back");
            eprintln!(
                "round {round} (seed {seed}): {writers} writers, up to {largest} B, {} commits, {cut} B not synced, \
                 {survivors} % of it there",
                ledger.acknowledged
            );
            runtime.block_on(ledger.clone().check(&copy));
        }
    }
    file_row("power cut: the folder cut back to what was synced", acknowledged).write();
}
