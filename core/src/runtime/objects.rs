//! The operations of framework authors on objects: each is one conditional commit (spec: runtime.md, What is stored).

use std::time::Instant;

use futures_util::FutureExt;

use super::change::{Seen, Step};
use super::core::Core;
use super::keys;
use super::lease::MAX_GENERATION;
use super::names::{NodeId, StableType};
use super::object::{ClaimResult, ObjectClaim, ObjectEntry, ObjectId, ObjectState, ReserveResult};
use super::record::{ObjectPhase, ObjectRecord};
use crate::contract::{Error, Key, Outcome, StoreTime};

impl Core {
    pub(super) async fn reserve(
        &self,
        id: ObjectId,
        stable_type: StableType,
        node: NodeId,
        deadline: Instant,
    ) -> Result<ReserveResult, Error> {
        self.check_published(&node)?;
        let key = keys::object(id.kind, &id.global_id)?;
        let _turn = self.objects.turn(&key, deadline).await?;
        let is_held = self.objects.get(&key).is_some();
        let decided = self.change(
            &key,
            deadline,
            || self.lease.admitted(),
            |seen| {
                let (id, stable_type, node) = (id.clone(), stable_type.clone(), node.clone());
                async move {
                    if let Some(standing) = seen.standing() {
                        // A reservation of ours that nobody holds: what became of it was not known when it was made.
                        let left = standing.owner == self.lease.owner && standing.phase == ObjectPhase::Reserved && !is_held;
                        if !left {
                            return Ok(Step::Answer(Err(self.entry(id, standing, deadline).await?)));
                        }
                    }
                    let last = seen.record.map_or(0, |record| record.object_generation);
                    let record = ObjectRecord {
                        kind: id.kind,
                        phase: ObjectPhase::Reserved,
                        stable_type,
                        object_generation: next_generation(last, seen.store_now)?,
                        owner_generation: 1,
                        node,
                        owner: self.lease.owner,
                        lease_generation: seen.grip.generation,
                    };
                    Ok(Step::commit(record.clone(), Ok((claim(id, &record), record.lease_generation))))
                }
                .boxed()
            },
        );
        Ok(match decided.await? {
            Err(entry) => ReserveResult::Exists(entry),
            Ok((claim, lease_generation)) => {
                self.objects.hold(key, claim.clone(), lease_generation);
                ReserveResult::Reserved(claim)
            }
        })
    }

    pub(super) async fn commit(&self, claim: ObjectClaim, deadline: Instant) -> Result<ClaimResult, Error> {
        let key = keys::object(claim.id.kind, &claim.id.global_id)?;
        let _turn = self.objects.turn(&key, deadline).await?;
        let committed = self.change(
            &key,
            deadline,
            || self.lease.admitted(),
            |Seen { record, grip, .. }| {
                let step = match record.filter(|record| self.is_ours(record, &claim)) {
                    Some(record) if record.phase == ObjectPhase::Active && record.lease_generation == grip.generation => {
                        Step::Answer(Some(grip.generation))
                    }
                    Some(record) if record.phase != ObjectPhase::Gone => {
                        let lease_generation = grip.generation;
                        let record = ObjectRecord { phase: ObjectPhase::Active, lease_generation, ..record };
                        Step::commit(record, Some(lease_generation))
                    }
                    _ => Step::Answer(None),
                };
                async move { Ok(step) }.boxed()
            },
        );
        let committed = committed.await?;
        Ok(match committed {
            Some(lease_generation) => {
                self.objects.hold(key, claim, lease_generation);
                ClaimResult::Done
            }
            None => self.lost(&key, &claim),
        })
    }

    /// Leaves a tombstone in the place of an object that is in one of these phases.
    pub(super) async fn give_up(
        &self,
        claim: ObjectClaim,
        phases: &'static [ObjectPhase],
        deadline: Instant,
    ) -> Result<ClaimResult, Error> {
        let key = keys::object(claim.id.kind, &claim.id.global_id)?;
        let _turn = self.objects.turn(&key, deadline).await?;
        // Should this be left in the middle, nobody takes the object for ours until it was looked at.
        self.doubt(&key, &claim);
        let given_up = self.change(
            &key,
            deadline,
            || self.lease.grip(),
            |Seen { record, grip, .. }| {
                let step = match record.filter(|record| self.is_ours(record, &claim)) {
                    Some(record) if record.phase == ObjectPhase::Gone => Step::Answer(Given::Up),
                    Some(record) if phases.contains(&record.phase) => {
                        let lease_generation = grip.generation;
                        Step::commit(ObjectRecord { phase: ObjectPhase::Gone, lease_generation, ..record }, Given::Up)
                    }
                    Some(_) => Step::Answer(Given::Kept),
                    None => Step::Answer(Given::Gone),
                };
                async move { Ok(step) }.boxed()
            },
        );
        match given_up.await {
            Ok(Given::Up) => {
                self.lost(&key, &claim);
                Ok(ClaimResult::Done)
            }
            Ok(Given::Gone) => Ok(self.lost(&key, &claim)),
            Ok(Given::Kept) => {
                self.objects.doubt(&key, false);
                Ok(ClaimResult::Lost)
            }
            Err(error) => {
                self.not_given(&key, &error);
                Err(error)
            }
        }
    }

    /// Puts a hold in doubt, if it is this claim's.
    pub(super) fn doubt(&self, key: &Key, claim: &ObjectClaim) {
        if self.objects.get(key).is_some_and(|held| held.claim == *claim) {
            self.objects.doubt(key, true);
        }
    }

    /// An object that was not given away is held as before; one of which that is not known waits to be settled.
    pub(super) fn not_given(&self, key: &Key, error: &Error) {
        match error.outcome() {
            Outcome::NotApplied => self.objects.doubt(key, false),
            Outcome::Unknown => self.unsettled.notify_one(),
        }
    }

    /// Ends this claim's hold; another claim's on the same id stays.
    pub(super) fn lost(&self, key: &Key, claim: &ObjectClaim) -> ClaimResult {
        if self.objects.get(key).is_some_and(|held| held.claim == *claim) {
            self.objects.drop_hold(key);
        }
        ClaimResult::Lost
    }

    /// What a query says of this record.
    pub(super) async fn entry(&self, id: ObjectId, record: &ObjectRecord, deadline: Instant) -> Result<ObjectEntry, Error> {
        let live = match record.phase {
            ObjectPhase::Active => self.live([record.owner], deadline).await?.has(record.owner, record.lease_generation),
            ObjectPhase::Reserved | ObjectPhase::Gone => false,
        };
        Ok(entry(id, record, live))
    }

    /// # Errors
    /// `INVALID_ARGUMENT` if `node` is none of this runtime's.
    pub(super) fn check_published(&self, node: &NodeId) -> Result<(), Error> {
        if self.nodes.has(node) {
            return Ok(());
        }
        Err(Error::argument("node", format!("must be a node that this runtime has published; {node} is none")))
    }
}

#[derive(Clone, Copy)]
enum Given {
    Up,
    /// It is ours, in another phase.
    Kept,
    /// It is not ours.
    Gone,
}

pub(super) fn claim(id: ObjectId, record: &ObjectRecord) -> ObjectClaim {
    ObjectClaim {
        id,
        object_generation: record.object_generation,
        owner_generation: record.owner_generation,
        node: record.node.clone(),
    }
}

pub(super) fn entry(id: ObjectId, record: &ObjectRecord, owner_is_live: bool) -> ObjectEntry {
    ObjectEntry {
        kind: record.kind,
        global_id: id.global_id,
        object_generation: record.object_generation,
        node: record.node.clone(),
        state: match record.phase {
            ObjectPhase::Reserved | ObjectPhase::Gone => ObjectState::Creating,
            ObjectPhase::Active if owner_is_live => ObjectState::Ready,
            ObjectPhase::Active => ObjectState::Unavailable,
        },
        stable_type: record.stable_type.clone(),
    }
}

/// Larger than the last one, and than what a forgotten one can have been: the store's time in microseconds.
fn next_generation(last: u64, store_now: StoreTime) -> Result<u64, Error> {
    let next = last.saturating_add(1).max(store_now.unix_ms().saturating_mul(1_000));
    if next > MAX_GENERATION {
        return Err(Error::internal("an object's id has no generation left"));
    }
    Ok(next)
}
