//! What an engine must do, and how one is found by URL. An engine trusts its input: limits, cancellation, the operation
//! timeout, counting and closing are the stores' work.

mod cursor;
mod embedded;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod redis;
mod url;
mod version;

pub use self::redis::config::{Address, Pem, RedisConfig, Secret, Server, Tls};
pub use self::redis::host;
pub use self::url::{Endpoint, StoreOptions};

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::call::{Call, EngineCounters};
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, Grant, JsonText, Key, LeaseId, LockName, Name,
    Namespace, Payload, ReadResult, ReleaseResult, RenewResult, Retention, ScanRequest, ScanResult, StateDeleteResult,
    StateEntry, StateSetResult, StateWriteOptions, StoreTime, WriteRequest, WriteResult,
};

/// What an engine gives back: a future that may be polled from any executor, and may be dropped at any time. Whatever needs a
/// runtime inside goes through [`crate::background`].
pub(crate) type Pending<T> = BoxFuture<'static, Result<T, Error>>;

/// The life of an engine's handle, whatever it keeps.
pub(crate) trait Engine: Send + Sync + 'static {
    /// Whether operations (on payloads at hand) are done at their first poll, without blocking.
    fn answers_inline(&self) -> bool {
        false
    }

    /// The engine's clock.
    fn ping(&self, call: Call) -> Pending<StoreTime>;

    /// Gives up what this handle holds. Called once every operation of the store is over or past its deadline; may come twice.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// Counters of the connection, where there is one.
    fn counters(&self) -> Option<&EngineCounters> {
        None
    }
}

/// A Location Store's engine. Input is within the contract's limits.
pub(crate) trait LocationEngine: Engine {
    fn read(&self, key: Key, call: Call) -> Pending<ReadResult>;
    fn write(&self, request: WriteRequest, call: Call) -> Pending<WriteResult>;
    fn scan(&self, request: ScanRequest, call: Call) -> Pending<ScanResult>;
}

/// A Relocation Store's engine. Input is within the contract's limits.
pub(crate) trait RelocationEngine: Engine {
    fn put(&self, reference: BlobReference, payload: Payload, retention: Retention, call: Call) -> Pending<BlobPutResult>;
    fn read(&self, reference: BlobReference, call: Call) -> Pending<BlobReadResult>;
    fn renew(&self, reference: BlobReference, retention: Retention, call: Call) -> Pending<BlobRenewResult>;
    fn delete(&self, reference: BlobReference, call: Call) -> Pending<()>;
}

/// The engine of one project's state and locks. Input is within the contract's limits.
pub(crate) trait ProjectEngine: Engine {
    fn state_get(&self, namespace: Namespace, key: Name, call: Call) -> Pending<Option<StateEntry>>;
    fn state_set(&self, set: StateSet, call: Call) -> Pending<StateSetResult>;
    fn state_delete(&self, namespace: Namespace, key: Name, expected: Option<u64>, call: Call) -> Pending<StateDeleteResult>;

    /// Ends with the lease, or with `None` once it could not be had within `acquire.wait`. Dropped before its end, or failed
    /// with an unknown outcome, it leaves no lease and no place in a queue behind: the engine takes back what it may have got.
    fn lock_acquire(&self, acquire: Acquire, call: Call) -> Pending<Option<Grant>>;
    /// The live lease of this id.
    fn lock_attach(&self, id: LeaseId, call: Call) -> Pending<Option<Grant>>;
    fn lock_renew(&self, id: LeaseId, lease_ms: u64, call: Call) -> Pending<RenewResult>;
    fn lock_release(&self, id: LeaseId, call: Call) -> Pending<ReleaseResult>;
}

/// A write of one state entry.
#[derive(Clone, Debug)]
pub(crate) struct StateSet {
    pub(crate) namespace: Namespace,
    pub(crate) key: Name,
    pub(crate) value: JsonText,
    pub(crate) options: StateWriteOptions,
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub(crate) struct Acquire {
    pub(crate) lock: LockName,
    pub(crate) lease_ms: u64,
    /// How long to wait for the lock; zero: it is taken only if it is free and nobody waits.
    pub(crate) wait: Duration,
    /// How long each step of the way may take.
    pub(crate) timeout: Duration,
}
