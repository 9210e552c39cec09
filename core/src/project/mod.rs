//! Project state and distributed locks.

mod invocation;
mod lease;
mod locks;
mod state;

pub(crate) use invocation::Place;
pub use lease::LockLease;
pub use locks::{DistributedLocks, WithLockError};
pub use state::{ProjectState, StateNamespace};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Gate, Kind, Operation, OperationTimeout, SMALL, StoreStats};
use crate::contract::{Error, ProjectId, StoreTime, limits};
use crate::engine::{Endpoint, ProjectEngine};

/// How a project is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectOptions {
    /// The operation timeout in milliseconds, 1..=2^31−1; 5,000 by default.
    pub operation_timeout_ms: u64,
}

impl Default for ProjectOptions {
    fn default() -> Self {
        Self { operation_timeout_ms: limits::DEFAULT_OPERATION_TIMEOUT_MS }
    }
}

impl ProjectOptions {
    /// The defaults, with another operation timeout.
    #[must_use]
    pub fn with_operation_timeout_ms(mut self, ms: u64) -> Self {
        self.operation_timeout_ms = ms;
        self
    }
}

/// A project's state and locks: one connection, one life.
///
/// Clones share it, and so does what [`state`](Self::state) and [`locks`](Self::locks) give. Nothing connects before the first
/// operation.
///
/// # On Redis
///
/// All keys of a project begin with `zlink-project{`, the length of the workspace's name, `:workspace:project}`; they share one
/// slot of a Cluster. An ACL user needs the keys `~zlink-project{*`, the channels `&zlink-project:wake:*`, and the commands
/// `+time +get +mget +getrange +type +multi +exec +eval +evalsha +eval_ro +evalsha_ro +set +unlink +pexpire +pexpireat +persist +exists
/// +zadd +zrem +zcard +zcount +zscore +zrange +zrangebyscore +zrangebylex +zrevrangebylex +hget +hset +hdel +hlen +hmget`, with
/// `min_acked_replicas` `+wait`, and so that a released lock is taken at once `+publish +subscribe`. Without the channels or
/// those two, or through a client that somebody else owns, who waits for a lock looks every 300 ms.
///
/// Times are the server's. A fencing token is larger than the last one of the project and not less than the server's clock in
/// microseconds, so it grows across the loss of data too; what is not covered is a clock that ran ahead and was set back, *and*
/// the last token or the last grants lost after that.
///
/// ```
/// use zlink_store::{LockOptions, Project, ProjectId, StateSetResult, StateWriteOptions};
///
/// # async fn example() -> Result<(), zlink_store::Error> {
/// let project = Project::open("memory:", ProjectId::new("acme", "shop")?, Default::default())?;
/// let progress = project.state().namespace("inventory-sync")?;
/// let first = StateWriteOptions { expected_version: Some(0), ..Default::default() };
/// let StateSetResult::Stored(entry) = progress.set("cursor", r#"{"page": 1}"#, first).await? else { panic!("it was there") };
/// assert_eq!((entry.version, entry.value.as_str()), (1, r#"{"page":1}"#));
///
/// let locks = project.locks();
/// if let Some(lease) = locks.acquire("INV-1", LockOptions::default()).await? {
///     println!("the fencing token is {}", lease.fencing_token());
///     lease.release().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Project {
    engine: Arc<dyn ProjectEngine>,
    gate: Arc<Gate>,
}

impl Project {
    /// Opens a project on the engine that `endpoint` names (a URL, or an [`Endpoint`]), as
    /// [`LocationStore::open`](crate::LocationStore::open) does.
    ///
    /// # Errors
    /// As [`LocationStore::open`](crate::LocationStore::open).
    pub fn open<E>(endpoint: E, id: ProjectId, options: ProjectOptions) -> Result<Self, Error>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        let endpoint = endpoint.try_into()?;
        // Before the engine, which takes a folder at once.
        let timeout = OperationTimeout::new(options.operation_timeout_ms)?;
        Ok(Self::on(endpoint.open_project(&id)?, timeout))
    }

    /// A project on an engine at hand.
    pub(crate) fn on(engine: Arc<dyn ProjectEngine>, timeout: OperationTimeout) -> Self {
        let gate = Gate::new(timeout, engine.answers_inline());
        Self { engine, gate }
    }

    /// The project's state.
    pub fn state(&self) -> ProjectState {
        ProjectState::new(self.clone())
    }

    /// The project's locks, for one invocation: it holds at most 16 leases at a time.
    pub fn locks(&self) -> DistributedLocks {
        DistributedLocks::new(self.clone(), None)
    }

    /// As [`locks`](Self::locks), for an invocation that ends `within` from now: no wait for a lock goes on past that.
    pub fn locks_within(&self, within: Duration) -> DistributedLocks {
        DistributedLocks::new(self.clone(), Some(within))
    }

    /// Asks the engine for its clock: shows that it answers.
    pub fn ping(&self) -> Operation<StoreTime> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Ping, &SMALL, 0, move |call| engine.ping(call))
    }

    /// Whether every operation but a wait for a lock is answered from memory at once, without blocking.
    pub fn answers_inline(&self) -> bool {
        self.gate.is_inline()
    }

    /// What was counted so far.
    pub fn stats(&self) -> StoreStats {
        self.gate.stats(self.engine.counters())
    }

    /// As [`LocationStore::close`](crate::LocationStore::close); who waits for a lock is told `CLOSED` at once. Leases that are
    /// held stay until they expire.
    pub async fn close(&self) {
        self.gate.close().await;
        self.engine.close().await;
    }
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Project").finish_non_exhaustive()
    }
}
