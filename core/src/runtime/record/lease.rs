//! An owner's lease.

use std::fmt;

use super::{Reader, Record, Writer};

/// Who owns nodes and objects: 128 random bits, new at each start of a runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::runtime) struct OwnerId(pub(in crate::runtime) [u8; 16]);

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Lives as long as its owner renews it; whose it is stands in its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct LeaseRecord {
    /// Grows with each claim of this owner, 1..=2^63−1.
    pub(in crate::runtime) generation: u64,
}

impl Record for LeaseRecord {
    const KIND: u8 = b'l';
    const WHAT: &'static str = "lease";

    fn write(&self, to: &mut Writer) {
        to.number(self.generation);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { generation: from.number()? })
    }
}
