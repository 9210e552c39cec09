//! A transport that a test can reach into: every batch passes it, and a rule may do something else with it than send it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::client::Script;
use crate::engine::redis::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};

pub(super) type Answered = Result<Vec<Reply>, Failure>;
type Happens = BoxFuture<'static, Answered>;
type Rule = (Box<dyn Fn(&Batch) -> bool + Send>, Box<dyn FnOnce(Happens) -> Happens + Send>);

pub(super) struct Tap {
    inner: Arc<dyn Transport>,
    transactions: bool,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<Batch>>,
}

impl Tap {
    pub(super) fn new(inner: Arc<dyn Transport>, transactions: bool) -> Arc<Self> {
        Arc::new(Self { inner, transactions, rules: Mutex::default(), seen: Mutex::default() })
    }

    /// For the next batch of that kind, and that one only: `instead` gets what would have been done.
    pub(super) fn once<F>(
        &self,
        which: impl Fn(&Batch) -> bool + Send + 'static,
        instead: impl FnOnce(Happens) -> F + Send + 'static,
    ) where
        F: Future<Output = Answered> + Send + 'static,
    {
        self.rules.lock().push((Box::new(which), Box::new(move |send| instead(send).boxed())));
    }

    /// Everything that was to be sent since the last time.
    pub(super) fn seen(&self) -> Vec<Batch> {
        std::mem::take(&mut *self.seen.lock())
    }
}

impl Transport for Tap {
    fn send(&self, line: Line, slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Answered> {
        if !self.transactions {
            assert!(!batch.atomic && batch.commands.len() == 1, "only single commands go through somebody else's client");
        }
        self.seen.lock().push((*batch).clone());
        let rule = {
            let mut rules = self.rules.lock();
            let place = rules.iter().position(|(which, _)| which(&batch));
            place.map(|place| rules.remove(place).1)
        };
        let (inner, call) = (Arc::clone(&self.inner), call.clone());
        let send = async move { inner.send(line, slot, batch, &call).await }.boxed();
        match rule {
            Some(instead) => instead(send),
            None => send,
        }
    }

    fn ready(&self, line: Line, slot: Slot, deadline: std::time::Instant) -> BoxFuture<'static, Result<(), Error>> {
        self.inner.ready(line, slot, deadline)
    }

    fn transactions(&self) -> bool {
        self.transactions
    }

    fn scripts(&self) -> &Scripts {
        self.inner.scripts()
    }

    fn counters(&self) -> &EngineCounters {
        self.inner.counters()
    }

    fn min_acked_replicas(&self) -> u32 {
        self.inner.min_acked_replicas()
    }
}

/// What a caller is told whose answer got lost.
pub(super) fn lost() -> Failure {
    Failure::Lost(Error::new(Code::Unavailable, Outcome::Unknown, "the connection was cut"))
}

/// Calls of one script, by hash or by text.
pub(super) fn runs(script: &'static Script) -> impl Fn(&Batch) -> bool + Send + 'static {
    move |batch| batch.commands.iter().any(|command| command.get(1).is_some_and(|what| script.is(what)))
}

/// Commands of one name.
pub(super) fn named(name: &'static str) -> impl Fn(&Batch) -> bool + Send + 'static {
    move |batch| batch.commands.iter().any(|command| command[0] == name.as_bytes())
}
