//! The Relocation Store.

use std::sync::Arc;

use bytes::Bytes;
use zlink_store::BlobReference;

use crate::error::StoreError;
use crate::operation::{Running, Unwanted, operation};
use crate::options::StoreOptions;
use crate::store::store;
use crate::time::{ms, retention};

/// The answer to a blob put.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum BlobPutResult {
    /// The blob is new.
    Stored {
        /// The commit's instant + retention, in Unix milliseconds.
        expires_at_ms: i64,
        /// The commit's instant, in Unix milliseconds.
        store_now_ms: i64,
    },
    /// The same bytes are there already; their expiry stands.
    AlreadyStored {
        /// The expiry that stands, in Unix milliseconds.
        expires_at_ms: i64,
        /// The instant of the observation, in Unix milliseconds.
        store_now_ms: i64,
    },
    /// Other bytes are there; nothing changed.
    Conflict {
        /// The instant of the observation, in Unix milliseconds.
        store_now_ms: i64,
    },
}

/// The answer to a blob read.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum BlobReadResult {
    /// There is no live blob under the reference.
    Missing {
        /// The instant of the observation, in Unix milliseconds.
        store_now_ms: i64,
    },
    /// Exactly the bytes that were put.
    Found {
        /// The bytes.
        bytes: Bytes,
        /// When the blob expires, in Unix milliseconds.
        expires_at_ms: i64,
        /// The instant of the observation, in Unix milliseconds.
        store_now_ms: i64,
    },
}

/// The answer to a blob renewal.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum BlobRenewResult {
    /// There is no live blob under the reference.
    Missing {
        /// The instant of the observation, in Unix milliseconds.
        store_now_ms: i64,
    },
    /// The blob now expires at `expires_at_ms`, also when that is earlier than before.
    Renewed {
        /// The instant of the renewal + retention, in Unix milliseconds.
        expires_at_ms: i64,
        /// The instant of the renewal, in Unix milliseconds.
        store_now_ms: i64,
    },
}

operation! {
    /// A put.
    BlobPutOperation: zlink_store::BlobPutResult => [BlobPutResult], BlobPutResult::from
}
operation! {
    /// A read.
    BlobReadOperation: zlink_store::BlobReadResult => [BlobReadResult], BlobReadResult::from
}
operation! {
    /// A renewal.
    BlobRenewOperation: zlink_store::BlobRenewResult => [BlobRenewResult], BlobRenewResult::from
}
operation! {
    /// A deletion.
    BlobDeleteOperation: () => [()], |()| ()
}

/// Immutable blobs of up to 64 MiB + 23 bytes under references that the caller issues.
#[derive(uniffi::Object)]
pub struct RelocationStore(zlink_store::RelocationStore);

#[uniffi::export]
impl RelocationStore {
    /// As the Location Store's `open`.
    #[uniffi::constructor]
    pub fn open(url: &str, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self(zlink_store::RelocationStore::open(url, options.into_core()?)?)))
    }

    /// Puts a blob for `retention_ms` milliseconds (1..=2^53−1) from the commit on. The bytes are copied before this returns.
    pub fn put(&self, reference: &str, bytes: Bytes, retention_ms: i64) -> Result<Arc<BlobPutOperation>, StoreError> {
        let put = self.0.put(BlobReference::new(reference)?, bytes, retention(retention_ms)?);
        Ok(Arc::new(BlobPutOperation(Running::new(put, Unwanted::Drop)?)))
    }

    /// Reads a blob: exactly the bytes that were put, or missing.
    pub fn read(&self, reference: &str) -> Result<Arc<BlobReadOperation>, StoreError> {
        let read = self.0.read(BlobReference::new(reference)?);
        Ok(Arc::new(BlobReadOperation(Running::new(read, Unwanted::Drop)?)))
    }

    /// Sets the expiry to the engine's now + `retention_ms`, also when that is earlier.
    pub fn renew(&self, reference: &str, retention_ms: i64) -> Result<Arc<BlobRenewOperation>, StoreError> {
        let renew = self.0.renew(BlobReference::new(reference)?, retention(retention_ms)?);
        Ok(Arc::new(BlobRenewOperation(Running::new(renew, Unwanted::Drop)?)))
    }

    /// Deletes a blob; a missing one is fine.
    pub fn delete(&self, reference: &str) -> Result<Arc<BlobDeleteOperation>, StoreError> {
        let delete = self.0.delete(BlobReference::new(reference)?);
        Ok(Arc::new(BlobDeleteOperation(Running::new(delete, Unwanted::Drop)?)))
    }
}

store! { RelocationStore }

impl From<zlink_store::BlobPutResult> for BlobPutResult {
    fn from(result: zlink_store::BlobPutResult) -> Self {
        match result {
            zlink_store::BlobPutResult::Stored { expires_at, store_now } => {
                Self::Stored { expires_at_ms: ms(expires_at), store_now_ms: ms(store_now) }
            }
            zlink_store::BlobPutResult::AlreadyStored { expires_at, store_now } => {
                Self::AlreadyStored { expires_at_ms: ms(expires_at), store_now_ms: ms(store_now) }
            }
            zlink_store::BlobPutResult::Conflict { store_now } => Self::Conflict { store_now_ms: ms(store_now) },
        }
    }
}

impl From<zlink_store::BlobReadResult> for BlobReadResult {
    fn from(result: zlink_store::BlobReadResult) -> Self {
        match result {
            zlink_store::BlobReadResult::Missing { store_now } => Self::Missing { store_now_ms: ms(store_now) },
            zlink_store::BlobReadResult::Found { bytes, expires_at, store_now } => {
                Self::Found { bytes, expires_at_ms: ms(expires_at), store_now_ms: ms(store_now) }
            }
        }
    }
}

impl From<zlink_store::BlobRenewResult> for BlobRenewResult {
    fn from(result: zlink_store::BlobRenewResult) -> Self {
        match result {
            zlink_store::BlobRenewResult::Missing { store_now } => Self::Missing { store_now_ms: ms(store_now) },
            zlink_store::BlobRenewResult::Renewed { expires_at, store_now } => {
                Self::Renewed { expires_at_ms: ms(expires_at), store_now_ms: ms(store_now) }
            }
        }
    }
}
