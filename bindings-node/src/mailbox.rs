//! What native threads have to say to one JavaScript environment, and the wake-up that makes it listen.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Status, sys};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use zlink_store::Error;
use zlink_store::host::{Failure, Reply};

use crate::work::Switch;

/// Weak: it keeps no process alive by itself; JavaScript says when it shall.
type Wake = ThreadsafeFunction<(), napi::Unknown<'static>, (), Status, false, true>;

/// Keeps a batch's memory for the next one up to this size.
const KEPT: usize = 1 << 20;

/// One per environment (main thread or worker).
pub(crate) struct Mailbox {
    /// Records for JavaScript.
    records: Mutex<Vec<u8>>,
    /// Whether a wake-up is on its way that will find whatever lies in `records` now.
    woken: AtomicBool,
    wake: Wake,
    closed: AtomicBool,
    next: AtomicU32,
    /// What cancels operations that have a signal, by ticket.
    pub(crate) switches: Waiting<Arc<Switch>>,
    /// Byte strings too large to be copied twice; fetched by number.
    pub(crate) large: Waiting<Bytes>,
    /// Who waits for a part of a payload.
    pub(crate) segments: Waiting<oneshot::Sender<Result<Bytes, Error>>>,
    /// Who waits for the user's Redis client.
    pub(crate) replies: Waiting<oneshot::Sender<Result<Reply, Failure>>>,
}

impl Mailbox {
    pub(crate) fn new(wake: &Function<'_, (), napi::Unknown<'static>>) -> napi::Result<Self> {
        Ok(Self {
            records: Mutex::default(),
            woken: AtomicBool::new(false),
            wake: wake.build_threadsafe_function::<()>().callee_handled::<false>().weak::<true>().build()?,
            closed: AtomicBool::new(false),
            next: AtomicU32::new(0),
            switches: Waiting::default(),
            large: Waiting::default(),
            segments: Waiting::default(),
            replies: Waiting::default(),
        })
    }

    /// Puts records in without a wake-up: from the JavaScript thread, which looks itself.
    pub(crate) fn leave(&self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.records.lock());
    }

    /// Puts records in and wakes JavaScript.
    pub(crate) fn post(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.leave(write);
        if !self.woken.swap(true, Ordering::AcqRel) && !self.is_closed() {
            // `Closing` means that the environment ends: nobody is left to hear it.
            self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    pub(crate) fn has_records(&self) -> bool {
        !self.records.lock().is_empty()
    }

    /// Moves all records into `target` and returns their length; if they do not fit, moves nothing and returns the length
    /// needed, negative.
    pub(crate) fn collect(&self, target: &mut [u8]) -> i64 {
        // Before the records are taken: what comes later finds the flag down and wakes again.
        self.woken.store(false, Ordering::Release);
        let mut records = self.records.lock();
        let length = i64::try_from(records.len()).unwrap_or(i64::MAX);
        let Some(place) = target.get_mut(..records.len()) else { return -length };
        place.copy_from_slice(&records);
        records.clear();
        records.shrink_to(KEPT);
        length
    }

    /// A number for a question or a large byte string.
    pub(crate) fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The environment ends: whoever waits for JavaScript is told so, and nothing wakes it again.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.switches.clear();
        self.segments.clear();
        self.replies.clear();
        self.large.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether the wake-up keeps the process alive. From the JavaScript thread only.
    #[expect(unsafe_code, reason = "the safe wrapper wants to be owned by one")]
    pub(crate) fn hold_process(&self, env: napi::Env, hold: bool) {
        self.wake.handle.with_read_aborted(|aborted| {
            if aborted {
                return;
            }
            let change = if hold { sys::napi_ref_threadsafe_function } else { sys::napi_unref_threadsafe_function };
            // SAFETY: the function is alive, for it was not aborted and we hold its lock; we are on the thread of `env`.
            unsafe { change(env.raw(), self.wake.raw()) };
        });
    }
}

/// What waits under a number until JavaScript names that number.
pub(crate) struct Waiting<T>(Mutex<HashMap<u32, T>>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Waiting<T> {
    pub(crate) fn put(&self, number: u32, what: T) {
        self.0.lock().insert(number, what);
    }

    pub(crate) fn take(&self, number: u32) -> Option<T> {
        self.0.lock().remove(&number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<T>
    where
        T: Clone,
    {
        self.0.lock().get(&number).cloned()
    }

    fn clear(&self) {
        // Dropped outside the lock: it may wake somebody.
        let dropped = std::mem::take(&mut *self.0.lock());
        drop(dropped);
    }
}
