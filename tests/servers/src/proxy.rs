//! A proxy that does to connections what networks and servers do on bad days; without a server behind it, a fake one.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::resp::{Value, parse};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let built = Builder::new_multi_thread().worker_threads(2).thread_name("test-proxy").enable_all().build();
    built.unwrap_or_else(|error| panic!("no threads: {error}"))
});

/// A command on its way through the proxy.
#[derive(Clone, Debug)]
pub struct Request {
    /// The connection's number, from 0.
    pub connection: usize,
    /// The command's number on its connection, from 0.
    pub number: usize,
    /// Name and arguments.
    pub args: Vec<Vec<u8>>,
}

impl Request {
    /// The command's name in upper case.
    pub fn name(&self) -> String {
        self.text(0).to_ascii_uppercase()
    }

    /// An argument as text; `""` if there is none.
    pub fn text(&self, place: usize) -> String {
        self.args.get(place).map_or_else(String::new, |arg| String::from_utf8_lossy(arg).into_owned())
    }
}

/// What the proxy does with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Passes it on.
    Pass,
    /// Answers it, with these bytes as they are, instead of the server.
    Answer(Vec<u8>),
    /// Closes the connection before anything of it is passed on.
    CutBefore,
    /// Passes half of its bytes on and closes the connection.
    CutInside,
    /// Passes it on and closes the connection without waiting for the reply.
    CutAfter,
    /// Passes it on, waits for the reply, drops it and closes the connection.
    DropReply,
    /// Passes it on and drops the reply; from then on this connection is silent, but open.
    LoseReply,
    /// Passes half of the reply's bytes back and closes the connection.
    CutReply,
    /// Passes it on and the reply back after so many milliseconds; later replies wait behind it.
    DelayReply(u64),
}

impl Action {
    /// Answers with a line, such as `-LOADING …` or `+OK`.
    pub fn line(text: &str) -> Self {
        Self::Answer(format!("{text}\r\n").into_bytes())
    }

    /// Answers with a value.
    pub fn value(value: &Value) -> Self {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        Self::Answer(bytes)
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

type Judge = Arc<dyn Fn(&Request) -> Action + Send + Sync>;

/// A TCP proxy on a free port of the loopback address; it ends with its handle.
///
/// What it is told holds for new and for open connections. TLS passes through, unseen: only what concerns bytes works then.
#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    port: u16,
}

struct State {
    target: Mutex<Option<u16>>,
    judge: Mutex<Option<Judge>>,
    once: Mutex<Vec<Once>>,
    commands: Mutex<HashMap<String, u64>>,
    record: Mutex<Option<Vec<Request>>>,
    delay: [AtomicU64; 2],
    /// Bytes per second, 0 for any.
    throttle: AtomicU64,
    /// Bytes until the cut, per way; `u64::MAX` for none.
    cut: [AtomicU64; 2],
    refusing: AtomicBool,
    open: AtomicUsize,
    accepted: AtomicUsize,
    /// Counts `cut_all`: a connection ends when it changes.
    cuts: watch::Sender<u64>,
    /// Counts `swallow`: a connection that was open then is silent for good, and new ones are while it is odd.
    silence: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

/// An action for one command to come.
struct Once {
    name: String,
    /// So many commands of that name pass before.
    skip: usize,
    action: Action,
    done: Arc<Notify>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
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
            refusing: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            cuts: watch::Sender::new(0),
            silence: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        });
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = {
            let _in = RUNTIME.enter();
            TcpListener::from_std(listener)?
        };
        RUNTIME.spawn(accept(Arc::clone(&state), listener));
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

async fn accept(state: Arc<State>, listener: TcpListener) {
    let mut ended = state.ended.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.wait_for(|ended| *ended) => return,
        };
        let Ok((client, _)) = accepted else { continue };
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        if state.refusing.load(Ordering::SeqCst) {
            continue;
        }
        let state = Arc::clone(&state);
        RUNTIME.spawn(async move {
            state.open.fetch_add(1, Ordering::SeqCst);
            let mut cuts = state.cuts.subscribe();
            let mut ended = state.ended.subscribe();
            tokio::select! {
                _ = carry(&state, client, number) => {}
                _ = cuts.changed() => {}
                _ = ended.wait_for(|ended| *ended) => {}
            }
            state.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// What stands between a command and its reply.
enum Due {
    /// The server's next reply, with what is to be done with it.
    Theirs(Action),
    /// An answer of ours.
    Ours(Vec<u8>),
}

/// One connection.
struct Wire<'a> {
    state: &'a State,
    number: usize,
    due: Mutex<VecDeque<Due>>,
    more_due: Notify,
    silence: watch::Receiver<u64>,
    born: u64,
}

/// What is on its way, per way: when it may arrive, and what.
type Road = mpsc::Sender<(Instant, Parcel)>;

enum Parcel {
    Bytes(Vec<u8>),
    Cut,
}

/// More than this is not under way at once: behind it the sender has to wait, as on a network.
const UNDER_WAY: usize = 8;

/// Why a connection is closed.
struct Over;

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self
    }
}

async fn carry(state: &State, client: TcpStream, number: usize) -> Result<(), Over> {
    let target = *state.target.lock();
    let silence = state.silence.subscribe();
    let born = *silence.borrow();
    let wire = Wire { state, number, due: Mutex::default(), more_due: Notify::new(), silence, born };
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (replies, replies_out) = mpsc::channel(UNDER_WAY);
    let (requests, requests_out) = mpsc::channel(UNDER_WAY);
    let (from_server, to_server) = match target {
        Some(port) => {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            server.set_nodelay(true)?;
            let (from, to) = server.into_split();
            (Some(from), Some(to))
        }
        None => (None, None),
    };
    tokio::select! {
        over = wire.requests(from_client, &requests) => over,
        over = wire.replies(from_server, &replies) => over,
        over = wire.travel(Way::Requests, requests_out, to_server) => over,
        over = wire.travel(Way::Replies, replies_out, Some(to_client)) => over,
    }
}

impl Wire<'_> {
    async fn requests(&self, mut from: OwnedReadHalf, road: &Road) -> Result<(), Over> {
        let mut buffer = Vec::new();
        let mut piece = vec![0; 65_536];
        let mut number = 0;
        loop {
            let count = from.read(&mut piece).await?;
            if count == 0 {
                return Err(Over);
            }
            buffer.extend_from_slice(&piece[..count]);
            loop {
                match parse(&buffer) {
                    Ok(Some((value, length))) => {
                        let bytes: Vec<u8> = buffer.drain(..length).collect();
                        let args = value.items().iter().map(|arg| match arg {
                            Value::Bytes(bytes) => bytes.clone(),
                            other => other.text().into_bytes(),
                        });
                        let request = Request { connection: self.number, number, args: args.collect() };
                        number += 1;
                        self.request(&request, bytes, road).await?;
                    }
                    Ok(None) => break,
                    // TLS, or nonsense: passed as it comes.
                    Err(_) => {
                        self.send(Way::Requests, road, std::mem::take(&mut buffer)).await?;
                        break;
                    }
                }
            }
        }
    }

    async fn request(&self, request: &Request, mut bytes: Vec<u8>, road: &Road) -> Result<(), Over> {
        let action = self.state.action_for(request);
        let due = match action {
            Action::CutBefore => return self.cut(Way::Requests, road).await,
            Action::CutInside => {
                bytes.truncate(bytes.len() / 2);
                self.send(Way::Requests, road, bytes).await?;
                return self.cut(Way::Requests, road).await;
            }
            Action::CutAfter => {
                self.send(Way::Requests, road, bytes).await?;
                return self.cut(Way::Requests, road).await;
            }
            Action::Answer(answer) => Due::Ours(answer),
            other => Due::Theirs(other),
        };
        let passes = matches!(due, Due::Theirs(_));
        self.due.lock().push_back(due);
        self.more_due.notify_one();
        if passes {
            self.send(Way::Requests, road, bytes).await?;
        }
        Ok(())
    }

    async fn replies(&self, mut from: Option<OwnedReadHalf>, road: &Road) -> Result<(), Over> {
        let mut buffer = Vec::new();
        loop {
            let due = self.due.lock().pop_front();
            let action = match due {
                None => {
                    self.idle(&mut from, road, &mut buffer).await?;
                    continue;
                }
                Some(Due::Ours(answer)) => {
                    self.send(Way::Replies, road, answer).await?;
                    continue;
                }
                Some(Due::Theirs(action)) => action,
            };
            let mut reply = self.reply(&mut from, &mut buffer).await?;
            match action {
                Action::DropReply => return self.cut(Way::Replies, road).await,
                Action::LoseReply => return std::future::pending().await,
                Action::CutReply => {
                    reply.truncate(reply.len() / 2);
                    self.send(Way::Replies, road, reply).await?;
                    return self.cut(Way::Replies, road).await;
                }
                Action::DelayReply(time) => {
                    tokio::time::sleep(Duration::from_millis(time)).await;
                    self.send(Way::Replies, road, reply).await?;
                }
                _ => self.send(Way::Replies, road, reply).await?,
            }
        }
    }

    /// Nothing is due: waits for a command, and passes what the server says of its own accord.
    async fn idle(&self, from: &mut Option<OwnedReadHalf>, road: &Road, buffer: &mut Vec<u8>) -> Result<(), Over> {
        if !buffer.is_empty() {
            return self.send(Way::Replies, road, std::mem::take(buffer)).await;
        }
        let mut piece = vec![0; 65_536];
        let Some(from) = from else {
            self.more_due.notified().await;
            return Ok(());
        };
        tokio::select! {
            () = self.more_due.notified() => Ok(()),
            count = from.read(&mut piece) => match count? {
                0 => self.cut(Way::Replies, road).await,
                count => {
                    buffer.extend_from_slice(&piece[..count]);
                    Ok(())
                }
            },
        }
    }

    /// The server's next reply, or, if it is not RESP, the next bytes.
    async fn reply(&self, from: &mut Option<OwnedReadHalf>, buffer: &mut Vec<u8>) -> Result<Vec<u8>, Over> {
        let Some(from) = from else { return std::future::pending().await };
        let mut piece = vec![0; 65_536];
        loop {
            match parse(buffer) {
                Ok(Some((_, length))) => return Ok(buffer.drain(..length).collect()),
                Err(_) => return Ok(std::mem::take(buffer)),
                Ok(None) => {}
            }
            match from.read(&mut piece).await? {
                0 => return Err(Over),
                count => buffer.extend_from_slice(&piece[..count]),
            }
        }
    }

    async fn send(&self, way: Way, road: &Road, bytes: Vec<u8>) -> Result<(), Over> {
        self.put(way, road, Parcel::Bytes(bytes)).await
    }

    /// Closes the connection once what is under way has arrived.
    async fn cut(&self, way: Way, road: &Road) -> Result<(), Over> {
        self.put(way, road, Parcel::Cut).await?;
        std::future::pending().await
    }

    #[expect(clippy::disallowed_methods, reason = "a test helper needs no clock but the machine's")]
    async fn put(&self, way: Way, road: &Road, parcel: Parcel) -> Result<(), Over> {
        let delay = Duration::from_millis(self.state.delay[way as usize].load(Ordering::SeqCst));
        road.send((Instant::now() + delay, parcel)).await.map_err(|_| Over)
    }

    /// The far end of a road.
    async fn travel(
        &self,
        way: Way,
        mut road: mpsc::Receiver<(Instant, Parcel)>,
        mut to: Option<OwnedWriteHalf>,
    ) -> Result<(), Over> {
        while let Some((when, parcel)) = road.recv().await {
            tokio::time::sleep_until(when).await;
            let Parcel::Bytes(bytes) = parcel else { return Err(Over) };
            let throttle = self.state.throttle.load(Ordering::SeqCst);
            if let Some(time) = (bytes.len() as u64 * 1_000_000).checked_div(throttle) {
                tokio::time::sleep(Duration::from_micros(time)).await;
            }
            // Silent for good once the count has changed, and as long as it is odd.
            if *self.silence.borrow() != self.born || self.born % 2 == 1 {
                continue;
            }
            let end = self.state.allowed(way, bytes.len());
            if let Some(to) = &mut to {
                to.write_all(&bytes[..end.unwrap_or(bytes.len())]).await?;
            }
            if end.is_some() {
                return Err(Over);
            }
        }
        std::future::pending().await
    }
}

impl State {
    /// Where the connection is to be cut inside the next `count` bytes, if it is.
    fn allowed(&self, way: Way, count: usize) -> Option<usize> {
        let left = &self.cut[way as usize];
        let next = |left: u64| (left != u64::MAX).then(|| if left <= count as u64 { u64::MAX } else { left - count as u64 });
        let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()?;
        usize::try_from(before).ok().filter(|before| *before <= count)
    }

    fn action_for(&self, request: &Request) -> Action {
        let name = request.name();
        *self.commands.lock().entry(name.clone()).or_default() += 1;
        if let Some(record) = &mut *self.record.lock() {
            record.push(request.clone());
        }
        let planned = {
            let mut once = self.once.lock();
            let mut place = None;
            for (at, plan) in once.iter_mut().enumerate().filter(|(_, plan)| plan.name == "*" || plan.name == name) {
                if plan.skip == 0 {
                    place = Some(at);
                    break;
                }
                plan.skip -= 1;
            }
            place.map(|place| once.remove(place))
        };
        if let Some(Once { action, done, .. }) = planned {
            done.notify_one();
            return action;
        }
        let judge = self.judge.lock().clone();
        judge.map_or(Action::Pass, |judge| judge(request))
    }
}
