//! Answers on one object or node: at most two reads.

use std::time::Instant;

use crate::contract::{Error, ReadResult};
use crate::runtime::core::Core;
use crate::runtime::keys;
use crate::runtime::names::{GlobalId, NodeId, Role};
use crate::runtime::node::NodeState;
use crate::runtime::object::{ObjectEntry, ObjectId, ObjectKind};
use crate::runtime::record::{NodeRecord, ObjectPhase, ObjectRecord, Record};

impl Core {
    /// The object of this id in `kind`'s id space.
    pub(in crate::runtime) async fn find(
        &self,
        kind: ObjectKind,
        global_id: GlobalId,
        deadline: Instant,
    ) -> Result<Option<ObjectEntry>, Error> {
        let key = keys::object(kind, &global_id)?;
        let ReadResult::Found(value) = self.stores.read(key, deadline).await? else { return Ok(None) };
        let record = ObjectRecord::decode(&value.bytes)?;
        if record.phase == ObjectPhase::Gone {
            return Ok(None);
        }
        self.entry(ObjectId { kind: record.kind, global_id }, &record, deadline).await.map(Some)
    }

    /// Whether the node is there, serves in this role and takes work.
    pub(in crate::runtime) async fn is_ready(&self, node: NodeId, role: Role, deadline: Instant) -> Result<bool, Error> {
        let ReadResult::Found(value) = self.stores.read(keys::node(&node)?, deadline).await? else { return Ok(false) };
        let record = NodeRecord::decode(&value.bytes)?;
        if record.state != NodeState::Ready || record.draining || record.role != role {
            return Ok(false);
        }
        Ok(self.live([record.owner], deadline).await?.has(record.owner, record.lease_generation))
    }
}
