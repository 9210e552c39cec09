//! What every operation of every store goes through, whichever engine answers: argument errors first, then cancellation,
//! then the bound on bytes in flight, the operation timeout, counting, and closing.

mod budget;
mod cancel;
mod gate;
mod operation;
mod stats;

pub use cancel::Cancellation;
pub use gate::UnderWay;
pub use operation::Operation;
pub use stats::StoreStats;

pub(crate) use budget::{BLOBS, Budget, SMALL};
pub(crate) use gate::{Gate, OperationTimeout};
pub(crate) use stats::{EngineCounters, Kind};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::contract::Outcome;

/// What an engine is told of one operation: until when, and a flag by which it says that bytes may have left.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The operation timeout's end. The caller is answered then whatever the engine does; the engine must not send later.
    pub(crate) deadline: Instant,
    sent: Sent,
}

#[derive(Clone, Debug)]
enum Sent {
    Reading,
    One(Arc<AtomicBool>),
    Joint(Arc<[Call]>),
}

impl Call {
    /// A call that changes nothing.
    pub(crate) fn reading(deadline: Instant) -> Self {
        Self { deadline, sent: Sent::Reading }
    }

    /// A call that may change something.
    pub(crate) fn writing(deadline: Instant) -> Self {
        Self { deadline, sent: Sent::One(Arc::new(AtomicBool::new(false))) }
    }

    /// A part of the same call, which may take until `deadline` at most.
    pub(crate) fn until(&self, deadline: Instant) -> Self {
        Self { deadline: self.deadline.min(deadline), sent: self.sent.clone() }
    }

    /// What goes out for several callers at once: marking it marks each of `calls`; it ends with the last of them.
    pub(crate) fn joint(calls: Vec<Self>, deadline: Instant) -> Self {
        let deadline = calls.iter().map(|call| call.deadline).max().unwrap_or(deadline);
        Self { deadline, sent: Sent::Joint(calls.into()) }
    }

    /// The engine calls this before it looks, for the last time, whether the caller is still there, and then sends: a caller
    /// that leaves in between is told `unknown` although nothing was sent, never the reverse.
    pub(crate) fn mark_sent(&self) {
        self.set_sent(true);
    }

    /// The engine calls this when it is sure that what was sent did nothing and before it may send again.
    pub(crate) fn unmark_sent(&self) {
        self.set_sent(false);
    }

    fn set_sent(&self, now: bool) {
        match &self.sent {
            Sent::Reading => {}
            Sent::One(sent) => sent.store(now, Ordering::SeqCst),
            Sent::Joint(calls) => calls.iter().for_each(|call| call.set_sent(now)),
        }
    }

    /// What to say of an operation that ends now without an answer.
    pub(crate) fn outcome(&self) -> Outcome {
        let sent = match &self.sent {
            Sent::Reading => false,
            Sent::One(sent) => sent.load(Ordering::SeqCst),
            Sent::Joint(calls) => calls.iter().any(|call| call.outcome() == Outcome::Unknown),
        };
        if sent { Outcome::Unknown } else { Outcome::NotApplied }
    }
}
