//! Drives the operations of one bridge that are not answered inline.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, Stream};
use parking_lot::Mutex;

use super::acquires::Acquires;
use super::answer::Answer;
use super::mailbox::Mailbox;
use super::request::{Request, Unpacking};
use super::wire::{Rows, ask};
use super::work::{Cached, Finished, Running, Stores, Switch, Switched, Work};
use crate::background;

/// So many answers go out at the latest, even when more are at hand: the other side unpacks them meanwhile.
const DELIVERED_TOGETHER: usize = 128;

/// What was submitted and the driver has not yet taken.
#[derive(Default)]
pub(super) struct Inbox(Mutex<Vec<Item>>);

pub(super) enum Item {
    /// A row of requests, and what came beside the last of them.
    Batch(Bytes, Vec<Bytes>),
    Start(Running),
    Cancel(u32),
}

impl Inbox {
    pub(super) fn put(&self, item: Item) {
        self.0.lock().push(item);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// Switches of the operations that run by themselves, by ticket.
type Apart = Arc<Mutex<HashMap<u32, Arc<Switch>>>>;

/// What drives the operations: polled by one thread at a time ([`Turns`](super::turns)).
pub(super) struct Driver {
    inbox: Arc<Inbox>,
    stores: Arc<Stores>,
    mailbox: Arc<Mailbox>,
    acquires: Arc<Acquires>,
    running: FuturesUnordered<Running>,
    /// What the operations have in common, such as the batches in which they go out.
    rounds: FuturesUnordered<BoxFuture<'static, ()>>,
    apart: Apart,
    answers: Vec<u8>,
}

impl Driver {
    pub(super) fn new(inbox: &Arc<Inbox>, stores: &Arc<Stores>, mailbox: &Arc<Mailbox>, acquires: &Arc<Acquires>) -> Self {
        Self {
            inbox: Arc::clone(inbox),
            stores: Arc::clone(stores),
            mailbox: Arc::clone(mailbox),
            acquires: Arc::clone(acquires),
            running: FuturesUnordered::new(),
            rounds: FuturesUnordered::new(),
            apart: Apart::default(),
            answers: Vec::new(),
        }
    }

    fn take_what_came(&mut self) {
        let items = std::mem::take(&mut *self.inbox.0.lock());
        let mut cancelled = HashSet::new();
        for item in items {
            match item {
                Item::Cancel(ticket) => {
                    cancelled.insert(ticket);
                }
                // In order: a ticket that is free again may be in use by the next operation.
                Item::Start(running) => {
                    self.cancel(&mut cancelled);
                    self.drive(running);
                }
                Item::Batch(batch, beside) => {
                    self.cancel(&mut cancelled);
                    self.unpack(&batch, beside);
                }
            }
        }
        self.cancel(&mut cancelled);
    }

    fn unpack(&mut self, batch: &Bytes, mut beside: Vec<Bytes>) {
        let (all, mailbox) = (Arc::clone(&self.stores), Arc::clone(&self.mailbox));
        let mut stores = Cached::new(&all);
        let mut rows = Rows(batch);
        while let Some(row) = rows.next() {
            let fields = batch.slice_ref(row.fields);
            let request = Request { kind: row.kind, ticket: row.ticket, store: row.extra, fields: &fields };
            let beside = if rows.0.is_empty() { std::mem::take(&mut beside) } else { Vec::new() };
            let mut unpacking = Unpacking { copy: false, beside: beside.into_iter(), mailbox: &mailbox };
            let work = unpacking.unpack(request).and_then(|asked| asked.of(stores.get(row.extra), &all));
            if row.kind == ask::LOCK_ACQUIRE {
                self.acquires.looked_at(row.ticket, work.as_ref().ok().and_then(Work::acquire));
            }
            match work {
                Ok(work) => self.drive(Running::new(row.ticket, work)),
                Err(error) => {
                    let failed = Finished { ticket: row.ticket, answer: Answer::Done(Err(error)) };
                    failed.pack(&mailbox, &mut self.answers);
                }
            }
        }
    }

    fn cancel(&mut self, cancelled: &mut HashSet<u32>) {
        if cancelled.is_empty() {
            return;
        }
        for running in self.running.iter_mut().filter(|running| cancelled.contains(&running.ticket())) {
            running.cancel();
        }
        let apart = self.apart.lock();
        for switch in cancelled.drain().filter_map(|ticket| apart.get(&ticket)) {
            switch.throw();
        }
    }

    fn drive(&mut self, running: Running) {
        if !running.is_heavy() {
            self.running.push(running);
            return;
        }
        let (ticket, switch) = (running.ticket(), Arc::<Switch>::default());
        self.apart.lock().insert(ticket, Arc::clone(&switch));
        let (mailbox, apart) = (Arc::clone(&self.mailbox), Arc::clone(&self.apart));
        background::spawn(async move {
            let finished = Switched { running, switch }.await;
            // Before the answer is out: afterwards the ticket may be another operation's.
            apart.lock().remove(&ticket);
            let mut packed = Vec::new();
            finished.give_or_pack(&mailbox, &mut packed);
            if !packed.is_empty() {
                mailbox.post(|out| out.append(&mut packed));
            }
        });
    }

    fn deliver(&mut self) {
        if !self.answers.is_empty() {
            self.mailbox.post(|out| out.append(&mut self.answers));
        }
    }

    /// Whether nobody is left to be answered.
    pub(super) fn has_ended(&self) -> bool {
        self.mailbox.is_closed()
    }

    /// Goes on with everything that can go on.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        // What the operations start together waits until all of them have been looked at.
        let (_, started) = background::gather(|| {
            self.take_what_came();
            let mut undelivered = 0;
            while let Poll::Ready(Some(finished)) = Pin::new(&mut self.running).poll_next(context) {
                finished.give_or_pack(&self.mailbox, &mut self.answers);
                undelivered += 1;
                if undelivered == DELIVERED_TOGETHER {
                    self.deliver();
                    undelivered = 0;
                }
            }
        });
        self.deliver();
        self.rounds.extend(started);
        while let Poll::Ready(Some(())) = Pin::new(&mut self.rounds).poll_next(context) {}
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Others may have a part in them.
        for round in std::mem::take(&mut self.rounds) {
            background::spawn(round);
        }
    }
}
