//! The location runtime: the layer that uses a Location Store to say who is where (spec: runtime.md; seeds: registration and
//! lifetime, operational query).
//!
//! It stands on the stores' public SPI alone, [`LocationProvider`], so it runs on our stores and on anybody's. A runtime has one
//! *owner lease*, which lives as long as it is renewed; the nodes it publishes and the objects it holds carry the lease's
//! generation, and are as alive as that. Its records are its own, and shown to nobody.
//!
//! ```
//! use std::sync::Arc;
//! use zlink_store::LocationStore;
//! use zlink_store::runtime::*;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = FrameworkOptions::new();
//! options.add_location_store(Arc::new(LocationStore::open("memory:", Default::default())?))?;
//! let runtime = LocationRuntime::start(options).await?;
//! let node = NodeId { mesh_name: MeshName::new("game")?, node_rid: RoutingId::parse("node-1")? };
//! runtime
//!     .publish_node(NodeDescriptor {
//!         node: node.clone(),
//!         endpoint: NodeEndpoint::new("tcp://10.0.0.7:4000")?,
//!         role: Role::new("server")?,
//!         draining: false,
//!         state: NodeState::Ready,
//!         weight: 1,
//!     })
//!     .await?;
//! let id = ObjectId { kind: ObjectKind::Actor, global_id: GlobalId::new("player/7")? };
//! if let ReserveResult::Reserved(claim) = runtime.reserve(id, StableType::new("Player")?, node).await? {
//!     runtime.commit(claim).await?;
//! }
//! runtime.stop().await?;
//! # Ok(())
//! # }
//! ```

mod change;
mod claims;
mod core;
mod keeper;
mod keys;
mod lease;
mod leases;
mod lifetime;
mod names;
mod node;
mod nodes;
mod object;
mod objects;
mod options;
mod provider;
mod query;
mod record;
mod retry;
mod scans;
mod stores;
mod sweep;
mod taking;
#[cfg(test)]
mod tests;

pub use lifetime::LifetimeError;
pub use names::{GlobalId, MeshName, NodeEndpoint, NodeId, Role, RoutingId, StableType};
pub use node::{NodeDescriptor, NodeState, PublishResult};
pub use object::{
    ClaimResult, MoveResult, ObjectClaim, ObjectEntry, ObjectId, ObjectKind, ObjectState, ReserveResult, TakeResult,
};
pub use options::{FrameworkOptions, LocationRuntimeOptions};
pub use provider::{LocationProvider, RelocationProvider};
pub use query::{
    Change, ObjectFilter, Page, PageRequest, RuntimeStatus, ServiceSummary, ServiceSummaryFilter, TopologyEntry, TopologyFilter,
    Watch,
};

use std::fmt;
use std::sync::Arc;

use self::lifetime::Life;
use self::record::ObjectPhase;
use crate::ambient;
use crate::call::{Kind, Operation};

/// A started location runtime. Clones share it.
///
/// Dropping the last clone without [`stop`](Self::stop) ends its own work as a crash would, and closes the stores: what it
/// published stands, and is found lost when its lease has run out.
///
/// Every operation fails with `UNAVAILABLE` if the Location Store fails, whatever that failed with, or gives no answer within
/// the operation timeout; with `INCOMPATIBLE` if it meets a record of a newer version; with `CLOSED` once the runtime stops.
#[derive(Clone)]
pub struct LocationRuntime(Arc<Life>);

impl LocationRuntime {
    /// Checks the options, claims an owner lease of its own and begins to renew it.
    ///
    /// # Errors
    /// What is wrong with the options (`INVALID_ARGUMENT`, before anything starts), or why the lease could not be claimed. The
    /// stores are closed then, and what failed in that follows.
    pub async fn start(options: FrameworkOptions) -> Result<Self, LifetimeError> {
        Life::start(options, ambient::system()).await.map(Self)
    }

    /// Refuses new operations, ends its own work, waits for operations under way, releases the objects and removes the nodes that
    /// it published, gives up its lease, then closes the Location Store and the Relocation Store, once each. A second call waits
    /// for the first, and gives its answer.
    ///
    /// # Errors
    /// All that went wrong on the way; the rest was done all the same.
    pub async fn stop(&self) -> Result<(), LifetimeError> {
        self.0.stop().await
    }

    /// Publishes a node, or what changed about one, until it is removed or the runtime stops.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the state is `LOST`; `UNAVAILABLE`, too, if the lease may have run out.
    pub fn publish_node(&self, descriptor: NodeDescriptor) -> Operation<PublishResult> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.publish_node(descriptor, deadline).await })
    }

    /// Removes a node of this runtime's; a missing one, or another runtime's, is left as it is.
    ///
    /// # Errors
    /// As every operation.
    pub fn remove_node(&self, node: NodeId) -> Operation<()> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.remove_node(&node, deadline).await })
    }

    /// Reserves an id that has no object, for an object to be created on `node`. If the outcome is unknown, reserving again
    /// finds that out.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if this runtime has not published `node`; `UNAVAILABLE`, too, if the lease may have run out.
    pub fn reserve(&self, id: ObjectId, stable_type: StableType, node: NodeId) -> Operation<ReserveResult> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.reserve(id, stable_type, node, deadline).await })
    }

    /// Makes a reserved object active. Committing again does nothing more.
    ///
    /// # Errors
    /// `UNAVAILABLE`, too, if the lease may have run out. If the outcome is unknown, commit again.
    pub fn commit(&self, claim: ObjectClaim) -> Operation<ClaimResult> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.commit(claim, deadline).await })
    }

    /// Gives a reserved object up. Its id is free; only its generation is remembered, for 1 h.
    ///
    /// # Errors
    /// As every operation. If the outcome is unknown, the runtime itself finds it out, or abort again.
    pub fn abort(&self, claim: ObjectClaim) -> Operation<ClaimResult> {
        self.0
            .core
            .operation(Kind::Write, |core, deadline| async move { core.give_up(claim, &[ObjectPhase::Reserved], deadline).await })
    }

    /// Gives an active object up, as [`abort`](Self::abort) does a reserved one.
    ///
    /// # Errors
    /// As [`abort`](Self::abort).
    pub fn release(&self, claim: ObjectClaim) -> Operation<ClaimResult> {
        self.0
            .core
            .operation(Kind::Write, |core, deadline| async move { core.give_up(claim, &[ObjectPhase::Active], deadline).await })
    }

    /// Moves an active object to another live node, which keeps its generation. From the moment of the call on it is not ours,
    /// until it is known not to have moved.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it lives on `target` already; `UNAVAILABLE`, too, if the lease may have run out.
    pub fn move_to(&self, claim: ObjectClaim, target: NodeId) -> Operation<MoveResult> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.move_to(claim, target, deadline).await })
    }

    /// Takes an object, reserved or active, over from an owner whose lease is gone. What is ours already is taken as it is.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if this runtime has not published `node`; `UNAVAILABLE`, too, if the lease may have run out. If the
    /// outcome is unknown, take it over again.
    pub fn take_over(&self, id: ObjectId, node: NodeId) -> Operation<TakeResult> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.take(id, Some(node), deadline).await })
    }

    /// Takes hold of an object that was moved to a node of this runtime's.
    ///
    /// # Errors
    /// `UNAVAILABLE`, too, if the lease may have run out.
    pub fn attach(&self, id: ObjectId) -> Operation<TakeResult> {
        self.0.core.operation(Kind::Write, |core, deadline| async move { core.take(id, None, deadline).await })
    }

    /// Whether the object is this claim's, by the local clock and without I/O: no other runtime can have it while this is true.
    pub fn is_owner(&self, claim: &ObjectClaim) -> bool {
        let core = &self.0.core;
        let (Ok(key), Ok(lease)) = (keys::object(claim.id.kind, &claim.id.global_id), core.lease.admitted()) else {
            return false;
        };
        !core.stopping.is_cancelled() && core.objects.is_held(&key, claim, lease.generation)
    }

    /// How this runtime is, as it knows it: no I/O.
    pub fn status(&self) -> RuntimeStatus {
        self.0.core.status()
    }

    /// One page of nodes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a page size over 1,000 and a token of another query; `UNAVAILABLE`, too, if the snapshot of an
    /// earlier page is gone: begin again with the first one.
    pub fn list_topology(&self, filter: TopologyFilter, page: PageRequest) -> Operation<Page<TopologyEntry>> {
        self.0.core.operation(Kind::Scan, |core, deadline| async move { core.list_topology(filter, page, deadline).await })
    }

    /// One page of meshes, with their nodes counted.
    ///
    /// # Errors
    /// As [`list_topology`](Self::list_topology).
    pub fn list_service_summaries(&self, filter: ServiceSummaryFilter, page: PageRequest) -> Operation<Page<ServiceSummary>> {
        self.0.core.operation(Kind::Scan, |core, deadline| async move { core.list_summaries(filter, page, deadline).await })
    }

    /// Where an actor is; `None` if there is none of this id. An object is never remembered; whether its owner is alive, for at
    /// most the polling interval.
    ///
    /// # Errors
    /// As every operation.
    pub fn find_actor_location(&self, id: GlobalId) -> Operation<Option<ObjectEntry>> {
        self.0.core.operation(Kind::Read, |core, deadline| async move { core.find(ObjectKind::Actor, id, deadline).await })
    }

    /// Where a spot is, whichever kind of spot it is; else as [`find_actor_location`](Self::find_actor_location).
    ///
    /// # Errors
    /// As every operation.
    pub fn find_spot_location(&self, id: GlobalId) -> Operation<Option<ObjectEntry>> {
        self.0.core.operation(Kind::Read, |core, deadline| async move { core.find(ObjectKind::UserSpot, id, deadline).await })
    }

    /// One page of objects.
    ///
    /// # Errors
    /// As [`list_topology`](Self::list_topology).
    pub fn list_object_locations(&self, filter: ObjectFilter, page: PageRequest) -> Operation<Page<ObjectEntry>> {
        self.0.core.operation(Kind::Scan, |core, deadline| async move { core.list_objects(filter, page, deadline).await })
    }

    /// Whether a node is alive, ready, not draining and in this role. Any failure, and a runtime that has stopped: no.
    ///
    /// # Errors
    /// Only `CANCELLED`.
    pub fn is_peer_ready(&self, node: NodeId, role: Role) -> Operation<bool> {
        let asked = self.0.core.operation(Kind::Read, |core, deadline| async move { core.is_ready(node, role, deadline).await });
        Operation::of(async move { Ok(asked.await.unwrap_or(false)) })
    }

    /// The nodes, and what changes about them, as looks one polling interval after another see it.
    pub fn watch_topology(&self, filter: TopologyFilter) -> Watch<TopologyEntry> {
        self.0.core.watch_topology(filter)
    }

    /// The objects, and what changes about them, as [`watch_topology`](Self::watch_topology) does for nodes.
    pub fn watch_objects(&self, filter: ObjectFilter) -> Watch<ObjectEntry> {
        self.0.core.watch_objects(filter)
    }
}

impl fmt::Debug for LocationRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocationRuntime").field("owner", &self.0.core.lease.owner).finish_non_exhaustive()
    }
}
