//! What the benchmarks share: both sides in turn, the median of the rounds, and how long others waited meanwhile.

pub mod results;
pub mod rig;
pub mod rounds;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the real one")]
pub fn now() -> Instant {
    Instant::now()
}

/// The middle of some figures.
///
/// # Panics
/// Without a figure.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A connection of somebody else's that sends one PING after the other and writes down how long each took.
#[derive(Debug)]
pub struct Pings {
    over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<Duration>>>,
}

impl Pings {
    /// Starts at the server on `port` of the loopback address.
    pub fn start(port: u16) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            let mut waits = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let began = now();
                stream.write_all(b"PING\r\n")?;
                let mut pong = [0; 7];
                stream.read_exact(&mut pong)?;
                waits.push(now() - began);
                std::thread::sleep(Duration::from_micros(200));
            }
            Ok(waits)
        });
        Self { over, thread }
    }

    /// The waits, shortest first.
    ///
    /// # Panics
    /// If the server hung up.
    pub fn stop(self) -> Vec<Duration> {
        self.over.store(true, Ordering::Relaxed);
        let waits = self.thread.join().map(|waits| waits.expect("the server answers PING"));
        let mut waits = waits.expect("the thread ends by itself");
        waits.sort();
        waits
    }
}

/// The value that `share` (of 1,000) of the sorted `waits` do not exceed.
pub fn per_mille(waits: &[Duration], share: usize) -> Duration {
    waits.get((waits.len() * share / 1_000).min(waits.len().saturating_sub(1))).copied().unwrap_or_default()
}
