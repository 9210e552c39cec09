//! How many leases one invocation holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
        let place = Arc::new(Place { invocation: Arc::clone(self), number, left: AtomicBool::new(false) });
        Ok(PendingPlace { place, taken: false })
    }
}

/// The place of an acquire that is under way. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct PendingPlace {
    place: Arc<Place>,
    taken: bool,
}

impl PendingPlace {
    /// The place itself, for whoever may give the acquire up.
    pub(super) fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }

    /// The acquire got a lease.
    pub(super) fn taken(mut self, sent: Instant, lease_ms: u64) -> Arc<Place> {
        self.taken = true;
        self.place.lasts(sent, lease_ms);
        self.place()
    }
}

impl Drop for PendingPlace {
    fn drop(&mut self) {
        if !self.taken {
            self.place.leave();
        }
    }
}

/// The place of an acquire and of its lease. It is free again when the lease is over, whether its object lives or not.
#[derive(Debug)]
pub(crate) struct Place {
    invocation: Arc<Invocation>,
    number: u64,
    /// It is over for good. Read and written under the lock of the places.
    left: AtomicBool,
}

impl Place {
    /// There is a lease, as asked for (or renewed) at `sent`.
    pub(super) fn lasts(&self, sent: Instant, lease_ms: u64) {
        let mut places = self.invocation.0.lock();
        // The acquire may have been given up, or a release have overtaken the answer to a renewal.
        if self.left.load(Ordering::Relaxed) {
            return;
        }
        // Found expired meanwhile, and its place given to another, it still takes one again.
        places.taken.insert(self.number, Some(sent + Duration::from_millis(lease_ms)));
    }

    /// The lease is over, or nobody will ever have it.
    pub(crate) fn leave(&self) {
        let mut places = self.invocation.0.lock();
        self.left.store(true, Ordering::Relaxed);
        places.taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(invocation: &Arc<Invocation>) -> Result<PendingPlace, Error> {
        invocation.enter()
    }

    #[test]
    fn sixteen_places_and_no_more_pending_ones_counted() {
        let invocation = Arc::<Invocation>::default();
        let mut pending: Vec<_> = (0..limits::MAX_LEASES).map(|_| enter(&invocation).unwrap()).collect();
        assert_eq!(enter(&invocation).unwrap_err().argument_name(), Some("leases"));
        drop(pending.pop());
        let place = enter(&invocation).unwrap().taken(ambient::monotonic(), 60_000);
        assert!(enter(&invocation).is_err());
        place.leave();
        let again = enter(&invocation).unwrap();
        assert!(enter(&invocation).is_err());
        drop((again, pending));
        assert!(invocation.0.lock().taken.is_empty());
    }

    #[test]
    fn an_expired_lease_takes_no_place_until_it_is_renewed() {
        let invocation = Arc::<Invocation>::default();
        let sent = ambient::monotonic();
        let places: Vec<_> = (0..limits::MAX_LEASES).map(|_| enter(&invocation).unwrap().taken(sent, 0)).collect();
        drop(enter(&invocation).unwrap());
        places.iter().for_each(|place| place.lasts(sent, 60_000));
        assert!(enter(&invocation).is_err());
    }

    #[test]
    fn an_acquire_that_was_given_up_takes_no_place_whatever_becomes_of_it() {
        let invocation = Arc::<Invocation>::default();
        let pending = enter(&invocation).unwrap();
        pending.place().leave();
        assert!(invocation.0.lock().taken.is_empty());
        let place = pending.taken(ambient::monotonic(), 60_000);
        assert!(invocation.0.lock().taken.is_empty());
        place.lasts(ambient::monotonic(), 60_000);
        assert!(invocation.0.lock().taken.is_empty());
    }

    #[test]
    fn a_renewal_that_is_heard_of_after_the_release_takes_no_place() {
        let invocation = Arc::<Invocation>::default();
        let place = enter(&invocation).unwrap().taken(ambient::monotonic(), 60_000);
        place.leave();
        place.lasts(ambient::monotonic(), 60_000);
        assert!(invocation.0.lock().taken.is_empty());
    }
}
