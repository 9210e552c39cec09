//! Acquires that may be given up: inside that very call, not when the driver comes to it.
//!
//! An acquire that its caller has given up counts no more, and waits no more before others, from that call on: wherever it is
//! just then, not yet looked at by the driver, under way, or granted with its answer still unread.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::wire::ask;
use crate::call::Operation;
use crate::contract::Error;
use crate::project::{LockLease, Place};

/// One acquire, which the driver drives and its caller may end.
pub(super) struct Acquire {
    /// Gone when it is over.
    operation: Mutex<Option<Operation<Option<LockLease>>>>,
    /// There as long as the operation is, and then its lease.
    place: Weak<Place>,
}

impl Acquire {
    pub(super) fn new(operation: Operation<Option<LockLease>>, place: &Arc<Place>) -> Arc<Self> {
        Arc::new(Self { operation: Mutex::new(Some(operation)), place: Arc::downgrade(place) })
    }

    pub(super) fn begin(&self) {
        if let Some(operation) = &mut *self.operation.lock() {
            operation.begin();
        }
    }

    /// `None`: it was given up.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Option<LockLease>, Error>>> {
        let mut slot = self.operation.lock();
        let Some(mut operation) = slot.take() else { return Poll::Ready(None) };
        let polled = Pin::new(&mut operation).poll(context);
        if polled.is_pending() {
            *slot = Some(operation);
        }
        polled.map(Some)
    }

    fn give_up(&self) {
        let operation = self.operation.lock().take();
        drop(operation);
        // A lease may be on its way.
        if let Some(place) = self.place.upgrade() {
            place.leave();
        }
    }
}

/// Those of one bridge, by ticket. One whose answer was read stays until its ticket is used again or its lease is over, since
/// nobody says when an answer is read.
#[derive(Default)]
pub(super) struct Acquires(Mutex<HashMap<u32, Stage>>);

enum Stage {
    Submitted,
    /// Given up before it was looked at.
    GivenUp,
    Begun(Arc<Acquire>),
}

impl Acquires {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Requests of these kinds and tickets are about to be looked at: whatever had the tickets before is over.
    pub(super) fn submitted(&self, requests: impl IntoIterator<Item = (u32, u32)>) {
        let mut acquires = self.0.lock();
        for (kind, ticket) in requests {
            match kind {
                ask::LOCK_ACQUIRE => {
                    make_room(&mut acquires);
                    acquires.insert(ticket, Stage::Submitted);
                }
                // What the binding's own kinds have in place of a ticket is none.
                ask::OWN.. => {}
                _ => {
                    acquires.remove(&ticket);
                }
            }
        }
    }

    /// The acquire of this ticket was looked at; `None`: in vain.
    pub(super) fn looked_at(&self, ticket: u32, acquire: Option<&Arc<Acquire>>) {
        if let Entry::Occupied(mut stage) = self.0.lock().entry(ticket) {
            match (acquire, stage.get()) {
                (Some(acquire), Stage::GivenUp) => {
                    acquire.give_up();
                    stage.remove();
                }
                (Some(acquire), _) => {
                    stage.insert(Stage::Begun(Arc::clone(acquire)));
                }
                (None, _) => {
                    stage.remove();
                }
            }
        }
    }

    /// Nobody will have what the operation of this ticket gets, if it is an acquire.
    pub(super) fn give_up(&self, ticket: u32) {
        let begun = match self.0.lock().entry(ticket) {
            Entry::Occupied(stage) if matches!(stage.get(), Stage::Begun(_)) => stage.remove(),
            Entry::Occupied(mut stage) => stage.insert(Stage::GivenUp),
            Entry::Vacant(_) => return,
        };
        if let Stage::Begun(acquire) = begun {
            acquire.give_up();
        }
    }
}

/// Forgets those whose place is gone, before memory grows for one more.
fn make_room(acquires: &mut HashMap<u32, Stage>) {
    if acquires.len() == acquires.capacity() {
        acquires.retain(|_, stage| !matches!(stage, Stage::Begun(acquire) if acquire.place.strong_count() == 0));
        // So that this pays: not again before as many came as there are now.
        acquires.reserve(acquires.len() + 1);
    }
}
