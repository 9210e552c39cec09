//! How many leases one invocation holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::ambient;
use crate::contract::{Error, limits};

/// The places of one invocation's leases.
#[derive(Debug, Default)]
pub(super) struct Invocation(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    next: u64,
    /// Until when each counts; `None`: as long as its acquire is pending.
    taken: HashMap<u64, Option<Instant>>,
}

impl Invocation {
    /// Takes a place for an acquire.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if 16 are taken.
    pub(super) fn enter(self: &Arc<Self>) -> Result<PendingPlace, Error> {
        let mut places = self.0.lock();
        let now = ambient::monotonic();
        places.taken.retain(|_, until| until.is_none_or(|until| until > now));
        if places.taken.len() >= limits::MAX_LEASES {
            let said = format!("must be at most {} in one invocation at a time; release one first", limits::MAX_LEASES);
            return Err(Error::argument("leases", said));
        }
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, None);
        Ok(PendingPlace(Some(Place { invocation: Arc::clone(self), number })))
    }
}

/// The place of an acquire that is under way. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct PendingPlace(Option<Place>);

impl PendingPlace {
    /// The acquire got a lease.
    pub(super) fn taken(mut self, sent: Instant, lease_ms: u64) -> Option<Place> {
        let place = self.0.take()?;
        place.invocation.0.lock().taken.insert(place.number, Some(sent + Duration::from_millis(lease_ms)));
        Some(place)
    }
}

impl Drop for PendingPlace {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            place.leave();
        }
    }
}

/// The place of a lease. It is free again when the lease is over, whether its object lives or not.
#[derive(Debug)]
pub(super) struct Place {
    invocation: Arc<Invocation>,
    number: u64,
}

impl Place {
    /// The lease was renewed, as asked for at `sent`.
    pub(super) fn renewed(&self, sent: Instant, lease_ms: u64) {
        let mut places = self.invocation.0.lock();
        // Found expired meanwhile, and its place given to another, it still takes one again.
        places.taken.insert(self.number, Some(sent + Duration::from_millis(lease_ms)));
    }

    /// The lease is over.
    pub(super) fn leave(&self) {
        self.invocation.0.lock().taken.remove(&self.number);
    }
}
