//! A working process, and what it tells.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::work::Orders;

/// How long a process may take to open the folder and acknowledge something.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that works until it is killed.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    listener: thread::JoinHandle<Vec<String>>,
    acknowledged: mpsc::Receiver<()>,
    trace: Option<PathBuf>,
}

impl Worker {
    /// Starts `program` on `folder`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &str, folder: &Path, orders: &Orders) -> io::Result<Self> {
        Self::listen(Command::new(program), folder, orders, None)
    }

    /// Starts it under `strace`, which writes the calls named to `trace`, with that many bytes of what is written.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_traced(
        program: &str,
        folder: &Path,
        orders: &Orders,
        trace: &Path,
        calls: &str,
        bytes: usize,
    ) -> io::Result<Self> {
        let mut command = Command::new("strace");
        // -D: the process is our own child, so that it can be killed; strace is left aside.
        command.args(["-D", "-f", "-y", "-s", &bytes.to_string(), "-e", &format!("trace={calls}"), "-o"]);
        command.arg(trace).arg(program);
        Self::listen(command, folder, orders, Some(trace.to_owned()))
    }

    fn listen(mut command: Command, folder: &Path, orders: &Orders, trace: Option<PathBuf>) -> io::Result<Self> {
        let mut process = command.arg(folder).args(orders.arguments()).stdout(Stdio::piped()).spawn()?;
        let (first, acknowledged) = mpsc::channel();
        let pipe = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let listener = thread::spawn(move || listen(pipe, &first));
        Ok(Self { process, listener, acknowledged, trace })
    }

    /// Waits until it has acknowledged so many commits.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn wait_for(&self, commits: usize) {
        for commit in 0..commits {
            let waited = self.acknowledged.recv_timeout(PATIENCE);
            assert!(waited.is_ok(), "{commit} of {commits} commits were acknowledged");
        }
    }

    /// Kills it. What it told until then is returned.
    ///
    /// # Panics
    /// If it has ended by itself.
    pub fn kill(mut self) -> Vec<String> {
        self.process.kill().expect("the process is there to be killed");
        let status = self.process.wait().expect("the process ends");
        assert!(status.code().is_none(), "the process ended by itself: {status}");
        let heard = self.listener.join().expect("the listener");
        if let Some(trace) = self.trace {
            wait_for_trace(&trace, self.process.id());
        }
        heard
    }
}

fn listen(pipe: ChildStdout, acknowledged: &mpsc::Sender<()>) -> Vec<String> {
    let mut heard = Vec::new();
    let mut pipe = BufReader::new(pipe);
    let mut line = String::new();
    // The last line may be cut off by the kill; then it was not told.
    while pipe.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
        if line.starts_with("done ") {
            // Nobody waits for the later ones.
            let _ = acknowledged.send(());
        }
        heard.push(line.trim_end_matches('\n').to_owned());
        line.clear();
    }
    heard
}

/// strace ends a little after the process that it watched.
fn wait_for_trace(trace: &Path, process: u32) {
    let process = process.to_string();
    let is_last = |line: &str| line.split(' ').next() == Some(&process[..]) && line.ends_with("+++ killed by SIGKILL +++");
    for _ in 0..PATIENCE.as_millis() {
        let trace = std::fs::read(trace).unwrap_or_default();
        let start = trace.trim_ascii_end().iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if is_last(String::from_utf8_lossy(&trace[start..]).trim_end()) {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("the trace has no end");
}
