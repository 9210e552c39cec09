//! What a read answers.

use bytes::Bytes;

use super::{StoreTime, Version};

/// A live record as one observation saw it: all fields belong to the same instant of the engine's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredValue {
    /// The bytes that were put.
    pub bytes: Bytes,
    /// The version that the put got.
    pub version: Version,
    /// When the record expires; `None` for a durable one.
    pub expires_at: Option<StoreTime>,
    /// The instant of the observation.
    pub store_now: StoreTime,
}

/// The answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// There is no live record under the key (never put, deleted or expired).
    Missing {
        /// The instant of the observation.
        store_now: StoreTime,
    },
    /// The live record.
    Found(StoredValue),
}
