//! The nodes of each mesh, counted.

use std::time::Instant;

use super::pages::{Page, PageRequest, cut, half_way};
use super::token::Fingerprint;
use super::topology::{TopologyEntry, TopologyFilter};
use crate::ambient;
use crate::contract::{Cursor, Error, ScanRequest, StoreTime, limits};
use crate::runtime::core::Core;
use crate::runtime::names::MeshName;
use crate::runtime::node::NodeState;
use crate::runtime::retry::Retry;

/// Which meshes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceSummaryFilter {
    /// This one.
    pub mesh_name: Option<MeshName>,
}

/// A mesh's nodes, counted. Lost ones, and those that are not ready yet, count in the total only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSummary {
    /// The mesh.
    pub mesh_name: MeshName,
    /// All its nodes.
    pub total_count: u64,
    /// The ready ones.
    pub ready_count: u64,
    /// Those that say they failed.
    pub error_count: u64,
    /// Those that say they stopped.
    pub stopped_count: u64,
    /// When one of them was last published, by the store's clock.
    pub last_updated_at: StoreTime,
}

impl ServiceSummary {
    fn of(mesh_name: MeshName) -> Self {
        let last_updated_at = StoreTime::from_unix_ms(0);
        Self { mesh_name, total_count: 0, ready_count: 0, error_count: 0, stopped_count: 0, last_updated_at }
    }

    fn count(&mut self, node: &TopologyEntry) {
        self.total_count += 1;
        match node.state {
            NodeState::Ready => self.ready_count += 1,
            NodeState::Error => self.error_count += 1,
            NodeState::Stopped => self.stopped_count += 1,
            NodeState::Discovered | NodeState::Connecting | NodeState::Lost => {}
        }
        self.last_updated_at = self.last_updated_at.max(node.updated_at);
    }
}

impl Core {
    /// A page holds whole meshes. It ends before the first record of the next mesh: the store's page in which that one lies is
    /// read once more, up to it, for the cursor there.
    pub(in crate::runtime) async fn list_summaries(
        &self,
        filter: ServiceSummaryFilter,
        request: PageRequest,
        deadline: Instant,
    ) -> Result<Page<ServiceSummary>, Error> {
        let query = Fingerprint::of("summaries").field(filter.mesh_name.as_ref().map(|mesh| mesh.as_str().as_bytes()));
        let prefix = TopologyFilter { mesh_name: filter.mesh_name, ..TopologyFilter::default() }.prefix();
        let size = request.checked_size()? as usize;
        let from = request.continuation_token.map(|token| query.cursor(&token)).transpose()?;
        let _scan = self.scans.turn(&prefix, deadline).await?;
        let mut retry = Retry::until(deadline);
        loop {
            match self.summaries(&prefix, size, from.clone(), deadline).await? {
                Some((entries, cursor)) => {
                    return Ok(Page { entries, continuation_token: cursor.map(|cursor| query.token(&cursor)) });
                }
                None => retry.pause(&*self.ambient).await?,
            }
        }
    }

    async fn summaries(
        &self,
        prefix: &str,
        size: usize,
        from: Option<Cursor>,
        deadline: Instant,
    ) -> Result<Option<(Vec<ServiceSummary>, Option<Cursor>)>, Error> {
        let enough = half_way(deadline);
        let given = from.is_some();
        let mut meshes: Vec<ServiceSummary> = Vec::new();
        let mut cursor = from;
        loop {
            // The first page fixes the snapshot and cannot be read again: it has one record, which begins the first mesh.
            let limit = if cursor.is_some() { limits::MAX_SCAN_LIMIT } else { 1 };
            let scan = ScanRequest { prefix: prefix.to_owned(), cursor: cursor.clone(), limit };
            let Some(page) = self.scan_page(scan, given, deadline).await? else { return Ok(None) };
            for (place, node) in self.nodes_seen(page.items, deadline).await?.into_iter().enumerate() {
                if meshes.last().is_none_or(|mesh| mesh.mesh_name != node.node.mesh_name) {
                    let full = meshes.len() >= size || (!meshes.is_empty() && ambient::monotonic() >= enough);
                    match cursor {
                        Some(here) if full && place == 0 => return Ok(Some((meshes, Some(here)))),
                        Some(here) if full => {
                            let up_to = self.scan_page(cut(prefix, here, place), given, deadline).await?;
                            return Ok(up_to.map(|page| (meshes, page.next_cursor)));
                        }
                        _ => meshes.push(ServiceSummary::of(node.node.mesh_name.clone())),
                    }
                }
                if let Some(mesh) = meshes.last_mut() {
                    mesh.count(&node);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(Some((meshes, None)));
            }
        }
    }
}
