//! Connections of our own to one server, shared by every store of an equal configuration.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::answers::{self, Meaning};
use super::bells::{Bells, Dialer};
use super::config::{Address, RedisConfig, Server};
use super::dial::{DialError, Step, Stream, dial};
use super::handshake::{Greeting, greet};
use super::lane::{Connector, Lane, jittered};
use super::link::{Link, Neighbours};
use super::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

/// Between two attempts to send what a connection bounced.
const PAUSE: Duration = Duration::from_millis(10);
/// How much earlier than its caller an attempt to connect ends.
const LAST_WORD: Duration = Duration::from_millis(10);
/// How long the look at the server's eviction policy may take.
const LOOK: Duration = Duration::from_secs(10);

/// A connection for each line, made when it is needed. Clones share them.
#[derive(Clone)]
pub(super) struct Native(Arc<Lines>);

struct Lines {
    lanes: [Arc<Lane<ToServer>>; 3],
    bells: Arc<Bells>,
    /// Keeps the lanes' way to the server alive.
    to: Arc<ToServer>,
}

/// The way to the server, which all lines share.
struct ToServer {
    config: RedisConfig,
    counters: Arc<EngineCounters>,
    neighbours: Arc<Neighbours>,
    hello: AtomicU8,
    scripts: Scripts,
    policy_seen: AtomicBool,
}

/// What is known of a server that may hang up on HELLO.
mod hello {
    pub(super) const ASK: u8 = 0;
    /// The connection ended at the greeting: the next one is greeted without HELLO, which tells.
    pub(super) const DOUBTFUL: u8 = 1;
    pub(super) const HANGS_UP: u8 = 2;
}

impl Native {
    pub(super) fn new(config: RedisConfig) -> Self {
        let to = Arc::new(ToServer {
            config,
            counters: Arc::default(),
            neighbours: Arc::default(),
            hello: AtomicU8::new(hello::ASK),
            scripts: Scripts::default(),
            policy_seen: AtomicBool::new(false),
        });
        let lane = || Lane::new(Arc::downgrade(&to));
        let bells = Bells::new(Arc::clone(&to) as _);
        Self(Arc::new(Lines { lanes: [lane(), lane(), lane()], bells, to }))
    }

    fn lane(&self, line: Line) -> &Arc<Lane<ToServer>> {
        &self.0.lanes[match line {
            Line::Small => 0,
            Line::Acked => 1,
            Line::Blobs => 2,
        }]
    }

    async fn carry(&self, line: Line, batch: Arc<Batch>, call: &Call) -> Result<Vec<Reply>, Failure> {
        let mut pause = PAUSE;
        loop {
            let link = self.lane(line).link(call.deadline).await.map_err(Failure::NotSent)?;
            let asked = ambient::monotonic();
            match link.send(Arc::clone(&batch), call).await {
                Ok(replies) => {
                    if replies.iter().any(|reply| matches!(answers::meaning(reply), Some(Meaning::Elsewhere(_)))) {
                        tracing::debug!("the server is no primary any more; the next batches connect anew");
                        // All lines: what a replica answers to reads is late.
                        self.0.lanes.iter().for_each(|lane| lane.replace_if_before(asked));
                    }
                    return Ok(replies);
                }
                Err(Failure::NotSent(error)) => {
                    let again = ambient::monotonic() + jittered(pause);
                    if again >= call.deadline {
                        return Err(Failure::NotSent(error));
                    }
                    // A connection that was replaced bounces what it had not sent; one that ends at once must not be stormed.
                    if link.end().is_some() {
                        background::sleep_until(again).await;
                        pause = (pause * 2).min(Duration::from_secs(1));
                    }
                }
                lost => return lost,
            }
        }
    }
}

impl Transport for Native {
    fn ready(&self, line: Line, _slot: Slot, deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        let lane = Arc::clone(self.lane(line));
        async move { lane.link(deadline).await.map(|_| ()) }.boxed()
    }

    fn send(&self, line: Line, _slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
        let (native, call) = (self.clone(), call.clone());
        async move { native.carry(line, batch, &call).await }.boxed()
    }

    fn transactions(&self) -> bool {
        true
    }

    fn scripts(&self) -> &Scripts {
        &self.0.to.scripts
    }

    fn min_acked_replicas(&self) -> u32 {
        self.0.to.config.min_acked_replicas
    }

    fn counters(&self) -> &EngineCounters {
        &self.0.to.counters
    }

    fn bells(&self) -> Option<Arc<Bells>> {
        Some(Arc::clone(&self.0.bells))
    }

    fn close(&self) {
        self.0.lanes.iter().for_each(|lane| lane.close());
        self.0.bells.close();
    }
}

impl Connector for ToServer {
    fn connect(self: Arc<Self>, deadline: Instant) -> BoxFuture<'static, Result<Arc<Link>, DialError>> {
        async move {
            let now = ambient::monotonic();
            // It ends a little before its first caller does, so that the caller hears what it was that took so long.
            let left = deadline.saturating_duration_since(now);
            let last = now + left - (left / 20).min(LAST_WORD);
            let timeout = self.config.connect_timeout_ms.map(|timeout| now + Duration::from_millis(timeout));
            let bound = timeout.map_or(last, |timeout| timeout.min(last));
            let step = Mutex::new(Step::Connect);
            let connected = background::timeout_at(bound, Arc::clone(&self).connect_now(bound, &step)).await;
            connected.unwrap_or_else(|_| Err(step.into_inner().took_too_long(bound < last)))
        }
        .boxed()
    }

    fn reconnected(&self) {
        self.counters.reconnects.fetch_add(1, Ordering::Relaxed);
    }
}

impl Dialer for ToServer {
    fn dial(self: Arc<Self>) -> BoxFuture<'static, Result<Stream, DialError>> {
        async move { dial(self.address()?, self.config.tls.as_ref(), &Mutex::new(Step::Connect)).await }.boxed()
    }

    fn config(&self) -> &RedisConfig {
        &self.config
    }

    fn counters(&self) -> &EngineCounters {
        &self.counters
    }
}

impl ToServer {
    fn address(&self) -> Result<&Address, DialError> {
        let Server::Single(address) = &self.config.server else {
            let error = Error::new(Code::Unavailable, Outcome::NotApplied, "Sentinel and Cluster are not supported yet");
            return Err(DialError { error, lasting: true });
        };
        Ok(address)
    }

    async fn connect_now(self: Arc<Self>, bound: Instant, step: &Mutex<Step>) -> Result<Arc<Link>, DialError> {
        let stream = dial(self.address()?, self.config.tls.as_ref(), step).await?;
        let link = Link::new(stream, Arc::clone(&self.counters), &self.neighbours);
        let mut stranger = Stranger { link: &link, greeted: false };
        *step.lock() = Step::Greet;
        let state = self.hello.load(Ordering::Acquire);
        // Whoever bounds the attempt says better than the greeting what took too long.
        let greeted = greet(&link, &self.config, state == hello::ASK, &Call::reading(bound + LAST_WORD)).await;
        let Greeting { read_only_scripts } = greeted.inspect_err(|failed| self.ungreeted(state, failed, &link))?;
        stranger.greeted = true;
        self.neighbours.add(&link);
        match state {
            hello::DOUBTFUL => self.hello.store(hello::HANGS_UP, Ordering::Release),
            _ => tracing::debug!(address = %shown(self.address()?), "connected"),
        }
        self.scripts.set_read_only_calls(read_only_scripts.unwrap_or(true));
        if !self.config.allow_eviction && !self.policy_seen.swap(true, Ordering::AcqRel) {
            background::handle().spawn(warn_of_eviction(Arc::downgrade(&link)));
        }
        drop(stranger);
        Ok(link)
    }

    fn ungreeted(&self, state: u8, failed: &DialError, link: &Link) {
        // Only a connection that ended says anything about HELLO.
        if failed.lasting || link.end().is_none() {
            return;
        }
        let next = if state == hello::ASK { hello::DOUBTFUL } else { hello::ASK };
        if state != hello::HANGS_UP {
            self.hello.store(next, Ordering::Release);
        }
    }
}

/// A connection that is closed unless the server greets back, whoever else holds it.
struct Stranger<'a> {
    link: &'a Link,
    greeted: bool,
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        if !self.greeted {
            self.link.close("the server did not answer the greeting");
        }
    }
}

fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) => format!("{host}:{port}"),
        Address::Unix(_) => "unix socket".to_owned(),
    }
}

/// Warns once if the server may throw records away. Where the user may not run INFO, nobody can know.
async fn warn_of_eviction(link: Weak<Link>) {
    let Some(link) = link.upgrade() else { return };
    let ask = Batch { commands: vec![vec![Bytes::from_static(b"INFO"), Bytes::from_static(b"memory")]], atomic: false };
    let Ok(replies) = link.send(Arc::new(ask), &Call::reading(ambient::monotonic() + LOOK)).await else { return };
    let Some(Reply::Bytes(info)) = replies.first() else { return };
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:")).map_or("noeviction", str::trim);
    if policy != "noeviction" {
        tracing::warn!(
            policy,
            "the server's maxmemory-policy lets it throw records away one by one when its memory is full: set it to noeviction, \
             or say allow_eviction=true in the URL if that is meant"
        );
    }
}
