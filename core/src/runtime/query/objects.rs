//! What lives where.

use std::time::Instant;

use super::pages::{Page, PageRequest};
use super::token::Fingerprint;
use crate::contract::{Error, ScanItem};
use crate::runtime::core::Core;
use crate::runtime::keys;
use crate::runtime::names::{MeshName, StableType};
use crate::runtime::object::{ObjectEntry, ObjectId, ObjectKind};
use crate::runtime::objects::entry;
use crate::runtime::record::{ObjectPhase, ObjectRecord, Record};

/// Which objects: those that all of these hold for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFilter {
    /// Of this kind.
    pub object_kind: ObjectKind,
    /// Of this type.
    pub stable_type: Option<StableType>,
    /// On nodes of this mesh.
    pub mesh_name: Option<MeshName>,
}

impl ObjectFilter {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of("objects")
            .field(Some(self.object_kind.as_str().as_bytes()))
            .field(self.stable_type.as_ref().map(|stable_type| stable_type.as_str().as_bytes()))
            .field(self.mesh_name.as_ref().map(|mesh| mesh.as_str().as_bytes()))
    }

    fn wants(&self, record: &ObjectRecord) -> bool {
        record.phase != ObjectPhase::Gone
            && record.kind == self.object_kind
            && self.stable_type.as_ref().is_none_or(|stable_type| record.stable_type == *stable_type)
            && self.mesh_name.as_ref().is_none_or(|mesh| record.node.mesh_name == *mesh)
    }
}

impl Core {
    pub(in crate::runtime) async fn list_objects(
        &self,
        filter: ObjectFilter,
        request: PageRequest,
        deadline: Instant,
    ) -> Result<Page<ObjectEntry>, Error> {
        let filter = &filter;
        let pick = |items: Vec<ScanItem>| async move {
            let mut wanted = Vec::new();
            for item in items {
                let record = ObjectRecord::decode(&item.value.bytes)?;
                if filter.wants(&record) {
                    let global_id = keys::id_of(filter.object_kind, &item.key)?;
                    wanted.push((ObjectId { kind: record.kind, global_id }, record));
                }
            }
            let owners = wanted.iter().filter(|(_, record)| record.phase == ObjectPhase::Active);
            let live = self.live(owners.map(|(_, record)| record.owner), deadline).await?;
            let seen =
                |(id, record): (ObjectId, ObjectRecord)| entry(id, &record, live.has(record.owner, record.lease_generation));
            Ok(wanted.into_iter().map(seen).collect())
        };
        self.page(keys::objects(filter.object_kind), &filter.fingerprint(), request, deadline, pick).await
    }
}
