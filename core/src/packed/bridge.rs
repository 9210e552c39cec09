//! The native side of one foreign environment.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;

use super::acquires::Acquires;
use super::answer::Answer;
use super::driver::{Driver, Inbox, Item};
use super::log::{self, LogListener};
use super::mailbox::{Mailbox, Outlet};
use super::request::{Request, Unpacking};
use super::source::gone;
use super::turns::Turns;
use super::wire::{Rows, ask};
use super::work::{Cached, Finished, Running, Store, Stores, Work};
use crate::call::StoreStats;
use crate::contract::{Code, Error};

/// In what the environments differ.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// From this size on a byte string of an answer is kept for [`Bridge::take`] instead of being copied through the batch.
    pub keep_from: usize,
    /// A record larger than this is kept itself, so that a batch can be collected in pieces of bounded size.
    pub largest_record: usize,
    /// What the environment calls a retention.
    pub retention: &'static str,
}

/// The native side of one environment, such as a worker of Node.js or a class loader of Java.
pub struct Bridge {
    mailbox: Arc<Mailbox>,
    stores: Arc<Stores>,
    inbox: Arc<Inbox>,
    acquires: Arc<Acquires>,
    turns: Arc<Turns>,
}

/// What became of a request at once.
#[derive(Debug)]
pub enum Taken {
    /// It is answered: a packed record.
    Answered(Vec<u8>),
    /// The answer will lie in the mailbox.
    UnderWay,
}

impl Bridge {
    /// `wake` is called, from any thread, when there is something to collect and was nothing before. It must not block.
    pub fn new(dialect: Dialect, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let mailbox = Arc::new(Mailbox::new(dialect, Box::new(wake)));
        let (stores, inbox) = (Arc::<Stores>::default(), Arc::<Inbox>::default());
        let acquires = Arc::<Acquires>::default();
        let turns = Turns::new(Driver::new(&inbox, &stores, &mailbox, &acquires));
        Self { mailbox, stores, inbox, acquires, turns }
    }

    /// Takes a store and gives it a number, which is never used again.
    pub fn add(&self, store: Store) -> u32 {
        self.stores.add(store)
    }

    /// The locks of a project for one invocation, which ends after `within` if that is said.
    ///
    /// # Errors
    /// `CLOSED` if the project is gone.
    pub fn locks(&self, project: u32, within: Option<Duration>) -> Result<u32, Error> {
        match self.stores.get(project) {
            Some(Store::Project(project)) => {
                let locks = within.map_or_else(|| project.locks(), |within| project.locks_within(within));
                Ok(self.stores.add(Store::Locks(locks)))
            }
            _ => Err(Error::closed()),
        }
    }

    /// Forgets a store that nobody can use any more.
    pub fn forget(&self, number: u32) {
        self.stores.remove(number);
    }

    /// What a store has counted; `None` if it is gone.
    pub fn stats(&self, number: u32) -> Option<StoreStats> {
        self.stores.get(number).map(|store| store.stats())
    }

    /// Takes one request, with the byte strings that came `beside` it. Argument errors, and the answers of stores that answer
    /// inline, are there at once. All others begin on this thread; with `hold` at the next [`go_on`](Self::go_on), or earlier.
    pub fn submit(&self, request: Request<'_>, beside: Vec<Bytes>, hold: bool) -> Taken {
        let mut record = Vec::new();
        self.acquires.submitted([(request.kind, request.ticket)]);
        let store = self.stores.get(request.store);
        if self.begin(request, store.as_ref(), beside, &mut record) {
            return Taken::Answered(record);
        }
        if !hold {
            self.turns.take();
        }
        Taken::UnderWay
    }

    /// Begins, on this thread, what was held.
    pub fn go_on(&self) {
        if !self.inbox.is_empty() {
            self.turns.take();
        }
    }

    /// Takes a row of requests ([`wire`](super::wire)), with the byte strings that came `beside` the last of them. The answers
    /// of stores that answer inline lie in the mailbox when this returns, and wake nobody; all other requests are looked at by
    /// the driver, so that the caller is soon free. Kinds of the binding's own are passed over.
    pub fn submit_all(&self, batch: &[u8], beside: Vec<Bytes>) {
        self.acquires.submitted(Rows(batch).map(|row| (row.kind, row.ticket)));
        let mut driven = Vec::new();
        let mut answers = Vec::new();
        let mut begun = false;
        let mut owned = None;
        let mut beside = Some(beside);
        let mut stores = Cached::new(&self.stores);
        for row in Rows(batch) {
            if row.kind == ask::NOTHING || row.kind >= ask::OWN {
                continue;
            }
            let store = stores.get(row.extra);
            if store.is_some_and(|store| !store.answers_inline()) {
                driven.extend_from_slice(row.record);
                continue;
            }
            let owned = owned.get_or_insert_with(|| Bytes::copy_from_slice(batch));
            let start = row.fields.as_ptr().addr() - batch.as_ptr().addr();
            let fields = owned.slice(start..start + row.fields.len());
            let last = start + row.fields.len() == batch.len();
            let beside = if last { beside.take().unwrap_or_default() } else { Vec::new() };
            let request = Request { kind: row.kind, ticket: row.ticket, store: row.extra, fields: &fields };
            begun |= !self.begin(request, store, beside, &mut answers);
        }
        if !answers.is_empty() {
            self.mailbox.leave(|out| out.append(&mut answers));
        }
        if !driven.is_empty() {
            self.inbox.put(Item::Batch(driven.into(), beside.unwrap_or_default()));
            begun = true;
        }
        if begun {
            self.turns.call();
        }
    }

    /// Looks for argument errors in one request without submitting it.
    ///
    /// # Errors
    /// The argument error.
    pub fn check(&self, request: Request<'_>) -> Result<(), Error> {
        let store = self.stores.get(request.store);
        let beside = vec![Bytes::new()];
        let mut unpacking = Unpacking { copy: true, beside: beside.into_iter(), mailbox: &self.mailbox };
        match unpacking.unpack(request).and_then(|asked| asked.of(store.as_ref(), &self.stores)) {
            Err(error) if error.code() == Code::InvalidArgument => Err(error),
            _ => Ok(()),
        }
    }

    /// Begins an operation. Whether it is over: then its answer is packed into `answers`.
    fn begin(&self, request: Request<'_>, store: Option<&Store>, beside: Vec<Bytes>, answers: &mut Vec<u8>) -> bool {
        let ticket = request.ticket;
        let inline = store.is_none_or(Store::answers_inline);
        let mut unpacking = Unpacking { copy: inline, beside: beside.into_iter(), mailbox: &self.mailbox };
        let work = unpacking.unpack(request).and_then(|asked| asked.of(store, &self.stores));
        if request.kind == ask::LOCK_ACQUIRE {
            self.acquires.looked_at(ticket, work.as_ref().ok().and_then(Work::acquire));
        }
        let answer = match work {
            Ok(work) => {
                let mut running = Running::new(ticket, work);
                let polled = if inline { running.poll_now() } else { Poll::Pending };
                let Poll::Ready(answer) = polled else {
                    self.inbox.put(Item::Start(running));
                    return false;
                };
                answer
            }
            Err(error) => Answer::Done(Err(error)),
        };
        Finished { ticket, answer }.pack(&self.mailbox, answers);
        true
    }

    /// Ends the operation that has this ticket, if it still runs; it is answered all the same. Its caller must not get the answer
    /// any more: an acquire counts and waits no more from now on.
    pub fn cancel(&self, ticket: u32) {
        self.acquires.give_up(ticket);
        self.inbox.put(Item::Cancel(ticket));
        self.turns.call();
    }

    #[cfg(test)]
    pub(super) fn remembered_acquires(&self) -> usize {
        self.acquires.len()
    }

    /// Waits for the answer to `ticket` on this thread, at most for `patience`: it comes here directly, which spares a lone call
    /// the thread that collects. `None` if it has gone to the mailbox, or has not come yet and will go there.
    pub fn wait_for(&self, ticket: u32, patience: Duration) -> Option<Vec<u8>> {
        self.mailbox.awaited.wait(ticket, patience)
    }

    /// Whoever waits for this answer learns that it has gone to the mailbox.
    pub fn release(&self, ticket: u32) {
        drop(self.mailbox.awaited.who(ticket));
    }

    /// Puts back an answer that could not be handed over.
    pub fn put_back(&self, mut record: Vec<u8>) {
        self.mailbox.post(|out| out.append(&mut record));
    }

    /// For records of the binding's own.
    pub fn outlet(&self) -> Outlet {
        Outlet(Arc::clone(&self.mailbox))
    }

    /// Whether there is something to collect.
    pub fn has_records(&self) -> bool {
        self.mailbox.has_records()
    }

    /// Exchanges all records for the memory in `batch`, which is emptied.
    pub fn collect(&self, batch: &mut Vec<u8>) {
        self.mailbox.swap(batch);
    }

    /// As [`collect`](Self::collect), for a caller that comes back by itself: nobody is woken for what comes in the meantime,
    /// until the next `collect` or [`left`](Self::left).
    pub fn collect_and_come_back(&self, batch: &mut Vec<u8>) {
        self.mailbox.swap_and_come_back(batch);
    }

    /// Whoever was to come back does not; wakes if there is something to collect.
    pub fn left(&self) {
        self.mailbox.left();
    }

    /// A byte string that was too large for the batch; `None` if it was taken already.
    pub fn take(&self, number: u32) -> Option<Bytes> {
        self.mailbox.large.take(number)
    }

    /// Answers a question for a part of a payload; `None`: the payload is gone.
    pub fn segment(&self, question: u32, part: Option<Bytes>) {
        if let Some(waiting) = self.mailbox.segments.take(question) {
            // Whoever asked may have left in between.
            let _ = waiting.send(part.ok_or_else(gone));
        }
    }

    /// From now on log events of at least this level (of `tracing`) come, too; `None` ends that.
    pub fn log(&self, level: Option<&str>) {
        let mailbox: Arc<dyn LogListener> = self.mailbox.clone();
        log::listen(&mailbox, level);
    }
}

/// Packs an error as the answer to `ticket`.
pub fn packed_error(error: &Error, ticket: u32) -> Vec<u8> {
    let mut record = Vec::new();
    super::answer::failed(&mut record, ticket, error);
    record
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.mailbox.close();
        self.turns.wake();
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").finish_non_exhaustive()
    }
}
