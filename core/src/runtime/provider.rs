//! What the runtime needs of a store: the public SPI of the seeds, as traits. Our stores implement them; so does a bridge to a
//! provider that is written in another language, and whatever a test brings.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::contract::{Error, Key, ReadResult, ScanRequest, ScanResult, WriteRequest, WriteResult};
use crate::{LocationStore, RelocationStore};

/// A Location Store of anybody's (seed: Location Store; spec: stores.md).
///
/// A future may be polled from any executor. Dropping one is the caller's cancellation: what was not yet sent is not to be
/// sent. A provider may fail with any [`Error`], panic, or never answer: the runtime takes each for `UNAVAILABLE`, the last
/// one after its operation timeout. The error's [`outcome`](Error::outcome) says whether a write may have been applied.
pub trait LocationProvider: Send + Sync + 'static {
    /// What messages call this store; the type's name, if nothing else is said.
    fn name(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }

    /// Reads one key: one observation of value, version, expiry and clock.
    fn read(&self, key: Key) -> BoxFuture<'static, Result<ReadResult, Error>>;

    /// Checks all conditions and, if all hold, applies all mutations as one atomic commit.
    fn write(&self, request: WriteRequest) -> BoxFuture<'static, Result<WriteResult, Error>>;

    /// Reads one page of a snapshot scan.
    fn scan(&self, request: ScanRequest) -> BoxFuture<'static, Result<ScanResult, Error>>;

    /// Gives up what the store holds. The runtime calls it exactly once, after everything else.
    fn close(&self) -> BoxFuture<'static, Result<(), Error>>;
}

/// A Relocation Store of anybody's, as far as the runtime needs it: it owns the store's life and moves no blobs itself.
pub trait RelocationProvider: Send + Sync + 'static {
    /// What messages call this store; the type's name, if nothing else is said.
    fn name(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }

    /// Gives up what the store holds. The runtime calls it exactly once, after the Location Store's.
    fn close(&self) -> BoxFuture<'static, Result<(), Error>>;
}

impl LocationProvider for LocationStore {
    fn read(&self, key: Key) -> BoxFuture<'static, Result<ReadResult, Error>> {
        Self::read(self, key).boxed()
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'static, Result<WriteResult, Error>> {
        Self::write(self, request).boxed()
    }

    fn scan(&self, request: ScanRequest) -> BoxFuture<'static, Result<ScanResult, Error>> {
        Self::scan(self, request).boxed()
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        let store = self.clone();
        async move {
            Self::close(&store).await;
            Ok(())
        }
        .boxed()
    }
}

impl RelocationProvider for RelocationStore {
    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        let store = self.clone();
        async move {
            Self::close(&store).await;
            Ok(())
        }
        .boxed()
    }
}
