//! A transport that a test can reach into: every batch passes it, and something may happen before one, or instead of one.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::client::Script;
use crate::engine::redis::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};

pub(super) type Answered = Result<Vec<Reply>, Failure>;
type Sending = BoxFuture<'static, Answered>;

struct Rule {
    which: Box<dyn Fn(&Batch) -> bool + Send>,
    skip: usize,
    instead: Box<dyn FnOnce(Sending) -> Sending + Send>,
}

pub(super) struct Tap {
    inner: Arc<dyn Transport>,
    transactions: bool,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<Batch>>,
}

impl Tap {
    /// Without `transactions` it is as somebody else's client.
    pub(super) fn new(inner: Arc<dyn Transport>, transactions: bool) -> Arc<Self> {
        Arc::new(Self { inner, transactions, rules: Mutex::default(), seen: Mutex::default() })
    }

    /// For one batch of that kind, after `skip` more of them: `instead` gets what would have been done.
    pub(super) fn once<F>(
        &self,
        which: impl Fn(&Batch) -> bool + Send + 'static,
        skip: usize,
        instead: impl FnOnce(Sending) -> F + Send + 'static,
    ) where
        F: Future<Output = Answered> + Send + 'static,
    {
        let instead = Box::new(move |sending| instead(sending).boxed());
        self.rules.lock().push(Rule { which: Box::new(which), skip, instead });
    }

    /// Does something before one batch of that kind goes out.
    pub(super) fn before<F>(&self, which: impl Fn(&Batch) -> bool + Send + 'static, skip: usize, first: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.once(which, skip, async move |sending| {
            first.await;
            sending.await
        });
    }

    /// Lets one batch of that kind be done, and its answer be lost.
    pub(super) fn lose(&self, which: impl Fn(&Batch) -> bool + Send + 'static) {
        self.once(which, 0, async |sending| {
            sending.await?;
            Err(lost())
        });
    }

    /// Everything that was to be sent since the last time.
    pub(super) fn seen(&self) -> Vec<Batch> {
        std::mem::take(&mut *self.seen.lock())
    }
}

/// An answer that did not come.
pub(super) fn lost() -> Failure {
    Failure::Lost(Error::new(Code::Unavailable, Outcome::Unknown, "the connection was lost"))
}

/// Batches with that command.
pub(super) fn command(name: &'static str) -> impl Fn(&Batch) -> bool + Send + 'static {
    move |batch| batch.commands.iter().any(|command| command[0] == name)
}

/// Calls of that script.
pub(super) fn script(script: &'static Script) -> impl Fn(&Batch) -> bool + Send + 'static {
    move |batch| batch.commands.iter().any(|command| command.len() > 1 && script.is(&command[1]))
}

impl Transport for Tap {
    fn send(&self, line: Line, slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Answered> {
        if !self.transactions {
            assert!(!batch.atomic && batch.commands.len() == 1, "only single commands go through somebody else's client");
        }
        self.seen.lock().push((*batch).clone());
        let rule = {
            let mut rules = self.rules.lock();
            let place = rules.iter_mut().position(|rule| {
                let applies = (rule.which)(&batch);
                let now = applies && rule.skip == 0;
                rule.skip -= usize::from(applies && !now);
                now
            });
            place.map(|place| rules.remove(place).instead)
        };
        let (inner, call) = (Arc::clone(&self.inner), call.clone());
        let sending = async move { inner.send(line, slot, batch, &call).await }.boxed();
        match rule {
            Some(instead) => instead(sending),
            None => sending,
        }
    }

    fn ready(&self, line: Line, slot: Slot, deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        self.inner.ready(line, slot, deadline)
    }

    fn transactions(&self) -> bool {
        self.transactions
    }

    fn scripts(&self) -> &Scripts {
        self.inner.scripts()
    }

    fn min_acked_replicas(&self) -> u32 {
        self.inner.min_acked_replicas()
    }

    fn counters(&self) -> &EngineCounters {
        self.inner.counters()
    }

    fn close(&self) {
        self.inner.close();
    }
}
