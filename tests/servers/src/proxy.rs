//! A proxy that does to connections what networks and servers do on bad days; without a server behind it, a fake one.

mod action;
mod state;
mod wire;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};

pub use self::action::{Action, Request};
use self::state::{Judge, Once, State};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let built = Builder::new_multi_thread().worker_threads(2).thread_name("test-proxy").enable_all().build();
    built.unwrap_or_else(|error| panic!("no threads: {error}"))
});

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

/// A TCP proxy on a free port of the loopback address; it ends with its handle.
///
/// What it is told holds for new and for open connections. TLS passes through, unseen: only what concerns bytes works then.
#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    port: u16,
}

impl Proxy {
    /// A proxy for the server on `port` of the loopback address.
    ///
    /// # Errors
    /// If no port is free.
    pub fn to(port: u16) -> io::Result<Self> {
        Self::start(Some(port), None)
    }

    /// A server that answers as `judge` says; what it passes is never answered.
    ///
    /// # Errors
    /// If no port is free.
    pub fn fake(judge: impl Fn(&Request) -> Action + Send + Sync + 'static) -> io::Result<Self> {
        Self::start(None, Some(Arc::new(judge)))
    }

    fn start(target: Option<u16>, judge: Option<Judge>) -> io::Result<Self> {
        let state = Arc::new(State {
            target: Mutex::new(target),
            judge: Mutex::new(judge),
            once: Mutex::default(),
            commands: Mutex::default(),
            record: Mutex::default(),
            delay: Default::default(),
            throttle: AtomicU64::new(0),
            cut: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
            passed: Default::default(),
            refusing: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            cuts: watch::Sender::new(0),
            silence: watch::Sender::new(0),
            silent: Default::default(),
            ended: watch::Sender::new(false),
        });
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = {
            let _in = RUNTIME.enter();
            TcpListener::from_std(listener)?
        };
        RUNTIME.spawn(wire::accept(Arc::clone(&state), listener));
        Ok(Self { state, port })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that it listens on.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of database 0.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sends new connections to another server.
    pub fn retarget(&self, port: u16) {
        *self.state.target.lock() = Some(port);
    }

    /// Asks `judge` about every command from now on.
    pub fn judge(&self, judge: impl Fn(&Request) -> Action + Send + Sync + 'static) {
        *self.state.judge.lock() = Some(Arc::new(judge));
    }

    /// Passes everything again.
    pub fn pass(&self) {
        *self.state.judge.lock() = None;
        self.state.once.lock().clear();
    }

    /// Does `action` to the next command of that name (`*`: of any name) after `skip` more of them. The result is notified
    /// when it has come to that.
    pub fn once(&self, name: &str, skip: usize, action: Action) -> Arc<Notify> {
        let done = Arc::new(Notify::new());
        let name = name.to_ascii_uppercase();
        self.state.once.lock().push(Once { name, skip, action, done: Arc::clone(&done) });
        done
    }

    /// Holds back everything that goes that way for so long.
    pub fn delay(&self, way: Way, time: Duration) {
        self.state.delay[way as usize].store(millis(time), Ordering::SeqCst);
    }

    /// Lets at most so many bytes per second through, each way; 0 for any.
    pub fn throttle(&self, bytes_per_second: u64) {
        self.state.throttle.store(bytes_per_second, Ordering::SeqCst);
    }

    /// Closes the connection on which `bytes` more (of all connections) have gone that way.
    pub fn cut_after(&self, way: Way, bytes: u64) {
        self.state.cut[way as usize].store(bytes, Ordering::SeqCst);
    }

    /// Closes all open connections.
    pub fn cut_all(&self) {
        self.state.cuts.send_modify(|count| *count += 1);
    }

    /// From now on nothing passes, on open connections and on new ones, and nothing is closed.
    pub fn swallow(&self) {
        self.swallow_ways(&[Way::Requests, Way::Replies]);
    }

    /// As [`swallow`](Self::swallow), these ways only.
    pub fn swallow_ways(&self, ways: &[Way]) {
        for way in [Way::Requests, Way::Replies] {
            self.state.silent[way as usize].store(ways.contains(&way), Ordering::SeqCst);
        }
        self.state.silence.send_if_modified(|count| step(count, 0));
    }

    /// Lets new connections work again after [`swallow`](Self::swallow); those that were open stay silent.
    pub fn heal(&self) {
        self.state.silence.send_if_modified(|count| step(count, 1));
    }

    /// Closes new connections as soon as they are made, or takes them again.
    pub fn refuse(&self, refuse: bool) {
        self.state.refusing.store(refuse, Ordering::SeqCst);
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// Connections that were made so far.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }

    /// How many commands of that name (in upper case) have come so far.
    pub fn seen(&self, name: &str) -> u64 {
        self.state.commands.lock().get(name).copied().unwrap_or_default()
    }

    /// How many commands of each name have come so far.
    pub fn commands(&self) -> HashMap<String, u64> {
        self.state.commands.lock().clone()
    }

    /// How many bytes of all connections went that way so far. What a client has received is counted.
    pub fn passed(&self, way: Way) -> u64 {
        self.state.passed[way as usize].load(Ordering::SeqCst)
    }

    /// Keeps a copy of every command from now on.
    pub fn record(&self) {
        *self.state.record.lock() = Some(Vec::new());
    }

    /// The commands since [`record`](Self::record) or the last call of this.
    pub fn recorded(&self) -> Vec<Request> {
        self.state.record.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.send_replace(true);
    }
}

fn step(count: &mut u64, when: u64) -> bool {
    let changes = *count % 2 == when;
    if changes {
        *count += 1;
    }
    changes
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
