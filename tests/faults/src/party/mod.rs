//! Whose stores are under test: the core's own, or those of a binding, in a process of its language.
//!
//! The processes are the participants of `tests/interop`, so a fault is written once, and so is the checker.

mod participant;
mod project;
mod store;
mod wire;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::json;
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, Key, KeyPrefix, LocationStore, ReadResult,
    RelocationStore, Retention, ScanRequest, ScanResult, StoreOptions, WriteRequest, WriteResult,
};

use self::participant::Remote;
pub use self::project::{Entry, Grant, Locks, Project, Set, State};
pub use self::store::{Own, Store};

/// A result under way. It begins when it is first polled; dropped, it is cancelled.
pub type Answer<T> = BoxFuture<'static, Result<T, Error>>;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Rust.
    Core,
    /// Node.js.
    Node,
    /// Java.
    Java,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::Node => "node",
            Self::Java => "java",
        })
    }
}

impl Party {
    /// A Location Store on Redis.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn location(self, url: &str, prefix: &str, timeout: Duration) -> Location {
        match self.remote() {
            None => Location::Core(LocationStore::open(url, options(prefix, timeout)).expect("a legal URL")),
            Some(remote) => {
                remote.open("location", url, &json!({ "keyPrefix": prefix }), timeout).await;
                Location::Remote(remote)
            }
        }
    }

    /// A Relocation Store on Redis.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn relocation(self, url: &str, prefix: &str, timeout: Duration) -> Relocation {
        match self.remote() {
            None => Relocation::Core(RelocationStore::open(url, options(prefix, timeout)).expect("a legal URL")),
            Some(remote) => {
                remote.open("relocation", url, &json!({ "keyPrefix": prefix }), timeout).await;
                Relocation::Remote(remote)
            }
        }
    }

    fn remote(self) -> Option<Remote> {
        match self {
            Self::Core => None,
            Self::Node => Some(participant::node()),
            Self::Java => Some(participant::java()),
        }
    }
}

fn options(prefix: &str, timeout: Duration) -> StoreOptions {
    StoreOptions { key_prefix: KeyPrefix::new(prefix).expect("a legal prefix"), operation_timeout_ms: ms(timeout) }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a legal timeout")
}

/// A Location Store of some language.
pub type Location = Store<LocationStore>;

impl Location {
    /// As the core's.
    pub fn read(&self, key: Key) -> Answer<ReadResult> {
        match self {
            Self::Core(store) => Box::pin(store.read(key)),
            Self::Remote(remote) => remote.ask("read", json!({ "key": key.as_str() }), wire::read),
        }
    }

    /// As the core's.
    pub fn write(&self, request: WriteRequest) -> Answer<WriteResult> {
        match self {
            Self::Core(store) => Box::pin(store.write(request)),
            Self::Remote(remote) => remote.ask("write", wire::write(&request), wire::written),
        }
    }

    /// As the core's.
    pub fn scan(&self, request: ScanRequest) -> Answer<ScanResult> {
        match self {
            Self::Core(store) => Box::pin(store.scan(request)),
            Self::Remote(remote) => remote.ask("scan", wire::scan(&request), wire::scanned),
        }
    }

    /// Shows that the store answers; a binding's has no ping, so it reads something.
    pub fn ping(&self) -> Answer<()> {
        let answer = match self {
            Self::Core(store) => {
                let ping = store.ping();
                return Box::pin(async move { ping.await.map(drop) });
            }
            Self::Remote(_) => self.read(Key::new("ping").expect("a legal key")),
        };
        Box::pin(async move { answer.await.map(drop) })
    }
}

/// A Relocation Store of some language.
pub type Relocation = Store<RelocationStore>;

impl Relocation {
    /// As the core's.
    pub fn put(&self, reference: BlobReference, bytes: impl Into<Bytes>, retention: Retention) -> Answer<BlobPutResult> {
        let bytes = bytes.into();
        match self {
            Self::Core(store) => Box::pin(store.put(reference, bytes, retention)),
            Self::Remote(remote) => {
                let fields = json!({
                    "reference": reference.as_str(), "bytes": wire::pack(&bytes), "retentionMs": retention.as_ms(),
                });
                remote.ask("put", fields, wire::stored)
            }
        }
    }

    /// As the core's.
    pub fn read(&self, reference: BlobReference) -> Answer<BlobReadResult> {
        match self {
            Self::Core(store) => Box::pin(store.read(reference)),
            Self::Remote(remote) => remote.ask("blobRead", json!({ "reference": reference.as_str() }), wire::blob),
        }
    }

    /// As the core's.
    pub fn renew(&self, reference: BlobReference, retention: Retention) -> Answer<BlobRenewResult> {
        match self {
            Self::Core(store) => Box::pin(store.renew(reference, retention)),
            Self::Remote(remote) => {
                let fields = json!({ "reference": reference.as_str(), "retentionMs": retention.as_ms() });
                remote.ask("renew", fields, wire::renewed)
            }
        }
    }

    /// As the core's.
    pub fn delete(&self, reference: BlobReference) -> Answer<()> {
        match self {
            Self::Core(store) => Box::pin(store.delete(reference)),
            Self::Remote(remote) => remote.ask("blobDelete", json!({ "reference": reference.as_str() }), |_| Ok(())),
        }
    }
}
