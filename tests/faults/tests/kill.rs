//! A process that works on the file engine is killed, again and again, sometimes while it opens the folder.
//!
//! `ZLINK_KILL_ROUNDS` is the number of rounds, 50 by default.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use zlink_test_faults::ledger::Ledger;
use zlink_test_faults::work::Orders;

/// How long a process may take to open the folder and acknowledge something.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn nothing_acknowledged_is_lost_or_torn_when_the_process_is_killed() {
    let rounds: usize = std::env::var("ZLINK_KILL_ROUNDS").ok().map_or(50, |rounds| rounds.parse().expect("a number"));
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
        let fate = match rng.u32(0..4) {
            0 => Fate::WhileOpening(Duration::from_micros(rng.u64(0..60_000))),
            _ => Fate::AtWork(Duration::from_micros(rng.u64(0..400_000))),
        };
        let heard = run_and_kill(&store, &orders, fate);
        let told = heard.len();
        heard.iter().for_each(|line| ledger.hear(line));
        eprintln!("round {round} (seed {seed}): {writers} writers, values up to {largest}, {fate:?}: {told} lines");
        if fastrand::u32(0..3) > 0 {
            runtime.block_on(ledger.check(&store));
        }
    }
    runtime.block_on(ledger.check(&store));
    eprintln!("{} acknowledged commits", ledger.acknowledged);
    assert!(ledger.acknowledged > rounds, "hardly anything was done");
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    /// So long after its start.
    WhileOpening(Duration),
    /// So long after its first acknowledgement.
    AtWork(Duration),
}

/// What the process told until it was killed.
fn run_and_kill(folder: &Path, orders: &Orders, fate: Fate) -> Vec<String> {
    let mut process = Command::new(env!("CARGO_BIN_EXE_crash-writer"))
        .arg(folder)
        .args(orders.arguments())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the process starts");
    let (first, acknowledged) = mpsc::channel();
    let listener = listen(process.stdout.take().expect("a pipe"), first);
    match fate {
        Fate::WhileOpening(after) => thread::sleep(after),
        Fate::AtWork(after) => {
            acknowledged.recv_timeout(PATIENCE).expect("an acknowledgement");
            thread::sleep(after);
        }
    }
    kill(&mut process);
    listener.join().expect("the listener")
}

fn listen(pipe: ChildStdout, first: mpsc::Sender<()>) -> thread::JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut heard = Vec::new();
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        // The last line may be cut off by the kill; then it was not told.
        while pipe.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
            if line.starts_with("done ") {
                // Only the first is waited for.
                let _ = first.send(());
            }
            heard.push(line.trim_end_matches('\n').to_owned());
            line.clear();
        }
        heard
    })
}

fn kill(process: &mut Child) {
    process.kill().expect("the process is there to be killed");
    let status = process.wait().expect("the process ends");
    assert!(status.code().is_none(), "the process ended by itself: {status}");
}
