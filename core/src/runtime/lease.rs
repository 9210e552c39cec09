//! This runtime's own lease: claimed, renewed under its version, adopted after doubt, lost, claimed again.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::keys;
use super::record::{LeaseRecord, OwnerId, Record};
use super::retry::Retry;
use super::stores::{Stores, unavailable, version_of};
use crate::ambient::{self, Ambient};
use crate::contract::{
    Condition, Error, Key, Mutation, Outcome, ReadResult, Retention, StoreTime, StoredValue, Version, WriteRequest, WriteResult,
};

/// The last generation.
pub(super) const MAX_GENERATION: u64 = (1 << 63) - 1;

pub(super) struct Lease {
    pub(super) owner: OwnerId,
    pub(super) key: Key,
    retention: Retention,
    ttl: Duration,
    margin: Duration,
    renew_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last generation that was held; 0 before the first.
    generation: u64,
    /// The last generation that was lost: a late answer does not bring it back.
    lost: u64,
    held: Option<Held>,
    renewed_at: Option<StoreTime>,
}

struct Held {
    version: Version,
    /// Until when, by the local clock, nobody else can have found it missing.
    admitted_until: Option<Instant>,
}

/// A lease as a commit carries it.
#[derive(Clone, Debug)]
pub(super) struct Grip {
    pub(super) generation: u64,
    pub(super) version: Version,
}

/// How a renewal went.
#[derive(Debug)]
pub(super) enum Renewal {
    Renewed,
    /// It is ours, which a read told; it has less than its whole life before it.
    Adopted,
    Lost,
    Failed(Error),
}

impl Lease {
    pub(super) fn new(owner: OwnerId, times: &super::LocationRuntimeOptions) -> Result<Self, Error> {
        Ok(Self {
            owner,
            key: keys::lease(owner)?,
            retention: times.lease_retention()?,
            ttl: times.owner_lease_ttl,
            margin: times.fencing_margin,
            renew_timeout: times.renew_timeout,
            state: Mutex::default(),
        })
    }

    /// The lease, whether or not it may have run out: for what gives something up.
    pub(super) fn grip(&self) -> Result<Grip, Error> {
        let state = self.state.lock();
        let held = state.held.as_ref();
        held.map(|held| Grip { generation: state.generation, version: held.version.clone() }).ok_or_else(refused)
    }

    /// The lease, if it cannot have run out by the local clock.
    ///
    /// # Errors
    /// `UNAVAILABLE`, nothing applied.
    pub(super) fn admitted(&self) -> Result<Grip, Error> {
        let now = ambient::monotonic();
        let state = self.state.lock();
        match &state.held {
            Some(held) if held.admitted_until.is_some_and(|until| now < until) => {
                Ok(Grip { generation: state.generation, version: held.version.clone() })
            }
            _ => Err(refused()),
        }
    }

    pub(super) fn renewed_at(&self) -> Option<StoreTime> {
        self.state.lock().renewed_at
    }

    /// Claims a generation larger than any before, or finds that an attempt in doubt went through.
    pub(super) async fn claim(&self, stores: &Stores, random: &dyn Ambient, deadline: Instant) -> Result<(), Error> {
        let before = self.state.lock().generation;
        let mut retry = Retry::until(deadline);
        loop {
            let asked = ambient::monotonic();
            let condition = match stores.read(self.key.clone(), deadline).await? {
                ReadResult::Missing { .. } => Condition::Missing { key: self.key.clone() },
                ReadResult::Found(value) => {
                    let found = LeaseRecord::decode(&value.bytes)?.generation;
                    // Nobody but us writes under this owner's key.
                    if found > before {
                        self.adopt(found, value, asked);
                        return Ok(());
                    }
                    Condition::Version { key: self.key.clone(), expected: value.version }
                }
            };
            let generation = before + 1;
            if generation > MAX_GENERATION {
                return Err(Error::internal("an owner's lease has no generation left"));
            }
            let asked = ambient::monotonic();
            match stores.write(self.put(generation, condition), deadline).await {
                Ok(WriteResult::Applied { put_versions, store_now }) => {
                    let version = version_of(&put_versions, &self.key)?;
                    self.hold(generation, version, asked, self.ttl, store_now);
                    return Ok(());
                }
                Ok(WriteResult::Conflict { .. }) => {}
                Err(error) => retry.failed(error)?,
            }
            retry.pause(random).await?;
        }
    }

    /// Puts the lease again under its version.
    pub(super) async fn renew(&self, stores: &Stores) -> Renewal {
        let Ok(grip) = self.grip() else { return Renewal::Lost };
        let asked = ambient::monotonic();
        let condition = Condition::Version { key: self.key.clone(), expected: grip.version };
        match stores.write(self.put(grip.generation, condition), asked + self.renew_timeout).await {
            Ok(WriteResult::Applied { put_versions, store_now }) => match version_of(&put_versions, &self.key) {
                Ok(version) => {
                    self.hold(grip.generation, version, asked, self.ttl, store_now);
                    Renewal::Renewed
                }
                Err(error) => Renewal::Failed(error),
            },
            Err(error) if error.outcome() == Outcome::NotApplied => Renewal::Failed(error),
            Ok(WriteResult::Conflict { .. }) | Err(_) => self.look(stores, ambient::monotonic() + self.renew_timeout).await,
        }
    }

    /// Reads the lease: one with our generation is ours, whatever its version.
    pub(super) async fn look(&self, stores: &Stores, deadline: Instant) -> Renewal {
        let Ok(Grip { generation, .. }) = self.grip() else { return Renewal::Lost };
        let asked = ambient::monotonic();
        match stores.read(self.key.clone(), deadline).await {
            Ok(ReadResult::Found(value)) => match LeaseRecord::decode(&value.bytes) {
                Ok(found) if found.generation == generation => {
                    self.adopt(generation, value, asked);
                    Renewal::Adopted
                }
                Ok(_) => self.lose(generation),
                Err(error) => Renewal::Failed(error),
            },
            Ok(ReadResult::Missing { .. }) => self.lose(generation),
            Err(error) => Renewal::Failed(error),
        }
    }

    /// Deletes the lease; one that is not ours any more, or is gone, is left as it is.
    pub(super) async fn release(&self, stores: &Stores, random: &dyn Ambient, deadline: Instant) -> Result<(), Error> {
        let generation = self.state.lock().generation;
        self.lose(generation);
        // The key has the owner's id: nobody else writes there.
        stores.delete_ours(&self.key, |_| Ok(true), random, deadline).await
    }

    fn put(&self, generation: u64, condition: Condition) -> WriteRequest {
        let bytes = LeaseRecord { generation }.encode();
        WriteRequest::new().condition(condition).mutation(Mutation::put_for(self.key.clone(), bytes, self.retention))
    }

    fn adopt(&self, generation: u64, value: StoredValue, asked: Instant) {
        let remaining = remaining(&value);
        self.hold(generation, value.version, asked, remaining, value.store_now);
    }

    /// `remaining` counts from an instant of the store's that lies after `asked`.
    fn hold(&self, generation: u64, version: Version, asked: Instant, remaining: Duration, store_now: StoreTime) {
        let mut state = self.state.lock();
        if generation < state.generation || generation <= state.lost {
            return;
        }
        state.generation = generation;
        state.renewed_at = Some(store_now).max(state.renewed_at);
        let admitted_until = remaining.checked_sub(self.margin).map(|admitted| asked + admitted);
        state.held = Some(Held { version, admitted_until });
    }

    fn lose(&self, generation: u64) -> Renewal {
        let mut state = self.state.lock();
        state.lost = state.lost.max(generation);
        if state.generation == generation {
            state.held = None;
        }
        Renewal::Lost
    }
}

/// How long a lease's record stood when it was read.
pub(super) fn remaining(value: &StoredValue) -> Duration {
    let until = value.expires_at.unwrap_or(value.store_now).unix_ms();
    Duration::from_millis(until.saturating_sub(value.store_now.unix_ms()))
}

fn refused() -> Error {
    unavailable(
        Outcome::NotApplied,
        "this runtime's owner lease may have run out: nothing is published, reserved, committed or moved until it is renewed",
    )
}
