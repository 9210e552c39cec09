//! What is said of an object, and the results of the operations on one.

use super::names::{GlobalId, NodeId, StableType};

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// An actor.
    Actor,
    /// A spot of users.
    UserSpot,
    /// A spot that is made from an instance's id. Both kinds of spot share one id space.
    InstanceSpot,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Actor, Self::UserSpot, Self::InstanceSpot];

    /// Its text form, such as `USER_SPOT`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Actor => "ACTOR",
            Self::UserSpot => "USER_SPOT",
            Self::InstanceSpot => "INSTANCE_SPOT",
        }
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::Actor => 1,
            Self::UserSpot => 2,
            Self::InstanceSpot => 3,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// Which object: a kind and a global id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId {
    /// The kind.
    pub kind: ObjectKind,
    /// The id, unique among actors, or among spots.
    pub global_id: GlobalId,
}

/// The state of an object that is there (seed: Operational query).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectState {
    /// Reserved, and not committed yet.
    Creating,
    /// Committed, and its owner's lease is live.
    Ready,
    /// Committed, and its owner's lease is gone.
    Unavailable,
}

impl ObjectState {
    /// Its text form, such as `READY`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Ready => "READY",
            Self::Unavailable => "UNAVAILABLE",
        }
    }
}

/// Where an object is, as a query answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its id.
    pub global_id: GlobalId,
    /// Distinguishes it from others that had its id before, 1..=2^63−1; larger than theirs.
    pub object_generation: u64,
    /// The node it lives on, with its mesh.
    pub node: NodeId,
    /// Its state.
    pub state: ObjectState,
    /// Its type.
    pub stable_type: StableType,
}

/// A runtime's hold on an object that it reserved, took over or was given: what the further operations on it take. Another
/// runtime's operations, and a lost lease, end it: [`LocationRuntime::is_owner`](super::LocationRuntime::is_owner).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectClaim {
    /// Which object.
    pub id: ObjectId,
    /// Which of those that had this id.
    pub object_generation: u64,
    /// How many owners it had; a fencing token within its generation.
    pub owner_generation: u64,
    /// The node it lives on.
    pub node: NodeId,
}

/// The answer to a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveResult {
    /// It is ours to create.
    Reserved(ObjectClaim),
    /// There is one under this id.
    Exists(ObjectEntry),
}

/// The answer to a commit, an abort or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimResult {
    /// Done; also when it was done before.
    Done,
    /// The object is not this claim's any more, or it is not in the state that the operation is for; nothing changed.
    Lost,
}

/// The answer to a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveResult {
    /// The object is the target's, which may [`attach`](super::LocationRuntime::attach) it.
    Moved,
    /// The object is not this claim's any more, or not committed; nothing changed.
    Lost,
    /// The target is not published, or its owner's lease is gone; nothing changed.
    TargetUnavailable,
}

/// The answer to a takeover, and to an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeResult {
    /// The object is ours.
    Taken {
        /// Our hold on it.
        claim: ObjectClaim,
        /// Whether it is active; else it is still reserved, to be committed or aborted.
        committed: bool,
    },
    /// Its owner is another one, and alive; nothing changed.
    Owned(ObjectEntry),
    /// There is no such object.
    Missing,
}
