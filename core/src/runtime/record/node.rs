//! A node's descriptor.

use super::{OwnerId, Reader, Record, Writer};
use crate::contract::StoreTime;
use crate::runtime::names::{NodeEndpoint, Role};
use crate::runtime::node::NodeState;

/// What a node says of itself; which node it is stands in its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct NodeRecord {
    pub(in crate::runtime) owner: OwnerId,
    pub(in crate::runtime) lease_generation: u64,
    pub(in crate::runtime) endpoint: NodeEndpoint,
    pub(in crate::runtime) role: Role,
    pub(in crate::runtime) draining: bool,
    pub(in crate::runtime) state: NodeState,
    pub(in crate::runtime) weight: u32,
    pub(in crate::runtime) updated_at: StoreTime,
    /// When its lease was first found missing.
    pub(in crate::runtime) lost_at: Option<StoreTime>,
}

impl Record for NodeRecord {
    const KIND: u8 = b'n';
    const WHAT: &'static str = "node";

    fn write(&self, to: &mut Writer) {
        to.owner(self.owner);
        to.number(self.lease_generation);
        to.text(self.endpoint.as_str());
        to.text(self.role.as_str());
        to.byte(u8::from(self.draining));
        to.byte(self.state.number());
        to.number(self.weight.into());
        to.number(self.updated_at.unix_ms());
        // Zero is no instant at which anything is lost.
        to.number(self.lost_at.map_or(0, |at| at.unix_ms().max(1)));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            owner: from.owner()?,
            lease_generation: from.number()?,
            endpoint: NodeEndpoint::new(from.text()?).ok()?,
            role: Role::new(from.text()?).ok()?,
            draining: match from.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            state: NodeState::from_number(from.byte()?)?,
            weight: from.number()?.try_into().ok()?,
            updated_at: StoreTime::from_unix_ms(from.number()?),
            lost_at: Some(from.number()?).filter(|at| *at > 0).map(StoreTime::from_unix_ms),
        })
    }
}
