//! Where an actor or a spot lives.

use super::{OwnerId, Reader, Record, Writer};
use crate::runtime::names::{MeshName, NodeId, RoutingId, StableType};
use crate::runtime::object::ObjectKind;

/// How far an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum ObjectPhase {
    Reserved,
    Active,
    /// Released or aborted: kept for a while for its generation, and otherwise missing.
    Gone,
}

/// One object's record; its id stands in its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct ObjectRecord {
    pub(in crate::runtime) kind: ObjectKind,
    pub(in crate::runtime) phase: ObjectPhase,
    pub(in crate::runtime) stable_type: StableType,
    /// Distinguishes objects that had the same id one after the other.
    pub(in crate::runtime) object_generation: u64,
    /// Counts the owners of this one.
    pub(in crate::runtime) owner_generation: u64,
    pub(in crate::runtime) node: NodeId,
    pub(in crate::runtime) owner: OwnerId,
    pub(in crate::runtime) lease_generation: u64,
}

impl Record for ObjectRecord {
    const KIND: u8 = b'o';
    const WHAT: &'static str = "object";

    fn write(&self, to: &mut Writer) {
        to.byte(self.kind.number());
        to.byte(match self.phase {
            ObjectPhase::Reserved => 1,
            ObjectPhase::Active => 2,
            ObjectPhase::Gone => 3,
        });
        to.text(self.stable_type.as_str());
        to.number(self.object_generation);
        to.number(self.owner_generation);
        to.text(self.node.mesh_name.as_str());
        to.bytes(self.node.node_rid.as_bytes());
        to.owner(self.owner);
        to.number(self.lease_generation);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            kind: ObjectKind::from_number(from.byte()?)?,
            phase: match from.byte()? {
                1 => ObjectPhase::Reserved,
                2 => ObjectPhase::Active,
                3 => ObjectPhase::Gone,
                _ => return None,
            },
            stable_type: StableType::new(from.text()?).ok()?,
            object_generation: from.number()?,
            owner_generation: from.number()?,
            node: NodeId { mesh_name: MeshName::new(from.text()?).ok()?, node_rid: RoutingId::new(from.bytes()?).ok()? },
            owner: from.owner()?,
            lease_generation: from.number()?,
        })
    }
}
