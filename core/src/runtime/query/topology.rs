//! Which nodes are there.

use std::time::Instant;

use super::pages::{Page, PageRequest};
use super::token::Fingerprint;
use crate::contract::{Error, ScanItem, StoreTime};
use crate::runtime::core::Core;
use crate::runtime::keys;
use crate::runtime::names::{MeshName, NodeEndpoint, NodeId, RoutingId};
use crate::runtime::node::NodeState;
use crate::runtime::record::{NodeRecord, Record};

/// Which nodes: those that all of these hold for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyFilter {
    /// Of this mesh.
    pub mesh_name: Option<MeshName>,
    /// With this routing id.
    pub node_rid: Option<RoutingId>,
    /// In this state.
    pub state: Option<NodeState>,
}

/// A node, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyEntry {
    /// Which node, with its mesh.
    pub node: NodeId,
    /// Where it is reached.
    pub endpoint: NodeEndpoint,
    /// Whether it takes no new work.
    pub draining: bool,
    /// What it says of itself while its owner's lease is live, and then `LOST`; `STOPPED` and `ERROR` stay.
    pub state: NodeState,
    /// When it was last published, by the store's clock.
    pub updated_at: StoreTime,
}

impl TopologyFilter {
    pub(super) fn prefix(&self) -> String {
        self.mesh_name.as_ref().map_or_else(|| keys::NODES.to_owned(), keys::nodes_of)
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of("topology")
            .field(self.mesh_name.as_ref().map(|mesh| mesh.as_str().as_bytes()))
            .field(self.node_rid.as_ref().map(RoutingId::as_bytes))
            .field(self.state.map(|state| state.as_str().as_bytes()))
    }
}

impl Core {
    pub(in crate::runtime) async fn list_topology(
        &self,
        filter: TopologyFilter,
        request: PageRequest,
        deadline: Instant,
    ) -> Result<Page<TopologyEntry>, Error> {
        let filter = &filter;
        self.page(&filter.prefix(), &filter.fingerprint(), request, deadline, |items| async move {
            let seen = self.nodes_seen(items, deadline).await?;
            let wanted = |entry: &TopologyEntry| {
                filter.node_rid.as_ref().is_none_or(|rid| entry.node.node_rid == *rid)
                    && filter.state.is_none_or(|state| entry.state == state)
            };
            Ok(seen.into_iter().filter(wanted).collect())
        })
        .await
    }

    /// Descriptors, as others see them.
    pub(super) async fn nodes_seen(&self, items: Vec<ScanItem>, deadline: Instant) -> Result<Vec<TopologyEntry>, Error> {
        let mut nodes = Vec::with_capacity(items.len());
        for item in items {
            nodes.push((keys::node_of(&item.key)?, NodeRecord::decode(&item.value.bytes)?));
        }
        let live = self.live(nodes.iter().map(|(_, record)| record.owner), deadline).await?;
        let seen = nodes.into_iter().map(|(node, record)| TopologyEntry {
            node,
            state: record.state.seen(live.has(record.owner, record.lease_generation)),
            endpoint: record.endpoint,
            draining: record.draining,
            updated_at: record.updated_at,
        });
        Ok(seen.collect())
    }
}
