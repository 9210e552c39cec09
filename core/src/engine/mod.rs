//! What an engine must do, and how one is found by URL. An engine trusts its input: limits, cancellation, the operation
//! timeout, counting and closing are the stores' work.

mod cursor;
mod embedded;
mod redis;
mod url;
mod version;

pub use self::redis::config::{Address, Pem, RedisConfig, Secret, Server, Tls};
pub use self::redis::host;
pub use self::url::{Endpoint, StoreOptions};

use futures_util::future::BoxFuture;

use crate::call::{Call, EngineCounters};
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, Key, Payload, ReadResult, Retention, ScanRequest,
    ScanResult, StoreTime, WriteRequest, WriteResult,
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
