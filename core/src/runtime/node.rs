//! What is said of a node.

use super::names::{NodeEndpoint, NodeId, Role};

/// The state of a node (spec: runtime.md, Query). Its numbers are stored, and other languages show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Known, and not connected yet.
    Discovered = 1,
    /// Connecting.
    Connecting = 2,
    /// Serving.
    Ready = 3,
    /// Its owner's lease is gone. A node cannot say this of itself.
    Lost = 4,
    /// It failed, and said so.
    Error = 5,
    /// It stopped, and said so.
    Stopped = 6,
}

impl NodeState {
    /// Every state.
    pub const ALL: [Self; 6] = [Self::Discovered, Self::Connecting, Self::Ready, Self::Lost, Self::Error, Self::Stopped];

    /// Its number, 1..=6.
    pub fn number(self) -> u8 {
        match self {
            Self::Discovered => 1,
            Self::Connecting => 2,
            Self::Ready => 3,
            Self::Lost => 4,
            Self::Error => 5,
            Self::Stopped => 6,
        }
    }

    /// The state of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// Its text form, such as `READY`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "DISCOVERED",
            Self::Connecting => "CONNECTING",
            Self::Ready => "READY",
            Self::Lost => "LOST",
            Self::Error => "ERROR",
            Self::Stopped => "STOPPED",
        }
    }

    /// What others see of a node that says this of itself: what it says while its owner's lease is live, and for ever if it
    /// stopped or failed.
    pub(super) fn seen(self, lease_is_live: bool) -> Self {
        match self {
            Self::Stopped | Self::Error => self,
            _ if !lease_is_live => Self::Lost,
            _ => self,
        }
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDescriptor {
    /// Which node.
    pub node: NodeId,
    /// Where it is reached.
    pub endpoint: NodeEndpoint,
    /// What it is there for.
    pub role: Role,
    /// Whether it takes no new work.
    pub draining: bool,
    /// Any state but [`NodeState::Lost`].
    pub state: NodeState,
    /// Its share of work, relative to others'; the runtime keeps it and uses it for nothing.
    pub weight: u32,
}

/// The answer to publishing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishResult {
    /// It stands, and is published again whenever it must be, until it is removed or the runtime stops.
    Published,
    /// A live runtime other than this one has published a node under this mesh and routing id; nothing changed.
    Occupied,
}
