//! Operations under way.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use parking_lot::RwLock;

use super::acquires::Acquire;
use super::answer::Answer;
use super::mailbox::Mailbox;
use super::wire::{Record, tell};
use crate::call::{Operation, StoreStats};
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobRenewResult, Error, ReadResult, ReleaseResult, RenewResult, ScanResult, StateDeleteResult,
    StateEntry, StateSetResult, StoreTime, WriteResult,
};
use crate::location::LocationStore;
use crate::project::{DistributedLocks, LockLease, Project};
use crate::relocation::RelocationStore;

/// What requests are addressed to.
#[derive(Clone, Debug)]
pub enum Store {
    /// A Location Store.
    Location(LocationStore),
    /// A Relocation Store.
    Relocation(RelocationStore),
    /// A project's state; it closes its locks, too.
    Project(Project),
    /// The locks of one invocation.
    Locks(DistributedLocks),
    /// A lease.
    Lease(LockLease),
}

impl Store {
    /// Whether it answers inside the call that submits.
    pub fn answers_inline(&self) -> bool {
        match self {
            Self::Location(store) => store.answers_inline(),
            Self::Relocation(store) => store.answers_inline(),
            Self::Project(project) => project.answers_inline(),
            Self::Locks(locks) => locks.project().answers_inline(),
            Self::Lease(lease) => lease.project().answers_inline(),
        }
    }

    /// What it has counted so far.
    pub fn stats(&self) -> StoreStats {
        match self {
            Self::Location(store) => store.stats(),
            Self::Relocation(store) => store.stats(),
            Self::Project(project) => project.stats(),
            Self::Locks(locks) => locks.project().stats(),
            Self::Lease(lease) => lease.project().stats(),
        }
    }

    pub(super) fn ping(&self) -> Operation<StoreTime> {
        match self {
            Self::Location(store) => store.ping(),
            Self::Relocation(store) => store.ping(),
            Self::Project(project) => project.ping(),
            Self::Locks(locks) => locks.project().ping(),
            Self::Lease(lease) => lease.project().ping(),
        }
    }

    pub(super) fn close(&self) -> BoxFuture<'static, ()> {
        match self.clone() {
            Self::Location(store) => Box::pin(async move { store.close().await }),
            Self::Relocation(store) => Box::pin(async move { store.close().await }),
            Self::Project(project) => Box::pin(async move { project.close().await }),
            // They live as long as their project.
            Self::Locks(_) | Self::Lease(_) => Box::pin(std::future::ready(())),
        }
    }
}

/// The stores of one bridge, by number. A number is never used again.
#[derive(Default)]
pub(super) struct Stores {
    open: RwLock<HashMap<u32, Store>>,
    next: AtomicU32,
}

impl Stores {
    pub(super) fn add(&self, store: Store) -> u32 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.write().insert(number, store);
        number
    }

    /// A lease, and its number.
    fn numbered(&self, lease: LockLease) -> (u32, LockLease) {
        (self.add(Store::Lease(lease.clone())), lease)
    }

    pub(super) fn get(&self, number: u32) -> Option<Store> {
        self.open.read().get(&number).cloned()
    }

    pub(super) fn remove(&self, number: u32) {
        // Dropped outside the lock: the last handle of a store gives up its connection.
        let dropped = self.open.write().remove(&number);
        drop(dropped);
    }
}

/// Looks stores up for a row of requests, most of which go to one store.
pub(super) struct Cached<'a> {
    stores: &'a Stores,
    last: Option<(u32, Option<Store>)>,
}

impl<'a> Cached<'a> {
    pub(super) fn new(stores: &'a Stores) -> Self {
        Self { stores, last: None }
    }

    pub(super) fn get(&mut self, number: u32) -> Option<&Store> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            self.last = Some((number, self.stores.get(number)));
        }
        self.last.as_ref().and_then(|(_, store)| store.as_ref())
    }
}

/// One operation of the core.
pub(super) enum Work {
    Read(Operation<ReadResult>),
    Write(Operation<WriteResult>),
    Scan(Operation<ScanResult>),
    Put(Operation<BlobPutResult>),
    BlobRead(Operation<BlobReadResult>),
    Renew(Operation<BlobRenewResult>),
    StateGet(Operation<Option<StateEntry>>),
    StateSet(Operation<StateSetResult>),
    StateDelete(Operation<StateDeleteResult>),
    /// The lease gets a number among the stores.
    Acquire(Arc<Acquire>, Arc<Stores>),
    Attach(Operation<Option<LockLease>>, Arc<Stores>),
    LockRenew(Operation<RenewResult>),
    LockRelease(Operation<ReleaseResult>),
    Done(Operation<()>),
    Time(Operation<StoreTime>),
    Close(BoxFuture<'static, ()>),
    /// Cancelled: nothing is left of it.
    Dropped,
}

impl Work {
    /// Counts it as under way, so that a store that is closed after this waits for it.
    fn begin(&mut self) {
        match self {
            Self::Read(operation) => operation.begin(),
            Self::Write(operation) => operation.begin(),
            Self::Scan(operation) => operation.begin(),
            Self::Put(operation) => operation.begin(),
            Self::BlobRead(operation) => operation.begin(),
            Self::Renew(operation) => operation.begin(),
            Self::StateGet(operation) => operation.begin(),
            Self::StateSet(operation) => operation.begin(),
            Self::StateDelete(operation) => operation.begin(),
            Self::Acquire(acquire, _) => acquire.begin(),
            Self::Attach(operation, _) => operation.begin(),
            Self::LockRenew(operation) => operation.begin(),
            Self::LockRelease(operation) => operation.begin(),
            Self::Done(operation) => operation.begin(),
            Self::Time(operation) => operation.begin(),
            Self::Close(_) | Self::Dropped => {}
        }
    }

    pub(super) fn acquire(&self) -> Option<&Arc<Acquire>> {
        match self {
            Self::Acquire(acquire, _) => Some(acquire),
            _ => None,
        }
    }

    /// Whether it may compute for long in one go, so that it must not hold up others.
    pub(super) fn is_heavy(&self) -> bool {
        matches!(self, Self::Scan(_) | Self::Put(_) | Self::BlobRead(_))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        fn ask<F: Future + Unpin>(future: &mut F, context: &mut Context<'_>, answer: fn(F::Output) -> Answer) -> Poll<Answer> {
            Pin::new(future).poll(context).map(answer)
        }
        let polled = catch_unwind(AssertUnwindSafe(|| match self {
            Self::Read(operation) => ask(operation, context, Answer::Read),
            Self::Write(operation) => ask(operation, context, Answer::Write),
            Self::Scan(operation) => ask(operation, context, Answer::Scan),
            Self::Put(operation) => ask(operation, context, Answer::Put),
            Self::BlobRead(operation) => ask(operation, context, Answer::BlobRead),
            Self::Renew(operation) => ask(operation, context, Answer::Renew),
            Self::StateGet(operation) => ask(operation, context, Answer::StateGet),
            Self::StateSet(operation) => ask(operation, context, Answer::StateSet),
            Self::StateDelete(operation) => ask(operation, context, Answer::StateDelete),
            Self::Acquire(acquire, stores) => acquire.poll(context).map(|result| match result {
                Some(result) => Answer::Lease(result.map(|lease| lease.map(|lease| stores.numbered(lease)))),
                None => Answer::Cancelled,
            }),
            Self::Attach(operation, stores) => Pin::new(operation)
                .poll(context)
                .map(|result| Answer::Lease(result.map(|lease| lease.map(|lease| stores.numbered(lease))))),
            Self::LockRenew(operation) => ask(operation, context, Answer::LockRenew),
            Self::LockRelease(operation) => ask(operation, context, Answer::LockRelease),
            Self::Done(operation) => ask(operation, context, Answer::Done),
            Self::Time(operation) => ask(operation, context, Answer::Time),
            Self::Close(closing) => ask(closing, context, |()| Answer::Done(Ok(()))),
            Self::Dropped => Poll::Ready(Answer::Cancelled),
        }));
        // A fault of ours must not leave anybody without an answer.
        polled.unwrap_or_else(|_| Poll::Ready(Answer::Done(Err(Error::internal("the operation panicked")))))
    }
}

/// An operation with the ticket under which the other side waits for it.
pub(super) struct Running {
    ticket: u32,
    work: Work,
    waker: Option<Waker>,
}

impl Running {
    pub(super) fn new(ticket: u32, mut work: Work) -> Self {
        work.begin();
        Self { ticket, work, waker: None }
    }

    pub(super) fn ticket(&self) -> u32 {
        self.ticket
    }

    pub(super) fn is_heavy(&self) -> bool {
        self.work.is_heavy()
    }

    /// Polls once, without anybody being woken later.
    pub(super) fn poll_now(&mut self) -> Poll<Answer> {
        self.work.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Dropping the operation is what cancels it: what was not yet sent is never sent.
    pub(super) fn cancel(&mut self) {
        self.work = Work::Dropped;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Running {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
        let ticket = self.ticket;
        self.work.poll(context).map(|answer| Finished { ticket, answer })
    }
}

/// An operation that is over.
pub(super) struct Finished {
    pub(super) ticket: u32,
    pub(super) answer: Answer,
}

impl Finished {
    /// Gives the answer to the thread that waits for it, if there is one; else packs it into `out`.
    pub(super) fn give_or_pack(self, mailbox: &Mailbox, out: &mut Vec<u8>) {
        match mailbox.awaited.who(self.ticket) {
            Some(waiter) => {
                let mut record = Vec::new();
                self.pack(mailbox, &mut record);
                waiter.answer(record);
            }
            None => self.pack(mailbox, out),
        }
    }

    pub(super) fn pack(self, mailbox: &Mailbox, out: &mut Vec<u8>) {
        let start = out.len();
        self.answer.pack(self.ticket, mailbox, out);
        if out.len() - start > mailbox.dialect.largest_record {
            let number = mailbox.keep(out.split_off(start).into());
            Record::begin(out, tell::BIG, self.ticket, number).end();
        }
    }
}

/// Cancels one operation that runs by itself.
#[derive(Default)]
pub(super) struct Switch {
    thrown: AtomicBool,
    waker: AtomicWaker,
}

impl Switch {
    pub(super) fn throw(&self) {
        self.thrown.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}

/// An operation that runs by itself, with what cancels it.
pub(super) struct Switched {
    pub(super) running: Running,
    pub(super) switch: Arc<Switch>,
}

impl Future for Switched {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.switch.waker.register(context.waker());
        if self.switch.thrown.load(Ordering::SeqCst) {
            self.running.work = Work::Dropped;
        }
        Pin::new(&mut self.running).poll(context)
    }
}
