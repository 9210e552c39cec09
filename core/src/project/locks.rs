//! Distributed locks.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::Project;
use super::invocation::{Invocation, Place};
use super::lease::LockLease;
use crate::ambient;
use crate::call::{Kind, Operation, SMALL};
use crate::contract::{Error, LeaseId, LockName, LockOptions, Name, ReleaseResult};
use crate::engine::Acquire;

/// The locks of one project, for one invocation: at most 16 leases at a time, pending acquires counted.
///
/// A lock makes no transaction, and exactly-once of nothing: it says who is to work now.
#[derive(Clone)]
pub struct DistributedLocks {
    project: Project,
    invocation: Arc<Invocation>,
    /// When the invocation ends.
    end: Option<Instant>,
}

impl DistributedLocks {
    pub(super) fn new(project: Project, within: Option<Duration>) -> Self {
        // An end that no clock reaches is none.
        let end = within.and_then(|within| ambient::monotonic().checked_add(within));
        Self { project, invocation: Arc::default(), end }
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// Takes the lock, or ends with `None` if it could not be had within `options.wait_ms` (cut to what is left of the
    /// invocation). All is over within that and the operation timeout. Dropped or failed, it leaves no lease behind.
    ///
    /// Whoever waits is served in order. An `INVALID_ARGUMENT` for a wrong key or option, and for a 17th lease (argument
    /// `leases`), is found at the call.
    pub fn acquire(&self, key: impl Into<Arc<str>>, options: LockOptions) -> Operation<Option<LockLease>> {
        match Name::new(key) {
            Ok(key) => self.acquire_name(key, options).map_or_else(Operation::rejected, |(operation, _)| operation),
            Err(error) => Operation::rejected(error),
        }
    }

    /// The operation, and its place, which whoever gives it up may free at once.
    pub(crate) fn acquire_name(
        &self,
        key: Name,
        options: LockOptions,
    ) -> Result<(Operation<Option<LockLease>>, Arc<Place>), Error> {
        options.validate()?;
        let pending = self.invocation.enter()?;
        let place = pending.place();
        let LockOptions { namespace, wait_ms, lease_ms } = options;
        let mut wait = Duration::from_millis(wait_ms);
        if let Some(end) = self.end {
            wait = wait.min(end.saturating_duration_since(ambient::monotonic()));
        }
        let project = self.project.clone();
        let acquire = Acquire { lock: LockName { namespace, key }, lease_ms, wait, timeout: project.gate.timeout() };
        let operation = self.project.gate.pass_after(wait, Kind::Acquire, &SMALL, 0, move |call| {
            async move {
                let grant = project.engine.lock_acquire(acquire, call).await?;
                Ok(grant.map(|grant| {
                    let place = pending.taken(grant.sent, grant.lease_ms);
                    LockLease::new(project, grant, Some(place))
                }))
            }
            .boxed()
        });
        Ok((operation, place))
    }

    /// The live lease of this id, whoever acquired it in this project; `None`: there is none. It takes no place of this
    /// invocation.
    pub fn attach(&self, id: &str) -> Operation<Option<LockLease>> {
        let (project, id) = (self.project.clone(), LeaseId::parse(id));
        self.project.gate.pass(Kind::Attach, &SMALL, 0, move |call| {
            async move {
                let Some(id) = id else { return Ok(None) };
                let grant = project.engine.lock_attach(id, call).await?;
                Ok(grant.map(|grant| LockLease::new(project, grant, None)))
            }
            .boxed()
        })
    }

    /// Takes the lock, runs `work`, and releases. An error of `work` goes before one of the release. Nothing is renewed by itself.
    ///
    /// Dropped while `work` runs, it releases nothing: the lease then ends by expiry.
    ///
    /// # Errors
    /// See [`WithLockError`].
    pub async fn with_lock<T, E, F, W>(
        &self,
        key: impl Into<Arc<str>>,
        options: LockOptions,
        work: F,
    ) -> Result<T, WithLockError<E>>
    where
        F: FnOnce(LockLease) -> W,
        W: Future<Output = Result<T, E>>,
    {
        let lease = self.acquire(key, options).await.map_err(WithLockError::Store)?.ok_or(WithLockError::Unavailable)?;
        let done = work(lease.clone()).await;
        let released = lease.release().await;
        let done = done.map_err(WithLockError::Work)?;
        match released.map_err(WithLockError::Store)? {
            ReleaseResult::Released => Ok(done),
            ReleaseResult::Lost => Err(WithLockError::Lost),
        }
    }
}

/// Why [`DistributedLocks::with_lock`] has no result.
#[derive(Clone, Debug)]
pub enum WithLockError<E> {
    /// The lock could not be had in time; the work was not begun.
    Unavailable,
    /// The work was done, but its lease was lost or had expired before it ended.
    Lost,
    /// The work failed.
    Work(E),
    /// The store failed: before the work (the lock could not be asked for), or in the release after it.
    Store(Error),
}

impl<E: fmt::Display> fmt::Display for WithLockError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable => f.write_str("the lock could not be had in time"),
            Self::Lost => f.write_str("the lease was lost before the work was done"),
            Self::Work(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for WithLockError<E> {}

impl fmt::Debug for DistributedLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedLocks").finish_non_exhaustive()
    }
}
