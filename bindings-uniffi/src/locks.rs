//! Distributed locks.

use std::sync::Arc;

use zlink_store::{LockOptions, Namespace, UnderWay, limits};

use crate::error::StoreError;
use crate::lease::LockLease;
use crate::operation::{GiveBack, Running, Unwanted, operation};
use crate::options::{ProjectOptions, optional};
use crate::project::Project;

operation! {
    /// An acquire; absent: the lock could not be had in time. A lease that it got and nobody took is released.
    AcquireOperation: Option<zlink_store::LockLease> => [Option<Arc<LockLease>>], |lease| lease.map(LockLease::handed)
}
operation! {
    /// A look-up of a lease; absent: there is no live lease of this id.
    AttachOperation: Option<zlink_store::LockLease> => [Option<Arc<LockLease>>], |lease| lease.map(LockLease::handed)
}

/// The locks of one project, for one invocation: at most 16 leases at a time, pending acquires counted.
///
/// A lock makes no transaction, and exactly-once of nothing: it says who is to work now.
#[derive(uniffi::Object)]
pub struct DistributedLocks {
    pub(crate) locks: zlink_store::DistributedLocks,
    pub(crate) project: zlink_store::Project,
}

#[uniffi::export]
impl DistributedLocks {
    /// Makes a project at the URL, without I/O, and gives its locks for one invocation.
    #[uniffi::constructor]
    pub fn open(url: &str, workspace: &str, project: &str, options: ProjectOptions) -> Result<Arc<Self>, StoreError> {
        Project::open(url, workspace, project, options)?.locks(None)
    }

    /// Takes the lock, or ends without a lease if it could not be had within `wait_ms` (0..=10,000; 0 if left out: only if it is
    /// free and nobody waits). The lease lasts `lease_ms` (5,000..=60,000; 30,000 if left out). The namespace is `default` if left
    /// out. Whoever waits is served in order.
    #[uniffi::method(default(namespace = None, wait_ms = None, lease_ms = None))]
    pub fn acquire(
        &self,
        key: &str,
        namespace: Option<String>,
        wait_ms: Option<i64>,
        lease_ms: Option<i64>,
    ) -> Result<Arc<AcquireOperation>, StoreError> {
        let mut options = LockOptions::default();
        if let Some(namespace) = namespace {
            options.namespace = Namespace::new(namespace)?;
        }
        let within = format_args!("a whole number of ms in 0..={}", limits::MAX_LOCK_WAIT_MS);
        options.wait_ms = optional("waitMs", wait_ms, within)?.unwrap_or(options.wait_ms);
        options.lease_ms = length(lease_ms)?.unwrap_or(options.lease_ms);
        let acquire = self.locks.acquire(key, options);
        Ok(Arc::new(AcquireOperation(Running::new(acquire, GIVE_BACK)?)))
    }

    /// The live lease of this id, whoever acquired it in this project. It takes no place of this invocation.
    pub fn attach(&self, id: &str) -> Result<Arc<AttachOperation>, StoreError> {
        Ok(Arc::new(AttachOperation(Running::new(self.locks.attach(id), Unwanted::Drop)?)))
    }

    /// The project that these are the locks of: `ping`, `stats`, `shutdown`.
    pub fn project(&self) -> Arc<Project> {
        Arc::new(self.project.clone().into())
    }
}

pub(crate) fn length(lease_ms: Option<i64>) -> Result<Option<u64>, zlink_store::Error> {
    let within = format_args!("a whole number of ms in {}..={}", limits::MIN_LEASE_MS, limits::MAX_LEASE_MS);
    optional("leaseMs", lease_ms, within)
}

/// Releases a lease that nobody knows of. If that fails, it ends by expiry.
fn give_back(lease: Option<zlink_store::LockLease>, under_way: Option<UnderWay>) {
    if let Some(lease) = lease {
        lease.give_back(under_way);
    }
}

pub(crate) const GIVE_BACK: Unwanted<Option<zlink_store::LockLease>> =
    Unwanted::GiveBack(GiveBack { holds: Option::is_some, give_back });
