//! What native threads have to say to the other side, and the wake-up that makes it listen.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::awaited::Awaited;
use super::bridge::Dialect;
use super::log::LogListener;
use super::wire::{Record, tell};
use crate::contract::Error;

/// Keeps a batch's memory for the next one up to this size.
const KEPT: usize = 1 << 20;

pub(super) struct Mailbox {
    pub(super) dialect: Dialect,
    records: Mutex<Vec<u8>>,
    /// Whether a wake-up is on its way that will find whatever lies in `records` now.
    woken: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
    closed: AtomicBool,
    next: AtomicU32,
    /// Byte strings too large to be copied twice; fetched by number.
    pub(super) large: Waiting<Bytes>,
    /// Who waits for one answer alone.
    pub(super) awaited: Awaited,
    /// Who waits for a part of a payload.
    pub(super) segments: Waiting<oneshot::Sender<Result<Bytes, Error>>>,
}

impl Mailbox {
    pub(super) fn new(dialect: Dialect, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            dialect,
            records: Mutex::default(),
            woken: AtomicBool::new(false),
            wake,
            closed: AtomicBool::new(false),
            next: AtomicU32::new(0),
            large: Waiting::default(),
            awaited: Awaited::default(),
            segments: Waiting::default(),
        }
    }

    /// Puts records in without waking the other side, which is looking anyway.
    pub(super) fn leave(&self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.records.lock());
    }

    /// Puts records in and wakes the other side.
    pub(super) fn post(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.leave(write);
        if !self.woken.swap(true, Ordering::SeqCst) && !self.is_closed() {
            (self.wake)();
        }
    }

    pub(super) fn has_records(&self) -> bool {
        !self.records.lock().is_empty()
    }

    /// Exchanges all records for the (emptied) memory in `batch`.
    pub(super) fn swap(&self, batch: &mut Vec<u8>) {
        batch.clear();
        batch.shrink_to(KEPT);
        // Before the records are taken: what comes later finds the flag down and wakes again.
        self.woken.store(false, Ordering::Release);
        std::mem::swap(&mut *self.records.lock(), batch);
    }

    /// Exchanges all records as [`swap`](Self::swap) does, for a caller that comes back by itself: nobody else is woken for what
    /// is posted from now on, until the next `swap` or [`left`](Self::left).
    pub(super) fn swap_and_come_back(&self, batch: &mut Vec<u8>) {
        batch.clear();
        batch.shrink_to(KEPT);
        self.woken.store(true, Ordering::Release);
        std::mem::swap(&mut *self.records.lock(), batch);
    }

    /// Who was to come back does not.
    pub(super) fn left(&self) {
        self.woken.store(false, Ordering::SeqCst);
        if self.has_records() {
            self.post(|_| {});
        }
    }

    /// A number for a question or a large byte string.
    pub(super) fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps a byte string until its number is named.
    pub(super) fn keep(&self, bytes: Bytes) -> u32 {
        let number = self.number();
        self.large.put(number, bytes);
        number
    }

    /// The other side ends: whoever waits for it is told so, and nothing wakes it again.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.segments.clear();
        self.large.clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// Puts records of the binding's own in front of the other side. It outlives the bridge, and keeps no store alive.
#[derive(Clone)]
pub struct Outlet(pub(super) Arc<Mailbox>);

impl LogListener for Mailbox {
    fn event(&self, level: &str, target: &str, message: &str) {
        self.post(|out| {
            let mut record = Record::begin(out, tell::LOG, 0, 0);
            record.string(level.as_bytes()).string(target.as_bytes()).string(message.as_bytes());
            record.end();
        });
    }
}

impl Outlet {
    /// Puts records in and wakes the other side.
    pub fn post(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.0.post(write);
    }

    /// Whether the bridge is gone: nobody will see what is posted.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").field("closed", &self.is_closed()).finish()
    }
}

/// What waits under a number until the other side names that number.
pub(super) struct Waiting<T>(Mutex<HashMap<u32, T>>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Waiting<T> {
    pub(super) fn put(&self, number: u32, what: T) {
        self.0.lock().insert(number, what);
    }

    pub(super) fn take(&self, number: u32) -> Option<T> {
        self.0.lock().remove(&number)
    }

    fn clear(&self) {
        // Dropped outside the lock: it may wake somebody.
        let dropped = std::mem::take(&mut *self.0.lock());
        drop(dropped);
    }
}
