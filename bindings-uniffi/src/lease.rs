//! A lease on a lock.

use std::sync::Arc;

use crate::error::StoreError;
use crate::locks::length;
use crate::operation::{Running, Unwanted, operation};
use crate::time::ms;

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum LeaseRenewResult {
    /// The lease lasts until then.
    Renewed {
        /// The engine's now + the length, in Unix milliseconds.
        expires_at_ms: i64,
    },
    /// The lease is lost or expired.
    Lost,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum LeaseReleaseResult {
    /// The lock is free, or was released before through the same object.
    Released,
    /// The lease was lost or had expired already.
    Lost,
}

operation! {
    /// A renewal.
    LeaseRenewOperation: zlink_store::RenewResult => [LeaseRenewResult], LeaseRenewResult::from
}
operation! {
    /// A release.
    LeaseReleaseOperation: zlink_store::ReleaseResult => [LeaseReleaseResult], LeaseReleaseResult::from
}

/// A lease: the lock is ours until it is released or expires. Freeing this object releases nothing.
///
/// Only one lease of a lock is valid at a time, but a holder may be late: have what the lock guards refuse a fencing token
/// smaller than one it has seen.
#[derive(uniffi::Object)]
pub struct LockLease {
    lease: zlink_store::LockLease,
}

impl LockLease {
    pub(crate) fn handed(lease: zlink_store::LockLease) -> Arc<Self> {
        Arc::new(Self { lease })
    }
}

#[uniffi::export]
impl LockLease {
    /// Whoever knows it may renew and release the lease, from any process of the same project: keep it to yourself.
    pub fn id(&self) -> String {
        self.lease.id()
    }

    /// The lock's key.
    pub fn key(&self) -> String {
        self.lease.key().to_owned()
    }

    /// The lock's namespace.
    pub fn namespace(&self) -> String {
        self.lease.namespace().to_owned()
    }

    /// Larger than that of every earlier lease of this lock; at most 2^53 − 1.
    pub fn fencing_token(&self) -> i64 {
        i64::try_from(self.lease.fencing_token()).unwrap_or(i64::MAX)
    }

    /// When the lease expires, as last renewed through this object, in Unix milliseconds.
    pub fn expires_at_ms(&self) -> i64 {
        ms(self.lease.expires_at())
    }

    /// From the engine's now on the lease lasts `lease_ms` (5,000..=60,000; if left out, as long as it was acquired for).
    #[uniffi::method(default(lease_ms = None))]
    pub fn renew(&self, lease_ms: Option<i64>) -> Result<Arc<LeaseRenewOperation>, StoreError> {
        let renew = self.lease.renew(length(lease_ms)?);
        Ok(Arc::new(LeaseRenewOperation(Running::new(renew, Unwanted::Drop)?)))
    }

    /// Frees the lock. After a release that succeeded, doing it again through this object does nothing. Once begun it goes on,
    /// also when it is cancelled.
    pub fn release(&self) -> Result<Arc<LeaseReleaseOperation>, StoreError> {
        Ok(Arc::new(LeaseReleaseOperation(Running::new(self.lease.release(), Unwanted::Finish)?)))
    }
}

impl From<zlink_store::RenewResult> for LeaseRenewResult {
    fn from(result: zlink_store::RenewResult) -> Self {
        match result {
            zlink_store::RenewResult::Renewed { expires_at } => Self::Renewed { expires_at_ms: ms(expires_at) },
            zlink_store::RenewResult::Lost => Self::Lost,
        }
    }
}

impl From<zlink_store::ReleaseResult> for LeaseReleaseResult {
    fn from(result: zlink_store::ReleaseResult) -> Self {
        match result {
            zlink_store::ReleaseResult::Released => Self::Released,
            zlink_store::ReleaseResult::Lost => Self::Lost,
        }
    }
}
