//! Objects that change hands: moved to another node, taken over from a dead owner, attached after a move, and settled when
//! what became of them was not known.

use std::time::Instant;

use futures_util::FutureExt;

use super::change::{Seen, Step};
use super::core::Core;
use super::keys;
use super::leases::Evidence;
use super::names::NodeId;
use super::node::NodeState;
use super::object::{MoveResult, ObjectClaim, ObjectId, TakeResult};
use super::objects::claim;
use super::record::{LeaseRecord, NodeRecord, ObjectPhase, ObjectRecord, OwnerId, Record};
use crate::contract::{Condition, Error, Key, ReadResult};

/// A live node that an object can move to.
struct Target {
    owner: OwnerId,
    lease_generation: u64,
    conditions: Vec<Condition>,
}

impl Core {
    pub(super) async fn move_to(&self, held: ObjectClaim, target: NodeId, deadline: Instant) -> Result<MoveResult, Error> {
        if target == held.node {
            return Err(Error::argument("target", "must be another node than the one that the object lives on"));
        }
        let key = keys::object(held.id.kind, &held.id.global_id)?;
        let _turn = self.objects.turn(&key, deadline).await?;
        self.doubt(&key, &held);
        let moved = self.change(
            &key,
            deadline,
            || self.lease.admitted(),
            |Seen { record, .. }| {
                let (held, target) = (held.clone(), target.clone());
                async move {
                    let ours = record.filter(|record| self.is_ours(record, &held) && record.phase == ObjectPhase::Active);
                    let Some(record) = ours else { return Ok(Step::Answer(MoveResult::Lost)) };
                    let Some(to) = self.live_node(&target, deadline).await? else {
                        return Ok(Step::Answer(MoveResult::TargetUnavailable));
                    };
                    let record = ObjectRecord {
                        owner_generation: next_owner(&record)?,
                        node: target,
                        owner: to.owner,
                        lease_generation: to.lease_generation,
                        ..record
                    };
                    Ok(Step::Commit { record, conditions: to.conditions, mutations: Vec::new(), answer: MoveResult::Moved })
                }
                .boxed()
            },
        );
        let moved = moved.await;
        match &moved {
            Ok(MoveResult::Moved | MoveResult::Lost) => _ = self.lost(&key, &held),
            Ok(MoveResult::TargetUnavailable) => self.objects.doubt(&key, false),
            Err(error) => self.not_given(&key, error),
        }
        moved
    }

    /// The node, if it takes objects while the conditions hold.
    async fn live_node(&self, node: &NodeId, deadline: Instant) -> Result<Option<Target>, Error> {
        let key = keys::node(node)?;
        let ReadResult::Found(value) = self.stores.read(key.clone(), deadline).await? else { return Ok(None) };
        let record = NodeRecord::decode(&value.bytes)?;
        if matches!(record.state, NodeState::Error | NodeState::Stopped) {
            return Ok(None);
        }
        let mut conditions = vec![Condition::Version { key, expected: value.version }];
        let (owner, lease_generation) = (record.owner, record.lease_generation);
        if owner == self.lease.owner {
            // Our own lease is a condition of every commit already.
            let current = self.lease.admitted()?.generation == lease_generation;
            return Ok(current.then_some(Target { owner, lease_generation, conditions }));
        }
        let key = keys::lease(owner)?;
        let ReadResult::Found(lease) = self.stores.read(key.clone(), deadline).await? else { return Ok(None) };
        if LeaseRecord::decode(&lease.bytes)?.generation != lease_generation {
            return Ok(None);
        }
        conditions.push(Condition::Version { key, expected: lease.version });
        Ok(Some(Target { owner, lease_generation, conditions }))
    }

    /// Takes an object over from an owner that is gone, for `node`; without a node, only what is this runtime's already.
    pub(super) async fn take(&self, id: ObjectId, node: Option<NodeId>, deadline: Instant) -> Result<TakeResult, Error> {
        if let Some(node) = &node {
            self.check_published(node)?;
        }
        let key = keys::object(id.kind, &id.global_id)?;
        let _turn = self.objects.turn(&key, deadline).await?;
        let taken = self.change(
            &key,
            deadline,
            || self.lease.admitted(),
            |seen| {
                let (id, node) = (id.clone(), node.clone());
                async move {
                    let Some(standing) = seen.standing().filter(|standing| standing.kind == id.kind).cloned() else {
                        return Ok(Step::Answer(Err(None)));
                    };
                    let lease_generation = seen.grip.generation;
                    if standing.owner == self.lease.owner {
                        let record = ObjectRecord { lease_generation, ..standing.clone() };
                        return Ok(if record == standing {
                            Step::Answer(Ok(record))
                        } else {
                            Step::commit(record.clone(), Ok(record))
                        });
                    }
                    let evidence = match node {
                        Some(node) => Some((node, self.evidence(standing.owner, standing.lease_generation, deadline).await?)),
                        None => None,
                    };
                    let Some((node, Evidence::Gone(conditions, mutations))) = evidence else {
                        return Ok(Step::Answer(Err(Some(self.entry(id, &standing, deadline).await?))));
                    };
                    let owner_generation = next_owner(&standing)?;
                    let record = ObjectRecord { node, owner: self.lease.owner, lease_generation, owner_generation, ..standing };
                    Ok(Step::Commit { record: record.clone(), conditions, mutations, answer: Ok(record) })
                }
                .boxed()
            },
        );
        Ok(match taken.await? {
            Err(None) => TakeResult::Missing,
            Err(Some(entry)) => TakeResult::Owned(entry),
            Ok(record) => {
                let claim = claim(id, &record);
                // One of ours that is being given away stays in doubt until that is settled.
                if self.objects.get(&key).is_none_or(|held| held.claim != claim || !held.doubtful) {
                    self.objects.hold(key, claim.clone(), record.lease_generation);
                }
                TakeResult::Taken { claim, committed: record.phase == ObjectPhase::Active }
            }
        })
    }

    /// Puts again, under our lease as it is now, what is still ours, and lets go of what is not. The put gives a record in doubt
    /// a new version, so that what was under way cannot be applied any more.
    pub(super) async fn settle_objects(&self) -> Result<(), Error> {
        let generation = self.lease.admitted()?.generation;
        for key in self.objects.unsettled(generation) {
            if self.stopping.is_cancelled() {
                break;
            }
            self.settle_object(&key, self.deadline()).await?;
        }
        Ok(())
    }

    async fn settle_object(&self, key: &Key, deadline: Instant) -> Result<(), Error> {
        let _turn = self.objects.turn(key, deadline).await?;
        let Some(held) = self.objects.get(key) else { return Ok(()) };
        let settled = self.change(
            key,
            deadline,
            || self.lease.admitted(),
            |Seen { record, grip, .. }| {
                let ours = record.filter(|record| self.is_ours(record, &held.claim) && record.phase != ObjectPhase::Gone);
                let step = match ours {
                    Some(record) => {
                        let lease_generation = grip.generation;
                        Step::commit(ObjectRecord { lease_generation, ..record }, Some(lease_generation))
                    }
                    None => Step::Answer(None),
                };
                async move { Ok(step) }.boxed()
            },
        );
        let settled = settled.await?;
        match settled {
            Some(lease_generation) => self.objects.hold(key.clone(), held.claim, lease_generation),
            None => self.objects.drop_hold(key),
        }
        Ok(())
    }
}

fn next_owner(record: &ObjectRecord) -> Result<u64, Error> {
    let next = record.owner_generation.checked_add(1).filter(|next| *next <= super::lease::MAX_GENERATION);
    next.ok_or_else(|| Error::internal("an object has no owner generation left"))
}
