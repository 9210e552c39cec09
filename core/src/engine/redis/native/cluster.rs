//! A Cluster: every batch goes to the node that has its slot, and follows the slot where it goes.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::asking::{Asker, ask, first_answer, nobody};
use super::bounce::Bounces;
use super::common::Common;
use super::node::{Node, Place};
use super::redirect::{Redirect, redirect};
use super::table::{Layout, Table};
use crate::ambient::random;
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::answers::{self, Meaning};
use crate::engine::redis::bells::Dialer;
use crate::engine::redis::config::{Address, RedisConfig};
use crate::engine::redis::dial::{DialError, Step, Stream, dial};
use crate::engine::redis::lane::jittered;
use crate::engine::redis::link::Link;
use crate::engine::redis::transport::{Batch, Failure, Line, Reply, Slot};
use crate::{ambient, background};

/// Between two looks at the Cluster, at least.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// How long a look may take.
const LOOK: Duration = Duration::from_secs(5);
/// A connection that takes so long makes one ask whether the slot is still there.
const SLOW: Duration = Duration::from_millis(200);
/// So many redirections are followed at once; a slot that goes to and fro is waited for.
const HOPS: usize = 3;

pub(super) struct Cluster {
    common: Arc<Common>,
    seeds: Vec<Address>,
    asker: Asker,
    state: Mutex<State>,
    /// Told after each look.
    looked: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    table: Table,
    /// Who is asked first: it said last that it has a slot.
    knows: Option<Address>,
    looking: bool,
    looked: Option<Instant>,
    failed: Option<DialError>,
    closed: bool,
}

impl Cluster {
    /// No I/O.
    pub(super) fn new(common: Arc<Common>, seeds: &[Address]) -> Arc<Self> {
        let config = &common.config;
        let asker = Asker::new(config.username.as_deref(), config.password.as_deref(), config.tls.as_ref());
        Arc::new(Self { seeds: seeds.to_vec(), asker, common, state: Mutex::default(), looked: watch::Sender::default() })
    }

    /// Waits for the connection to the node that has the slot.
    pub(super) async fn link(self: &Arc<Self>, line: Line, slot: Slot, deadline: Instant) -> Result<Arc<Link>, Error> {
        loop {
            let node = self.node_of(slot, deadline).await?;
            let connecting = node.link(line, deadline);
            tokio::select! {
                biased;
                link = connecting => return link.inspect_err(|_| self.look()),
                () = self.leaves(slot, &node) => {}
            }
        }
    }

    pub(super) async fn carry(
        self: &Arc<Self>,
        line: Line,
        slot: Slot,
        batch: Arc<Batch>,
        call: &Call,
    ) -> Result<Vec<Reply>, Failure> {
        let mut bounces = Bounces::new(call.deadline);
        let mut asking: Option<Arc<Node>> = None;
        let mut hops = 0;
        loop {
            let (link, sent) = if let Some(node) = asking.take() {
                let link = match self.link_of(&node, line, call.deadline).await {
                    Ok(link) => link,
                    Err(error) => {
                        bounces.pause(error).await?;
                        continue;
                    }
                };
                let sent = link.send_asking(Arc::clone(&batch), call).await;
                (link, sent)
            } else {
                let link = self.link(line, slot, call.deadline).await.map_err(Failure::NotSent)?;
                let sent = link.send(Arc::clone(&batch), call).await;
                (link, sent)
            };
            let replies = match sent {
                Ok(replies) => replies,
                Err(Failure::NotSent(error)) => {
                    self.look();
                    bounces.again(&link, error).await?;
                    continue;
                }
                Err(lost) => {
                    self.look();
                    return Err(lost);
                }
            };
            let Some(redirect) = redirect(&batch, &replies) else {
                return Ok(self.heed(replies));
            };
            // Nothing was done.
            call.unmark_sent();
            match redirect {
                Redirect::Moved(address) => self.moved(slot, &address),
                Redirect::Ask(address) => asking = self.node_at(&address),
            }
            hops += 1;
            if hops > HOPS {
                let said = "the slot of the keys goes to and fro between nodes of the Cluster";
                bounces.pause(Error::new(Code::Unavailable, Outcome::NotApplied, said)).await?;
            }
        }
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let table = std::mem::take(&mut state.table);
        drop(state);
        table.nodes().for_each(|node| node.close());
        self.looked.send_replace(());
    }

    /// The node that has the slot, once there is one.
    async fn node_of(self: &Arc<Self>, slot: Slot, deadline: Instant) -> Result<Arc<Node>, Error> {
        let mut looked = self.looked.subscribe();
        loop {
            let failed = {
                let state = self.state.lock();
                if state.closed {
                    return Err(Error::closed());
                }
                if let Some(node) = state.table.node_of(slot) {
                    return Ok(Arc::clone(node));
                }
                let never = || {
                    Error::new(Code::Timeout, Outcome::NotApplied, "no node of the Cluster answered within the operation timeout")
                };
                state.failed.clone().or_else(|| state.looked.is_none().then(|| DialError { error: never(), lasting: false }))
            };
            let failed = match failed {
                Some(DialError { error, lasting: true }) => {
                    // The next caller may find it mended.
                    self.state.lock().failed = None;
                    return Err(error);
                }
                Some(DialError { error, .. }) => error,
                None => Error::new(Code::Unavailable, Outcome::NotApplied, "no node of the Cluster has the slot of the keys"),
            };
            self.look();
            if background::timeout_at(deadline, looked.changed()).await.is_err() {
                return Err(failed);
            }
        }
    }

    /// Until the slot has left `node`, asking from time to time.
    async fn leaves(self: &Arc<Self>, slot: Slot, node: &Arc<Node>) {
        let mut looked = self.looked.subscribe();
        loop {
            let still = |state: &State| state.table.node_of(slot).is_some_and(|now| Arc::ptr_eq(now, node));
            if !still(&self.state.lock()) {
                return;
            }
            let next = ambient::monotonic() + jittered(SLOW);
            if background::timeout_at(next, looked.changed()).await.is_err() {
                self.look();
            }
        }
    }

    async fn link_of(self: &Arc<Self>, node: &Node, line: Line, deadline: Instant) -> Result<Arc<Link>, Error> {
        // Who asked for it answers for its being there: it is not waited for long.
        let bound = deadline.min(ambient::monotonic() + 4 * SLOW);
        node.link(line, bound).await.inspect_err(|_| self.look())
    }

    /// What replies say of the Cluster that are not followed elsewhere. A redirection that came behind other replies says that
    /// the slot went away in between.
    fn heed(self: &Arc<Self>, mut replies: Vec<Reply>) -> Vec<Reply> {
        let mut stirs = false;
        for reply in &mut replies {
            if let Reply::Error { code, .. } = reply
                && matches!(code.as_str(), "MOVED" | "ASK")
            {
                *code = answers::APART.to_owned();
            }
            stirs |= matches!(answers::meaning(reply), Some(Meaning::Later(_) | Meaning::Elsewhere(_)));
        }
        if stirs {
            self.look();
        }
        replies
    }

    fn moved(self: &Arc<Self>, slot: Slot, address: &Address) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        state.table.moved(slot, address, || self.make(address));
        state.knows = Some(address.clone());
        drop(state);
        self.looked.send_replace(());
        self.look();
    }

    fn node_at(self: &Arc<Self>, address: &Address) -> Option<Arc<Node>> {
        let mut state = self.state.lock();
        (!state.closed).then(|| Arc::clone(state.table.node_at(address, || self.make(address))))
    }

    fn make(&self, address: &Address) -> Arc<Node> {
        Node::new(Arc::clone(&self.common), Place::At(address.clone()))
    }

    /// Sees to it that somebody asks how the Cluster is laid out.
    fn look(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.closed && !std::mem::replace(&mut state.looking, true) {
            let next = state.looked.map(|looked| looked + jittered(LOOK_PAUSE));
            background::handle().spawn(look(Arc::downgrade(self), next));
        }
    }

    /// Whom to ask: who should know, then all others in any order.
    fn candidates(&self) -> Vec<Address> {
        let state = self.state.lock();
        let mut others = state.table.addresses();
        others.extend(self.seeds.iter().cloned());
        let mut candidates: Vec<Address> = state.knows.iter().cloned().collect();
        drop(state);
        while !others.is_empty() {
            let [byte] = random(&*ambient::system());
            let other = others.swap_remove(usize::from(byte) % others.len());
            if !candidates.contains(&other) {
                candidates.push(other);
            }
        }
        candidates
    }

    async fn ask_anyone(&self, bound: Instant) -> Result<Layout, DialError> {
        let word = Bytes::from_static;
        let answered = first_answer(self.candidates().into_iter(), async |address: Address| {
            let answer = async {
                let link = self.asker.connect(&address, bound).await?;
                let reply = ask(&link, vec![word(b"CLUSTER"), word(b"SLOTS")], bound).await?;
                Layout::of(&reply, &address).ok_or_else(|| no_layout(&reply))
            };
            answer.await.map_err(|DialError { error, lasting }| {
                let said = format!("the one at {address}: {}", error.message());
                DialError { error: Error::new(error.code(), Outcome::NotApplied, said), lasting }
            })
        });
        answered.await.map_err(|failures| nobody(failures, "no node tells how the Cluster is laid out"))
    }
}

/// One look, which all wait for that want one.
async fn look(cluster: Weak<Cluster>, next: Option<Instant>) {
    if let Some(next) = next {
        tokio::time::sleep_until(next.into()).await;
    }
    let Some(cluster) = cluster.upgrade() else { return };
    let bound = ambient::monotonic() + LOOK;
    let answer = tokio::time::timeout_at(bound.into(), cluster.ask_anyone(bound)).await;
    let answer = answer.unwrap_or_else(|_| Err(DialError::passing("no node of the Cluster answers".to_owned())));
    let mut state = cluster.state.lock();
    state.looking = false;
    state.looked = Some(ambient::monotonic());
    state.knows = None;
    match answer {
        Ok(layout) => {
            state.failed = None;
            if !state.closed {
                state.table.learn(layout, |address| cluster.make(address));
            }
        }
        Err(failed) => {
            tracing::debug!(error = %failed.error, "nobody knows how the Cluster is laid out");
            state.failed = Some(failed);
        }
    }
    drop(state);
    cluster.looked.send_replace(());
}

fn no_layout(reply: &Reply) -> DialError {
    if let Reply::Error { message, .. } = reply
        && message.contains("cluster support disabled")
    {
        let said = "it is no node of a Cluster: use redis://";
        return DialError { error: Error::new(Code::Incompatible, Outcome::NotApplied, said), lasting: true };
    }
    match answers::meaning(reply) {
        Some(Meaning::Failed(error)) if error.code() == Code::Unauthenticated => DialError { error, lasting: true },
        Some(meaning) => DialError { error: meaning.into_error(), lasting: false },
        None => DialError::passing("it knows of no slots".to_owned()),
    }
}

impl Dialer for Cluster {
    /// What is published anywhere is heard everywhere.
    fn dial(self: Arc<Self>, bound: Instant) -> BoxFuture<'static, Result<Stream, DialError>> {
        async move {
            let answered = first_answer(self.candidates().into_iter(), async |address: Address| {
                dial(&address, self.common.config.tls.as_ref(), &Mutex::new(Step::Connect)).await
            });
            let dialled = tokio::time::timeout_at(bound.into(), answered).await;
            let late = || DialError::passing("no node of the Cluster can be reached".to_owned());
            dialled.map_err(|_| late())?.map_err(|failures| nobody(failures, "no node of the Cluster can be reached"))
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
