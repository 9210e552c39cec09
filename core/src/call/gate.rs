//! The way into a store: open or closed, bounded by bytes and time, counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::stats::{Counters, EngineCounters, Kind, StoreStats};
use super::{Budget, Call, Cancellation, Operation};
use crate::contract::{Code, Error, limits};
use crate::{ambient, background};

/// An operation timeout within its range.
#[derive(Clone, Copy)]
pub(crate) struct OperationTimeout(Duration);

impl OperationTimeout {
    pub(crate) fn new(timeout_ms: u64) -> Result<Self, Error> {
        if !(1..=limits::MAX_OPERATION_TIMEOUT_MS).contains(&timeout_ms) {
            let said = format!("must be 1..={} ms, got {timeout_ms}", limits::MAX_OPERATION_TIMEOUT_MS);
            return Err(Error::argument("operationTimeout", said));
        }
        Ok(Self(Duration::from_millis(timeout_ms)))
    }
}

pub(crate) struct Gate {
    timeout: Duration,
    inline: bool,
    closed: AtomicBool,
    /// Thrown when the store is closed: nobody need wait any more.
    closing: Cancellation,
    idle: Notify,
    counters: Counters,
}

impl Gate {
    /// `inline`: the engine answers on the first poll, so no timer is needed.
    pub(crate) fn new(OperationTimeout(timeout): OperationTimeout, inline: bool) -> Arc<Self> {
        Arc::new(Self {
            timeout,
            inline,
            closed: AtomicBool::new(false),
            closing: Cancellation::new(),
            idle: Notify::new(),
            counters: Counters::default(),
        })
    }

    pub(crate) fn is_inline(&self) -> bool {
        self.inline
    }

    pub(crate) fn stats(&self, engine: Option<&EngineCounters>) -> StoreStats {
        self.counters.snapshot(engine)
    }

    /// How long an operation may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Makes an operation of what `start` starts. `bytes` is what it holds in flight, out of `budget`.
    pub(crate) fn pass<T, F>(self: &Arc<Self>, kind: Kind, budget: &'static Budget, bytes: usize, start: F) -> Operation<T>
    where
        F: FnOnce(Call) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.pass_after(Duration::ZERO, kind, budget, bytes, start)
    }

    /// As [`pass`](Self::pass), for an operation that may wait so long for something, and is then still to be answered within
    /// the operation timeout. Closing the store ends it, if there is a wait.
    pub(crate) fn pass_after<T, F>(
        self: &Arc<Self>,
        wait: Duration,
        kind: Kind,
        budget: &'static Budget,
        bytes: usize,
        start: F,
    ) -> Operation<T>
    where
        F: FnOnce(Call) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let gate = Arc::clone(self);
        Operation::new(
            Arc::clone(self),
            Box::pin(async move {
                let began = ambient::monotonic();
                gate.counters.begun(kind);
                let deadline = began + wait + gate.timeout;
                let call = match kind {
                    Kind::Read | Kind::Scan | Kind::Ping | Kind::Attach => Call::reading(deadline),
                    Kind::Write | Kind::Put | Kind::Renew | Kind::Delete | Kind::Acquire | Kind::Release => {
                        Call::writing(deadline)
                    }
                };
                let told = call.clone();
                let work = async {
                    let _room = budget.room(bytes).await?;
                    let work = start(told);
                    if wait.is_zero() {
                        return work.await;
                    }
                    tokio::select! {
                        biased;
                        result = work => result,
                        () = gate.closing.cancelled() => Err(Error::closed().with_outcome(call.outcome())),
                    }
                };
                let mut work = std::pin::pin!(work);
                // What is answered at the first poll (always, in memory) needs no timer.
                let result = match futures_util::poll!(work.as_mut()) {
                    Poll::Ready(result) => result,
                    Poll::Pending => {
                        let limited = {
                            let _timers = background::handle().enter();
                            tokio::time::timeout_at(deadline.into(), work)
                        };
                        limited.await.unwrap_or_else(|_| {
                            let said = format!("no answer within the operation timeout of {} ms", gate.timeout.as_millis());
                            Err(Error::new(Code::Timeout, call.outcome(), said))
                        })
                    }
                };
                let took = ambient::monotonic().duration_since(began);
                gate.counters.finished(took, result.as_ref().err().map(Error::code));
                result
            }),
        )
    }

    /// Lets nobody in any more and waits for what is under way, at most the operation timeout.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.cancel();
        let empty = async {
            loop {
                let emptied = self.idle.notified();
                if self.counters.in_flight.load(Ordering::SeqCst) == 0 {
                    return;
                }
                emptied.await;
            }
        };
        let limited = {
            let _timers = background::handle().enter();
            tokio::time::timeout(self.timeout, empty)
        };
        // Past the timeout every operation has been answered already; what is left is only being dropped.
        let _ = limited.await;
    }
}

/// An operation that was let in and is not over: a closing of its store waits for it.
pub struct UnderWay(Arc<Gate>);

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnderWay")
    }
}

impl UnderWay {
    pub(super) fn enter(gate: Arc<Gate>) -> Result<Self, Error> {
        gate.counters.in_flight.fetch_add(1, Ordering::SeqCst);
        let entered = Self(gate);
        if entered.0.closed.load(Ordering::SeqCst) {
            return Err(Error::closed());
        }
        Ok(entered)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.counters.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.closed.load(Ordering::SeqCst) {
            self.0.idle.notify_waiters();
        }
    }
}
