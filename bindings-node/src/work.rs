//! Operations under way.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use parking_lot::RwLock;
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobRenewResult, Error, LocationStore, Operation, ReadResult, RelocationStore, ScanResult,
    StoreStats, StoreTime, WriteResult,
};

use crate::answer::Answer;
use crate::mailbox::Mailbox;

/// A store that JavaScript opened.
#[derive(Clone)]
pub(crate) enum Store {
    Location(LocationStore),
    Relocation(RelocationStore),
}

impl Store {
    pub(crate) fn answers_inline(&self) -> bool {
        match self {
            Self::Location(store) => store.answers_inline(),
            Self::Relocation(store) => store.answers_inline(),
        }
    }

    pub(crate) fn stats(&self) -> StoreStats {
        match self {
            Self::Location(store) => store.stats(),
            Self::Relocation(store) => store.stats(),
        }
    }

    pub(crate) fn ping(&self) -> Operation<StoreTime> {
        match self {
            Self::Location(store) => store.ping(),
            Self::Relocation(store) => store.ping(),
        }
    }

    pub(crate) fn close(&self) -> BoxFuture<'static, ()> {
        match self.clone() {
            Self::Location(store) => Box::pin(async move { store.close().await }),
            Self::Relocation(store) => Box::pin(async move { store.close().await }),
        }
    }
}

/// The stores of one environment, by number.
#[derive(Default)]
pub(crate) struct Stores {
    open: RwLock<HashMap<u32, Store>>,
    next: AtomicU32,
}

impl Stores {
    pub(crate) fn add(&self, store: Store) -> u32 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.write().insert(number, store);
        number
    }

    pub(crate) fn get(&self, number: u32) -> Result<Store, Error> {
        self.open.read().get(&number).cloned().ok_or_else(Error::closed)
    }

    pub(crate) fn remove(&self, number: u32) {
        // Dropped outside the lock: the last handle of a store gives up its connection.
        let dropped = self.open.write().remove(&number);
        drop(dropped);
    }

    pub(crate) fn clear(&self) {
        let dropped = std::mem::take(&mut *self.open.write());
        drop(dropped);
    }
}

/// One operation of the core.
pub(crate) enum Work {
    Read(Operation<ReadResult>),
    Write(Operation<WriteResult>),
    Scan(Operation<ScanResult>),
    Put(Operation<BlobPutResult>),
    BlobRead(Operation<BlobReadResult>),
    Renew(Operation<BlobRenewResult>),
    Done(Operation<()>),
    Time(Operation<StoreTime>),
    Close(BoxFuture<'static, ()>),
    /// Cancelled: nothing is left of it.
    Dropped,
}

impl Work {
    /// Whether it may compute for long in one go, so that it must not hold up others.
    pub(crate) fn is_heavy(&self) -> bool {
        matches!(self, Self::Scan(_) | Self::Put(_) | Self::BlobRead(_))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        fn ask<F: Future + Unpin>(future: &mut F, context: &mut Context<'_>, answer: fn(F::Output) -> Answer) -> Poll<Answer> {
            Pin::new(future).poll(context).map(answer)
        }
        match self {
            Self::Read(operation) => ask(operation, context, Answer::Read),
            Self::Write(operation) => ask(operation, context, Answer::Write),
            Self::Scan(operation) => ask(operation, context, Answer::Scan),
            Self::Put(operation) => ask(operation, context, Answer::Put),
            Self::BlobRead(operation) => ask(operation, context, Answer::BlobRead),
            Self::Renew(operation) => ask(operation, context, Answer::Renew),
            Self::Done(operation) => ask(operation, context, Answer::Done),
            Self::Time(operation) => ask(operation, context, Answer::Time),
            Self::Close(closing) => ask(closing, context, |()| Answer::Done(Ok(()))),
            Self::Dropped => Poll::Ready(Answer::Cancelled),
        }
    }
}

/// An operation with the ticket under which JavaScript waits for it.
pub(crate) struct Running {
    pub(crate) ticket: u32,
    pub(crate) work: Work,
    pub(crate) switch: Option<Arc<Switch>>,
}

impl Running {
    /// Polls once, without anybody being woken later.
    pub(crate) fn poll_now(&mut self) -> Poll<Answer> {
        self.work.poll(&mut Context::from_waker(Waker::noop()))
    }
}

impl Future for Running {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(switch) = &self.switch {
            switch.waker.register(context.waker());
            if switch.is_thrown() {
                // Dropping the operation is what cancels it: what was not yet sent is never sent.
                self.work = Work::Dropped;
            }
        }
        let (ticket, cancellable) = (self.ticket, self.switch.is_some());
        self.work.poll(context).map(|answer| Finished { ticket, cancellable, answer })
    }
}

/// An operation that is over.
pub(crate) struct Finished {
    pub(crate) ticket: u32,
    pub(crate) cancellable: bool,
    pub(crate) answer: Answer,
}

impl Finished {
    pub(crate) fn pack(self, mailbox: &Mailbox, out: &mut Vec<u8>) {
        if self.cancellable {
            mailbox.switches.take(self.ticket);
        }
        self.answer.pack(self.ticket, mailbox, out);
    }
}

/// Cancels one operation.
#[derive(Default)]
pub(crate) struct Switch {
    thrown: AtomicBool,
    waker: AtomicWaker,
}

impl Switch {
    pub(crate) fn throw(&self) {
        self.thrown.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    pub(crate) fn is_thrown(&self) -> bool {
        self.thrown.load(Ordering::SeqCst)
    }
}
