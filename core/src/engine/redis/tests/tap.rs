//! A transport that a test can reach into: every batch passes it, and something may happen before one, or instead of one.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::client::Script;
use crate::engine::redis::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};

pub(crate) type Answered = Result<Vec<Reply>, Failure>;
type Sending = BoxFuture<'static, Answered>;

struct Rule {
    which: Box<dyn Fn(&Batch) -> bool + Send>,
    skip: usize,
    instead: Box<dyn FnOnce(Sending) -> Sending + Send>,
}

pub(crate) struct Tap {
    inner: Arc<dyn Transport>,
    transactions: bool,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<(Line, Batch)>>,
    heaviest: Arc<AtomicUsize>,
}

impl Tap {
    /// Without `transactions` it is as somebody else's client.
    pub(crate) fn new(inner: Arc<dyn Transport>, transactions: bool) -> Arc<Self> {
        Arc::new(Self { inner, transactions, rules: Mutex::default(), seen: Mutex::default(), heaviest: Arc::default() })
    }

    /// For the next batch of that kind, and that one only: `instead` gets what would have been done.
    pub(crate) fn once<F>(
        &self,
        which: impl Fn(&Batch) -> bool + Send + 'static,
        instead: impl FnOnce(Sending) -> F + Send + 'static,
    ) where
        F: Future<Output = Answered> + Send + 'static,
    {
        self.once_after(0, which, instead);
    }

    /// As [`once`](Self::once), after `skip` more batches of that kind.
    pub(crate) fn once_after<F>(
        &self,
        skip: usize,
        which: impl Fn(&Batch) -> bool + Send + 'static,
        instead: impl FnOnce(Sending) -> F + Send + 'static,
    ) where
        F: Future<Output = Answered> + Send + 'static,
    {
        let instead = Box::new(move |sending| instead(sending).boxed());
        self.rules.lock().push(Rule { which: Box::new(which), skip, instead });
    }

    /// Does something before the next batch of that kind goes out.
    pub(crate) fn before<F>(&self, which: impl Fn(&Batch) -> bool + Send + 'static, first: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.before_after(0, which, first);
    }

    /// As [`before`](Self::before), after `skip` more batches of that kind.
    pub(crate) fn before_after<F>(&self, skip: usize, which: impl Fn(&Batch) -> bool + Send + 'static, first: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.once_after(skip, which, async move |sending| {
            first.await;
            sending.await
        });
    }

    /// Lets one batch of that kind be done, and its answer be lost.
    pub(crate) fn lose(&self, which: impl Fn(&Batch) -> bool + Send + 'static) {
        self.once(which, async |sending| {
            sending.await?;
            Err(lost())
        });
    }

    /// How much of what was to happen has not.
    pub(crate) fn left(&self) -> usize {
        self.rules.lock().len()
    }

    /// Everything that was to be sent since the last time.
    pub(crate) fn seen(&self) -> Vec<Batch> {
        self.lines().into_iter().map(|(_, batch)| batch).collect()
    }

    /// The bytes of the heaviest answer to one batch since the last time.
    pub(crate) fn heaviest(&self) -> usize {
        self.heaviest.swap(0, Ordering::SeqCst)
    }

    /// As [`seen`](Self::seen), with the line of each.
    pub(crate) fn lines(&self) -> Vec<(Line, Batch)> {
        std::mem::take(&mut *self.seen.lock())
    }
}

fn weight(reply: &Reply) -> usize {
    match reply {
        Reply::Bytes(bytes) => bytes.len(),
        Reply::Array(items) => items.iter().map(weight).sum(),
        _ => 0,
    }
}

/// An answer that did not come.
pub(crate) fn lost() -> Failure {
    Failure::Lost(Error::new(Code::Unavailable, Outcome::Unknown, "the connection was lost"))
}

/// Commands of one name.
pub(crate) fn named(name: &'static str) -> impl Fn(&Batch) -> bool + Send + 'static {
    move |batch| batch.commands.iter().any(|command| command[0] == name)
}

/// Calls of one script, by hash or by text.
pub(crate) fn runs(script: &'static Script) -> impl Fn(&Batch) -> bool + Send + 'static {
    move |batch| batch.commands.iter().any(|command| command.len() > 1 && script.is(&command[1]))
}

impl Transport for Tap {
    fn send(&self, line: Line, slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Answered> {
        if !self.transactions {
            assert!(!batch.atomic && batch.commands.len() == 1, "only single commands go through somebody else's client");
        }
        self.seen.lock().push((line, (*batch).clone()));
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
        let heaviest = Arc::clone(&self.heaviest);
        let sending = async move {
            let replies = inner.send(line, slot, batch, &call).await?;
            heaviest.fetch_max(replies.iter().map(weight).sum(), Ordering::SeqCst);
            Ok(replies)
        };
        let sending = sending.boxed();
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
