//! Project state and locks on the embedded engine: what the scenarios cannot see.

mod leases;
mod limit;
mod queue;

use std::task::Poll;

use super::*;
use crate::engine::ProjectEngine;
use crate::engine::embedded::project::Scope;
use crate::{DistributedLocks, LockLease, Project};

/// A project; on a folder, the only one of its engine.
fn project<S: Storage>(core: &Arc<Core<S>>, name: &str) -> Project {
    timed(core, name, limits::DEFAULT_OPERATION_TIMEOUT_MS)
}

fn timed<S: Storage>(core: &Arc<Core<S>>, name: &str, timeout_ms: u64) -> Project {
    let id = ProjectId::new("w", name).unwrap();
    let engine: Arc<dyn ProjectEngine> = Arc::new(Store::new(Arc::clone(core), Scope::new(&id)));
    Project::on(engine, OperationTimeout::new(timeout_ms).unwrap())
}

fn waiting(wait_ms: u64) -> LockOptions {
    LockOptions { wait_ms, lease_ms: limits::MAX_LEASE_MS, ..LockOptions::default() }
}

type Acquiring = Operation<Option<LockLease>>;

/// An acquire that waits in the queue, as long as it can.
fn queued(locks: &DistributedLocks, key: &str) -> Acquiring {
    let mut acquiring = locks.acquire(key, waiting(limits::MAX_LOCK_WAIT_MS));
    assert!(is_pending(&mut acquiring), "the lock was free");
    acquiring
}

fn is_pending(acquiring: &mut Acquiring) -> bool {
    matches!(acquiring.poll_now(), Poll::Pending)
}

async fn had(acquiring: Acquiring) -> LockLease {
    let lease = tokio::time::timeout(PATIENCE, acquiring).await.expect("nobody woke it").unwrap();
    lease.expect("the lock could not be had")
}

async fn take(locks: &DistributedLocks, key: &str) -> LockLease {
    had(locks.acquire(key, waiting(0))).await
}

async fn free(lease: &LockLease) {
    assert_eq!(lease.release().await.unwrap(), ReleaseResult::Released);
}

/// Until the lock can be had by somebody who does not wait.
async fn until_free(project: &Project, key: &str) {
    let until_had = async {
        loop {
            if let Some(lease) = project.locks().acquire(key, waiting(0)).await.unwrap() {
                return free(&lease).await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE / 2, until_had).await.expect("somebody has it still");
}

/// A number below `end`.
fn random(end: usize) -> usize {
    usize::from_le_bytes(ambient::random(&*ambient::system())) % end
}
