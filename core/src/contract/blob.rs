//! Immutable blobs.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{Error, StoreTime, limits};

/// The bytes of a blob on their way in: at hand, or handed over piece by piece by whoever owns them.
#[derive(Clone)]
pub enum Payload {
    /// All bytes at hand.
    Bytes(Bytes),
    /// Bytes that their owner hands over range by range, so that a large payload is never copied as a whole.
    Source(Arc<dyn PayloadSource>),
}

/// Hands over a payload range by range. A range may be asked for more than once.
pub trait PayloadSource: Send + Sync {
    /// Bytes in all.
    fn size(&self) -> usize;
    /// A copy of one range.
    fn range(&self, range: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>>;
}

impl Payload {
    /// Bytes in all.
    pub fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Source(source) => source.size(),
        }
    }

    /// One range of the bytes.
    ///
    /// # Errors
    /// What the source says; bytes at hand never fail.
    pub async fn range(&self, range: Range<usize>) -> Result<Bytes, Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.slice(range)),
            Self::Source(source) => source.range(range).await,
        }
    }

    /// Checks the size.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` over 67,108,887 bytes.
    pub fn validate(&self) -> Result<(), Error> {
        if self.size() > limits::MAX_BLOB {
            return Err(Error::argument("payload", format!("must be 0..={} bytes, got {}", limits::MAX_BLOB, self.size())));
        }
        Ok(())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.size())
    }
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// The answer to a blob put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobPutResult {
    /// The blob is new.
    Stored {
        /// The commit's instant + retention.
        expires_at: StoreTime,
        /// The commit's instant.
        store_now: StoreTime,
    },
    /// The same bytes are there already; their expiry stands.
    AlreadyStored {
        /// The expiry that stands.
        expires_at: StoreTime,
        /// The instant of the observation.
        store_now: StoreTime,
    },
    /// Other bytes are there; nothing changed.
    Conflict {
        /// The instant of the observation.
        store_now: StoreTime,
    },
}

/// The answer to a blob read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobReadResult {
    /// There is no live blob under the reference.
    Missing {
        /// The instant of the observation.
        store_now: StoreTime,
    },
    /// Exactly the bytes that were put.
    Found {
        /// The bytes.
        bytes: Bytes,
        /// When the blob expires.
        expires_at: StoreTime,
        /// The instant of the observation.
        store_now: StoreTime,
    },
}

/// The answer to a blob renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobRenewResult {
    /// There is no live blob under the reference.
    Missing {
        /// The instant of the observation.
        store_now: StoreTime,
    },
    /// The blob now expires at `expires_at`, also when that is earlier than before.
    Renewed {
        /// The instant of the renewal + retention.
        expires_at: StoreTime,
        /// The instant of the renewal.
        store_now: StoreTime,
    },
}
