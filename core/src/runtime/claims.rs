//! What this runtime holds: its own list of objects, which says without I/O whether an object is still ours.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use super::object::ObjectClaim;
use super::stores::unavailable;
use crate::background;
use crate::contract::{Error, Key, Outcome};

/// How many objects can be worked on at a time.
const TURNS: usize = 1_024;

pub(super) struct Objects {
    held: Mutex<HashMap<Key, Held>>,
    /// One operation per object at a time; two objects may share a turn.
    turns: Vec<tokio::sync::Mutex<()>>,
    hasher: RandomState,
}

impl Default for Objects {
    fn default() -> Self {
        let turns = std::iter::repeat_with(tokio::sync::Mutex::default).take(TURNS).collect();
        Self { held: Mutex::default(), turns, hasher: RandomState::new() }
    }
}

#[derive(Clone)]
pub(super) struct Held {
    pub(super) claim: ObjectClaim,
    /// The lease's generation that its record carries.
    pub(super) lease_generation: u64,
    /// It is being given away, or what became of that is not known: not ours until it is settled.
    pub(super) doubtful: bool,
}

impl Objects {
    pub(super) async fn turn(&self, key: &Key, deadline: Instant) -> Result<MutexGuard<'_, ()>, Error> {
        let count = self.turns.len() as u64;
        let place = usize::try_from(self.hasher.hash_one(key) % count).unwrap_or(0);
        background::timeout_at(deadline, self.turns[place].lock())
            .await
            .map_err(|_| unavailable(Outcome::NotApplied, "other operations on this object took all of the operation's time"))
    }

    pub(super) fn get(&self, key: &Key) -> Option<Held> {
        self.held.lock().get(key).cloned()
    }

    pub(super) fn hold(&self, key: Key, claim: ObjectClaim, lease_generation: u64) {
        self.held.lock().insert(key, Held { claim, lease_generation, doubtful: false });
    }

    pub(super) fn drop_hold(&self, key: &Key) {
        self.held.lock().remove(key);
    }

    /// The same hold, in doubt or out of it.
    pub(super) fn doubt(&self, key: &Key, doubtful: bool) {
        if let Some(held) = self.held.lock().get_mut(key) {
            held.doubtful = doubtful;
        }
    }

    /// Whether `claim` is the one that is held, and under this lease.
    pub(super) fn is_held(&self, key: &Key, claim: &ObjectClaim, lease_generation: u64) -> bool {
        let held = self.held.lock();
        held.get(key).is_some_and(|held| held.claim == *claim && held.lease_generation == lease_generation && !held.doubtful)
    }

    pub(super) fn all(&self) -> Vec<(Key, ObjectClaim)> {
        self.held.lock().iter().map(|(key, held)| (key.clone(), held.claim.clone())).collect()
    }

    /// Those whose records must be looked at, or put again under this lease.
    pub(super) fn unsettled(&self, lease_generation: u64) -> Vec<Key> {
        let held = self.held.lock();
        let stale = held.iter().filter(|(_, held)| held.doubtful || held.lease_generation != lease_generation);
        stale.map(|(key, _)| key.clone()).collect()
    }
}
