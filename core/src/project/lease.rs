//! A lease on a lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use tokio::sync::Mutex;

use super::Project;
use super::invocation::Place;
use crate::call::{Call, Kind, Operation, SMALL, UnderWay};
use crate::contract::{Grant, ReleaseResult, RenewResult, StoreTime, check_lease_ms};
use crate::{ambient, background};

/// A lease: the lock is ours until it is released or expires. Clones are the same lease.
///
/// Dropping it releases nothing: the lock is free when the lease expires. Only one lease of a lock is valid at a time, but a
/// holder may be late: have what the lock guards refuse a [`fencing_token`](Self::fencing_token) smaller than one it has seen.
#[derive(Clone)]
pub struct LockLease(Arc<Inner>);

struct Inner {
    project: Project,
    grant: Grant,
    expires_at: AtomicU64,
    /// What it takes of its invocation; an attached lease takes nothing.
    place: Option<Arc<Place>>,
    /// Whether it was released through this object. Held while a release is under way.
    released: Mutex<bool>,
}

impl LockLease {
    pub(super) fn new(project: Project, grant: Grant, place: Option<Arc<Place>>) -> Self {
        let expires_at = AtomicU64::new(grant.expires_at.unix_ms());
        Self(Arc::new(Inner { project, grant, expires_at, place, released: Mutex::new(false) }))
    }

    pub(crate) fn project(&self) -> &Project {
        &self.0.project
    }

    /// Whoever knows it may renew and release the lease, from any process of the same project: keep it to yourself.
    pub fn id(&self) -> String {
        self.0.grant.id.to_string()
    }

    /// The lock's key.
    pub fn key(&self) -> &str {
        self.0.grant.lock.key.as_str()
    }

    /// The lock's namespace.
    pub fn namespace(&self) -> &str {
        self.0.grant.lock.namespace.as_str()
    }

    /// Larger than that of every earlier lease of this lock; at most 2^53 − 1.
    pub fn fencing_token(&self) -> u64 {
        self.0.grant.token
    }

    /// When the lease expires, as last renewed through this object.
    pub fn expires_at(&self) -> StoreTime {
        StoreTime::from_unix_ms(self.0.expires_at.load(Ordering::SeqCst))
    }

    /// From the engine's now on the lease lasts `lease_ms` (5,000..=60,000; if nothing is said, as long as it was acquired for).
    pub fn renew(&self, lease_ms: Option<u64>) -> Operation<RenewResult> {
        let lease_ms = lease_ms.unwrap_or(self.0.grant.lease_ms);
        if let Err(error) = check_lease_ms(lease_ms) {
            return Operation::rejected(error);
        }
        let inner = Arc::clone(&self.0);
        self.0.project.gate.pass(Kind::Renew, &SMALL, 0, move |call| {
            async move {
                let sent = ambient::monotonic();
                let result = inner.project.engine.lock_renew(inner.grant.id, lease_ms, call).await?;
                match result {
                    RenewResult::Renewed { expires_at } => {
                        inner.expires_at.store(expires_at.unix_ms(), Ordering::SeqCst);
                        if let Some(place) = &inner.place {
                            place.lasts(sent, lease_ms);
                        }
                    }
                    RenewResult::Lost => inner.leave(),
                }
                Ok(result)
            }
            .boxed()
        })
    }

    /// Frees the lock. After a release that succeeded, doing it again through this object does nothing.
    pub fn release(&self) -> Operation<ReleaseResult> {
        // Nothing to do is done after the project is closed, too.
        if self.0.released.try_lock().is_ok_and(|released| *released) {
            return Operation::ready(Ok(ReleaseResult::Released));
        }
        let inner = Arc::clone(&self.0);
        self.0.project.gate.pass(Kind::Release, &SMALL, 0, move |call| {
            async move {
                let mut released = inner.released.lock().await;
                if *released {
                    return Ok(ReleaseResult::Released);
                }
                let result = inner.project.engine.lock_release(inner.grant.id, call).await?;
                *released = result == ReleaseResult::Released;
                inner.leave();
                Ok(result)
            }
            .boxed()
        })
    }

    /// Releases a lease that nobody was given, in the background, and frees its place at once. It does so while its project is
    /// being closed too, since a closing waits for `under_way`, which is that of the acquire. If it fails, the lease expires.
    pub fn give_back(self, under_way: Option<UnderWay>) {
        self.0.leave();
        background::spawn(async move {
            let deadline = ambient::monotonic() + self.0.project.gate.timeout();
            let release = self.0.project.engine.lock_release(self.0.grant.id, Call::writing(deadline));
            let _ = background::timeout_at(deadline, release).await;
            drop(under_way);
        });
    }
}

impl Inner {
    fn leave(&self) {
        if let Some(place) = &self.place {
            place.leave();
        }
    }
}

impl fmt::Debug for LockLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockLease")
            .field("namespace", &self.namespace())
            .field("key", &self.key())
            .field("fencing_token", &self.fencing_token())
            .finish_non_exhaustive()
    }
}
