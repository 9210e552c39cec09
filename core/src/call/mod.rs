//! What every operation of every store goes through, whichever engine answers: argument errors first, then cancellation,
//! then the bound on bytes in flight, the operation timeout, counting, and closing.

mod budget;
mod cancel;
mod gate;
mod operation;
mod stats;

pub use cancel::Cancellation;
pub use operation::Operation;
pub use stats::StoreStats;

pub(crate) use budget::{BLOBS, Budget, SMALL};
pub(crate) use gate::Gate;
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
    sent: Option<Arc<AtomicBool>>,
}

impl Call {
    /// A call that changes nothing.
    pub(crate) fn reading(deadline: Instant) -> Self {
        Self { deadline, sent: None }
    }

    /// A call that may change something.
    pub(crate) fn writing(deadline: Instant) -> Self {
        Self { deadline, sent: Some(Arc::new(AtomicBool::new(false))) }
    }

    /// The engine calls this before it looks, for the last time, whether the caller is still there, and then sends: a caller
    /// that leaves in between is told `unknown` although nothing was sent, never the reverse.
    pub(crate) fn mark_sent(&self) {
        if let Some(sent) = &self.sent {
            sent.store(true, Ordering::SeqCst);
        }
    }

    /// The engine calls this when it is sure that what was sent did nothing and before it may send again.
    pub(crate) fn unmark_sent(&self) {
        if let Some(sent) = &self.sent {
            sent.store(false, Ordering::SeqCst);
        }
    }

    /// What to say of an operation that ends now without an answer.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.sent {
            Some(sent) if sent.load(Ordering::SeqCst) => Outcome::Unknown,
            _ => Outcome::NotApplied,
        }
    }
}
