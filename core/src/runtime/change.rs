//! One change of one object's record: read, decide, commit under what was read and under our own lease; again after a conflict.

use std::time::Instant;

use futures_util::future::BoxFuture;

use super::core::Core;
use super::lease::Grip;
use super::object::ObjectClaim;
use super::record::{ObjectPhase, ObjectRecord, Record};
use super::retry::Retry;
use crate::contract::{Condition, Error, Key, Mutation, ReadResult, Retention, StoreTime, WriteRequest, WriteResult};

/// How long a tombstone keeps the last generation of an id, in milliseconds: 1 h.
const TOMBSTONE_MS: u64 = 60 * 60 * 1_000;

/// What is decided on.
pub(super) struct Seen {
    pub(super) record: Option<ObjectRecord>,
    pub(super) store_now: StoreTime,
    /// Our own lease.
    pub(super) grip: Grip,
}

impl Seen {
    /// The record, unless it is a tombstone.
    pub(super) fn standing(&self) -> Option<&ObjectRecord> {
        self.record.as_ref().filter(|record| record.phase != ObjectPhase::Gone)
    }
}

/// What is to happen.
pub(super) enum Step<T> {
    /// Nothing.
    Answer(T),
    /// The record becomes this one, if all that was seen still holds, and the further conditions too.
    Commit { record: ObjectRecord, conditions: Vec<Condition>, mutations: Vec<Mutation>, answer: T },
}

impl<T> Step<T> {
    pub(super) fn commit(record: ObjectRecord, answer: T) -> Self {
        Self::Commit { record, conditions: Vec::new(), mutations: Vec::new(), answer }
    }
}

impl Core {
    /// Has `decide` look at the record until what it decides on is committed. An attempt whose outcome is unknown is decided by
    /// the next read: every commit of this record has its version as a condition, so it cannot be applied beside another one.
    pub(super) async fn change<'a, T>(
        &'a self,
        key: &Key,
        deadline: Instant,
        grip: impl Fn() -> Result<Grip, Error>,
        decide: impl Fn(Seen) -> BoxFuture<'a, Result<Step<T>, Error>>,
    ) -> Result<T, Error> {
        let mut retry = Retry::until(deadline);
        let mut in_doubt: Option<(ObjectRecord, T)> = None;
        loop {
            let (condition, record, store_now) = match self.stores.read(key.clone(), deadline).await? {
                ReadResult::Missing { store_now } => (Condition::Missing { key: key.clone() }, None, store_now),
                ReadResult::Found(value) => {
                    let record = ObjectRecord::decode(&value.bytes)?;
                    (Condition::Version { key: key.clone(), expected: value.version }, Some(record), value.store_now)
                }
            };
            // Only this runtime writes a record with its own owner id, and one operation per object at a time.
            if let Some((_, answer)) = in_doubt.take_if(|(intended, _)| record.as_ref() == Some(intended)) {
                return Ok(answer);
            }
            let grip = grip()?;
            let own_lease = Condition::Version { key: self.lease.key.clone(), expected: grip.version.clone() };
            let (record, mut conditions, mut mutations, answer) = match decide(Seen { record, store_now, grip }).await? {
                Step::Answer(answer) => return Ok(answer),
                Step::Commit { record, conditions, mutations, answer } => (record, conditions, mutations, answer),
            };
            conditions.extend([condition, own_lease]);
            mutations.push(put(key, &record)?);
            match self.stores.write(WriteRequest { conditions, mutations }, deadline).await {
                Ok(WriteResult::Applied { .. }) => return Ok(answer),
                Ok(WriteResult::Conflict { .. }) => {}
                Err(error) => {
                    retry.failed(error)?;
                    in_doubt = Some((record, answer));
                }
            }
            self.after_conflict(&mut retry, deadline).await?;
        }
    }

    /// Whether `record` is the one that `claim` holds.
    pub(super) fn is_ours(&self, record: &ObjectRecord, claim: &ObjectClaim) -> bool {
        record.owner == self.lease.owner
            && record.kind == claim.id.kind
            && record.object_generation == claim.object_generation
            && record.owner_generation == claim.owner_generation
    }
}

fn put(key: &Key, record: &ObjectRecord) -> Result<Mutation, Error> {
    let bytes = record.encode();
    Ok(match record.phase {
        ObjectPhase::Gone => Mutation::put_for(key.clone(), bytes, Retention::from_ms(TOMBSTONE_MS)?),
        ObjectPhase::Reserved | ObjectPhase::Active => Mutation::put(key.clone(), bytes),
    })
}
