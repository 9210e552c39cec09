//! This runtime's own node descriptors: published, published again, removed.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use super::core::Core;
use super::keys;
use super::leases::Evidence;
use super::names::NodeId;
use super::node::{NodeDescriptor, NodeState, PublishResult};
use super::record::{NodeRecord, Record};
use super::retry::Retry;
use super::stores::unavailable;
use crate::background;
use crate::contract::{Condition, Error, Mutation, Outcome, ReadResult, WriteRequest, WriteResult};

#[derive(Default)]
pub(super) struct Nodes {
    ours: Mutex<BTreeMap<NodeId, Published>>,
    /// One at a time: two publications of one node must not overtake each other.
    turn: tokio::sync::Mutex<()>,
}

struct Published {
    descriptor: NodeDescriptor,
    /// The lease's generation that its record carries; 0 if it must be published again whatever that is.
    lease_generation: u64,
}

impl Nodes {
    pub(super) fn has(&self, node: &NodeId) -> bool {
        self.ours.lock().contains_key(node)
    }

    pub(super) fn names(&self) -> Vec<NodeId> {
        self.ours.lock().keys().cloned().collect()
    }

    /// Has a node published again.
    pub(super) fn missed(&self, node: &NodeId) {
        if let Some(ours) = self.ours.lock().get_mut(node) {
            ours.lease_generation = 0;
        }
    }

    fn stale(&self, lease_generation: u64) -> Vec<NodeDescriptor> {
        let ours = self.ours.lock();
        let stale = ours.values().filter(|ours| ours.lease_generation != lease_generation);
        stale.map(|ours| ours.descriptor.clone()).collect()
    }
}

impl Core {
    pub(super) async fn publish_node(&self, descriptor: NodeDescriptor, deadline: Instant) -> Result<PublishResult, Error> {
        if descriptor.state == NodeState::Lost {
            return Err(Error::argument("state", "must not be LOST: that is what others see of a node whose owner is gone"));
        }
        let _turn = self.nodes_turn(deadline).await?;
        self.put_node(descriptor, deadline).await
    }

    async fn nodes_turn(&self, deadline: Instant) -> Result<tokio::sync::MutexGuard<'_, ()>, Error> {
        background::timeout_at(deadline, self.nodes.turn.lock())
            .await
            .map_err(|_| unavailable(Outcome::NotApplied, "another publication of this runtime took all of the operation's time"))
    }

    async fn put_node(&self, descriptor: NodeDescriptor, deadline: Instant) -> Result<PublishResult, Error> {
        let key = keys::node(&descriptor.node)?;
        let mut retry = Retry::until(deadline);
        loop {
            let mut request = WriteRequest::new();
            let updated_at = match self.stores.read(key.clone(), deadline).await? {
                ReadResult::Missing { store_now } => {
                    request.conditions.push(Condition::Missing { key: key.clone() });
                    store_now
                }
                ReadResult::Found(value) => {
                    let standing = NodeRecord::decode(&value.bytes)?;
                    if standing.owner != self.lease.owner {
                        match self.evidence(standing.owner, standing.lease_generation, deadline).await? {
                            Evidence::Live => return Ok(PublishResult::Occupied),
                            Evidence::Gone(conditions, mutations) => {
                                request.conditions.extend(conditions);
                                request.mutations.extend(mutations);
                            }
                        }
                    }
                    request.conditions.push(Condition::Version { key: key.clone(), expected: value.version });
                    value.store_now
                }
            };
            let grip = self.lease.admitted()?;
            let record = NodeRecord {
                owner: self.lease.owner,
                lease_generation: grip.generation,
                endpoint: descriptor.endpoint.clone(),
                role: descriptor.role.clone(),
                draining: descriptor.draining,
                state: descriptor.state,
                weight: descriptor.weight,
                updated_at,
                lost_at: None,
            };
            request.conditions.push(Condition::Version { key: self.lease.key.clone(), expected: grip.version });
            request.mutations.push(Mutation::put(key.clone(), record.encode()));
            match self.stores.write(request, deadline).await {
                Ok(WriteResult::Applied { .. }) => {
                    let published = Published { lease_generation: grip.generation, descriptor };
                    self.nodes.ours.lock().insert(published.descriptor.node.clone(), published);
                    return Ok(PublishResult::Published);
                }
                Ok(WriteResult::Conflict { .. }) => {}
                // Publishing again puts the same, under a version that only one of both attempts finds.
                Err(error) => retry.failed(error)?,
            }
            self.after_conflict(&mut retry, deadline).await?;
        }
    }

    /// Deletes a descriptor of ours. One that is somebody else's by now is left as it is.
    pub(super) async fn remove_node(&self, node: &NodeId, deadline: Instant) -> Result<(), Error> {
        let _turn = self.nodes_turn(deadline).await?;
        // From here on nothing publishes it again.
        self.nodes.ours.lock().remove(node);
        let is_ours = |bytes: &[u8]| Ok(NodeRecord::decode(bytes)?.owner == self.lease.owner);
        self.stores.delete_ours(&keys::node(node)?, is_ours, &*self.ambient, deadline).await
    }

    /// Publishes again what does not stand under the lease as it is now.
    pub(super) async fn settle_nodes(&self) -> Result<(), Error> {
        let generation = self.lease.admitted()?.generation;
        for descriptor in self.nodes.stale(generation) {
            let deadline = self.deadline();
            let _turn = self.nodes_turn(deadline).await?;
            // It may have been published anew, or removed, while this waited.
            let Some(descriptor) = self.nodes.stale(generation).into_iter().find(|stale| stale.node == descriptor.node) else {
                continue;
            };
            let node = descriptor.node.clone();
            if self.put_node(descriptor, deadline).await? == PublishResult::Occupied {
                tracing::warn!("another runtime has published the node {node} since this one's lease ran out");
                self.nodes.ours.lock().remove(&node);
            }
        }
        Ok(())
    }
}
