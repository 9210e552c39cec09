//! Descriptors of nodes whose owner is gone: stamped, and deleted ten minutes of the store's clock later, by whoever comes.

use std::collections::HashSet;

use super::core::Core;
use super::keys;
use super::record::{NodeRecord, Record};
use crate::contract::{Condition, Error, Mutation, ScanItem, ScanRequest, ScanResult, StoreTime, WriteRequest, limits};

/// How long a lost node's descriptor stands, in milliseconds: 10 min.
pub(super) const LOST_FOR_MS: u64 = 10 * 60 * 1_000;

impl Core {
    /// One look at all descriptors. Those of ours that are not there are published again.
    pub(super) async fn sweep(&self) -> Result<(), Error> {
        let ours = self.nodes.names();
        let mut missing: HashSet<_> = ours.iter().cloned().collect();
        let _scan = self.scans.turn(keys::NODES, self.deadline()).await?;
        let mut request = ScanRequest::new(keys::NODES, limits::MAX_SCAN_LIMIT);
        loop {
            let deadline = self.deadline();
            // A snapshot that is gone ends this look; the next one comes.
            let ScanResult::Page(page) = self.stores.scan(request.clone(), deadline).await? else { return Ok(()) };
            let mut nodes = Vec::with_capacity(page.items.len());
            for item in page.items {
                missing.remove(&keys::node_of(&item.key)?);
                let record = NodeRecord::decode(&item.value.bytes)?;
                nodes.push((item, record));
            }
            let live = self.live(nodes.iter().map(|(_, record)| record.owner), deadline).await?;
            for (item, record) in nodes {
                if !live.has_any(record.owner) && !self.stopping.is_cancelled() {
                    self.look_after(item, record, page.store_now).await?;
                }
            }
            let Some(cursor) = page.next_cursor else { break };
            if self.stopping.is_cancelled() {
                return Ok(());
            }
            request = request.after(cursor);
        }
        for node in missing {
            self.nodes.missed(&node);
            self.unsettled.notify_one();
        }
        Ok(())
    }

    async fn look_after(&self, item: ScanItem, record: NodeRecord, store_now: StoreTime) -> Result<(), Error> {
        let key = item.key;
        let mutation = match record.lost_at {
            None => Mutation::put(key.clone(), NodeRecord { lost_at: Some(store_now), ..record.clone() }.encode()),
            Some(lost_at) if store_now.unix_ms().saturating_sub(lost_at.unix_ms()) >= LOST_FOR_MS => {
                Mutation::delete(key.clone())
            }
            Some(_) => return Ok(()),
        };
        let request = WriteRequest::new()
            .condition(Condition::Version { key, expected: item.value.version })
            .condition(Condition::Missing { key: keys::lease(record.owner)? })
            .mutation(mutation);
        // In a conflict somebody else did it, or the owner is back.
        self.stores.write(request, self.deadline()).await.map(drop)
    }
}
