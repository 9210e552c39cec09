//! The connections to one server: one for each line, made when it is needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::bounce::Bounces;
use super::common::Common;
use super::sentinel::Sentinels;
use crate::call::{Call, EngineCounters};
use crate::contract::Error;
use crate::engine::redis::answers::{self, Meaning};
use crate::engine::redis::bells::Dialer;
use crate::engine::redis::config::{Address, RedisConfig};
use crate::engine::redis::dial::{DialError, Step, Stream, dial};
use crate::engine::redis::handshake::{Greeting, greet};
use crate::engine::redis::lane::{Connector, Lane};
use crate::engine::redis::link::{Link, Neighbours};
use crate::engine::redis::transport::{Batch, Failure, Line, Reply};
use crate::{ambient, background};

/// How much earlier than its caller an attempt to connect ends.
const LAST_WORD: Duration = Duration::from_millis(10);

/// Where a server is.
pub(super) enum Place {
    At(Address),
    /// Wherever the sentinels say.
    Found(Arc<Sentinels>),
}

/// One server, or the one that is the primary now.
pub(super) struct Node {
    common: Arc<Common>,
    place: Place,
    neighbours: Arc<Neighbours>,
    hello: AtomicU8,
    lanes: [Arc<Lane<Self>>; 3],
}

/// What is known of a server that may hang up on HELLO.
mod hello {
    pub(super) const ASK: u8 = 0;
    /// The connection ended at the greeting: the next one is greeted without HELLO, which tells.
    pub(super) const DOUBTFUL: u8 = 1;
    pub(super) const HANGS_UP: u8 = 2;
}

impl Node {
    /// No I/O.
    pub(super) fn new(common: Arc<Common>, place: Place) -> Arc<Self> {
        Arc::new_cyclic(|node| {
            let lane = || Lane::new(node.clone());
            let (neighbours, hello) = (Arc::default(), AtomicU8::new(hello::ASK));
            Self { common, place, neighbours, hello, lanes: [lane(), lane(), lane()] }
        })
    }

    /// The connection that takes the work of `line`.
    pub(super) async fn link(&self, line: Line, deadline: Instant) -> Result<Arc<Link>, Error> {
        let lane = &self.lanes[match line {
            Line::Small => 0,
            Line::Acked => 1,
            Line::Blobs => 2,
        }];
        lane.link(deadline).await
    }

    /// Sends `batch` as soon as a connection takes it.
    pub(super) async fn carry(&self, line: Line, batch: Arc<Batch>, call: &Call) -> Result<Vec<Reply>, Failure> {
        let mut bounces = Bounces::new(call.deadline);
        loop {
            let link = self.link(line, call.deadline).await.map_err(Failure::NotSent)?;
            let asked = ambient::monotonic();
            match link.send(Arc::clone(&batch), call).await {
                Ok(replies) => {
                    if replies.iter().any(|reply| matches!(answers::meaning(reply), Some(Meaning::Elsewhere(_)))) {
                        tracing::debug!("the server is no primary any more; the next batches connect anew");
                        // All lines: what a replica answers to reads is late.
                        self.replace_before(asked);
                    }
                    return Ok(replies);
                }
                Err(Failure::NotSent(error)) => bounces.again(&link, error).await?,
                lost => return lost,
            }
        }
    }

    /// Gives the connections that were made before `instant` no new work.
    pub(super) fn replace_before(&self, instant: Instant) {
        self.lanes.iter().for_each(|lane| lane.replace_if_before(instant));
    }

    /// Has work now that `other` had: connections that were lost there are made again here.
    pub(super) fn take_over(&self, other: &Self) {
        let pairs = self.lanes.iter().zip(&other.lanes);
        pairs.filter(|(_, other)| other.has_lost()).for_each(|(lane, _)| lane.take_over());
    }

    /// Closes all connections, and makes none any more.
    pub(super) fn close(&self) {
        self.lanes.iter().for_each(|lane| lane.close());
        if let Place::Found(sentinels) = &self.place {
            sentinels.close();
        }
    }

    async fn address(self: &Arc<Self>, bound: Instant, step: &Mutex<Step>) -> Result<Address, DialError> {
        match &self.place {
            Place::At(address) => Ok(address.clone()),
            Place::Found(sentinels) => {
                *step.lock() = Step::Ask;
                let found = sentinels.primary(bound).await?;
                *step.lock() = Step::Connect;
                Ok(found)
            }
        }
    }

    async fn connect_now(self: Arc<Self>, bound: Instant, step: &Mutex<Step>) -> Result<Arc<Link>, DialError> {
        let address = self.address(bound, step).await?;
        let mut met = self.meet(&address, bound, step).await;
        if let Place::Found(sentinels) = &self.place {
            if let Ok(link) = &met {
                *step.lock() = Step::Confirm;
                if let Err(doubt) = sentinels.confirm(&address, bound).await {
                    link.close(doubt.error.message());
                    met = Err(doubt);
                }
            }
            match &met {
                Ok(link) => {
                    if sentinels.met(&address) {
                        // The other lines still lead to the one before.
                        self.replace_before(link.born());
                    }
                    sentinels.watch(&self);
                }
                Err(_) => sentinels.missed(&address),
            }
        }
        met
    }

    async fn meet(&self, address: &Address, bound: Instant, step: &Mutex<Step>) -> Result<Arc<Link>, DialError> {
        let common = &self.common;
        let stream = dial(address, common.config.tls.as_ref(), step).await?;
        let link = Link::new(stream, Arc::clone(&common.counters), &self.neighbours);
        let mut stranger = Stranger { link: &link, greeted: false };
        *step.lock() = Step::Greet;
        let state = self.hello.load(Ordering::Acquire);
        // Whoever bounds the attempt says better than the greeting what took too long.
        let greeted = greet(&link, &common.config, state == hello::ASK, &Call::reading(bound + LAST_WORD)).await;
        let Greeting { read_only_scripts } = greeted.inspect_err(|failed| self.ungreeted(state, failed, &link))?;
        stranger.greeted = true;
        self.neighbours.add(&link);
        match state {
            hello::DOUBTFUL => self.hello.store(hello::HANGS_UP, Ordering::Release),
            _ => tracing::debug!(%address, "connected"),
        }
        common.scripts.set_read_only_calls(read_only_scripts.unwrap_or(true));
        common.look_at_policy(&link);
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

impl Connector for Node {
    fn connect(self: Arc<Self>, deadline: Instant) -> BoxFuture<'static, Result<Arc<Link>, DialError>> {
        async move {
            let now = ambient::monotonic();
            // It ends a little before its first caller does, so that the caller hears what it was that took so long.
            let left = deadline.saturating_duration_since(now);
            let last = now + left - (left / 20).min(LAST_WORD);
            let timeout = self.common.config.connect_timeout_ms.map(|timeout| now + Duration::from_millis(timeout));
            let bound = timeout.map_or(last, |timeout| timeout.min(last));
            let step = Mutex::new(Step::Connect);
            let connected = background::timeout_at(bound, Arc::clone(&self).connect_now(bound, &step)).await;
            connected.unwrap_or_else(|_| Err(step.into_inner().took_too_long(bound < last)))
        }
        .boxed()
    }

    fn reconnected(&self) {
        self.common.counters.reconnects.fetch_add(1, Ordering::Relaxed);
    }
}

impl Dialer for Node {
    fn dial(self: Arc<Self>, bound: Instant) -> BoxFuture<'static, Result<Stream, DialError>> {
        async move {
            let step = Mutex::new(Step::Connect);
            let address = self.address(bound, &step).await?;
            dial(&address, self.common.config.tls.as_ref(), &step).await
        }
        .boxed()
    }

    fn config(&self) -> &RedisConfig {
        &self.common.config
    }

    fn counters(&self) -> &EngineCounters {
        &self.common.counters
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
