//! The registered stores, as the runtime calls them: bounded by time, every failure `UNAVAILABLE`, closed exactly once.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::provider::{LocationProvider, RelocationProvider};
use super::retry::Retry;
use crate::ambient::{self, Ambient};
use crate::background;
use crate::contract::{
    Code, Condition, Error, Key, Mutation, Outcome, ReadResult, ScanRequest, ScanResult, StoreTime, Version, WriteRequest,
    WriteResult,
};

pub(super) struct Stores {
    location: Arc<dyn LocationProvider>,
    relocation: Option<Arc<dyn RelocationProvider>>,
    timeout: Duration,
    closed: AtomicBool,
    health: Mutex<Health>,
}

/// How the Location Store's last calls went.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    pub(super) healthy: bool,
    pub(super) refreshed_at: Option<StoreTime>,
    pub(super) last_error: Option<Error>,
}

/// An answer's instant of the store's clock, where it has one.
trait Told {
    fn store_now(&self) -> Option<StoreTime>;
}

impl Told for ReadResult {
    fn store_now(&self) -> Option<StoreTime> {
        Some(match self {
            Self::Missing { store_now } => *store_now,
            Self::Found(value) => value.store_now,
        })
    }
}

impl Told for WriteResult {
    fn store_now(&self) -> Option<StoreTime> {
        let (Self::Applied { store_now, .. } | Self::Conflict { store_now }) = self;
        Some(*store_now)
    }
}

impl Told for ScanResult {
    fn store_now(&self) -> Option<StoreTime> {
        match self {
            Self::Page(page) => Some(page.store_now),
            Self::Expired => None,
        }
    }
}

impl Stores {
    pub(super) fn new(
        location: Arc<dyn LocationProvider>,
        relocation: Option<Arc<dyn RelocationProvider>>,
        timeout: Duration,
    ) -> Self {
        Self { location, relocation, timeout, closed: AtomicBool::new(false), health: Mutex::default() }
    }

    pub(super) async fn read(&self, key: Key, deadline: Instant) -> Result<ReadResult, Error> {
        self.call("read", Outcome::NotApplied, deadline, || self.location.read(key)).await
    }

    pub(super) async fn write(&self, request: WriteRequest, deadline: Instant) -> Result<WriteResult, Error> {
        self.call("write", Outcome::Unknown, deadline, || self.location.write(request)).await
    }

    pub(super) async fn scan(&self, request: ScanRequest, deadline: Instant) -> Result<ScanResult, Error> {
        self.call("scan", Outcome::NotApplied, deadline, || self.location.scan(request)).await
    }

    /// Deletes a record while it is ours, under the version it was read with; one that is not, or is gone, is left as it is.
    pub(super) async fn delete_ours(
        &self,
        key: &Key,
        is_ours: impl Fn(&[u8]) -> Result<bool, Error>,
        random: &dyn Ambient,
        deadline: Instant,
    ) -> Result<(), Error> {
        let mut retry = Retry::until(deadline);
        loop {
            let ReadResult::Found(value) = self.read(key.clone(), deadline).await? else { return Ok(()) };
            if !is_ours(&value.bytes)? {
                return Ok(());
            }
            let request = WriteRequest::new()
                .condition(Condition::Version { key: key.clone(), expected: value.version })
                .mutation(Mutation::delete(key.clone()));
            match self.write(request, deadline).await {
                Ok(WriteResult::Applied { .. }) => return Ok(()),
                Ok(WriteResult::Conflict { .. }) => {}
                Err(error) => retry.failed(error)?,
            }
            retry.pause(random).await?;
        }
    }

    /// `doubt`: what to say of a call that ended without an answer of the store's.
    async fn call<T: Told>(
        &self,
        verb: &str,
        doubt: Outcome,
        deadline: Instant,
        start: impl FnOnce() -> BoxFuture<'static, Result<T, Error>>,
    ) -> Result<T, Error> {
        let now = ambient::monotonic();
        if deadline <= now {
            return Err(unavailable(Outcome::NotApplied, "the time for this operation was over before the store was asked"));
        }
        let answer = bounded(deadline.min(now + self.timeout), async { start().await }).await;
        let result = match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failed(&self.location.name(), verb, error)),
            Err(how) => Err(unavailable(doubt, format!("the Location Store {} {how} ({verb})", self.location.name()))),
        };
        let mut health = self.health.lock();
        match &result {
            Ok(answer) => {
                health.healthy = true;
                health.refreshed_at = answer.store_now().max(health.refreshed_at);
            }
            Err(error) => {
                health.healthy = false;
                health.last_error = Some(error.clone());
            }
        }
        result
    }

    pub(super) fn health(&self) -> Health {
        self.health.lock().clone()
    }

    /// Closes the Location Store, then the Relocation Store; an object that is both, once. Whatever one does, the other is
    /// closed. A second call does nothing.
    pub(super) async fn close(&self) -> Vec<Error> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return Vec::new();
        }
        let mut failures = Vec::new();
        failures.extend(self.close_one("Location Store", self.location.name(), || self.location.close()).await);
        if let Some(relocation) = &self.relocation {
            let same = std::ptr::addr_eq(Arc::as_ptr(relocation), Arc::as_ptr(&self.location));
            if !same {
                failures.extend(self.close_one("Relocation Store", relocation.name(), || relocation.close()).await);
            }
        }
        failures
    }

    async fn close_one(
        &self,
        what: &str,
        name: String,
        close: impl FnOnce() -> BoxFuture<'static, Result<(), Error>>,
    ) -> Option<Error> {
        let said = match bounded(ambient::monotonic() + self.timeout, async { close().await }).await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => format!("closing the {what} {name} failed with {}: {}", error.code().as_str(), error.message()),
            Err(how) => format!("closing the {what} {name}: it {how}"),
        };
        Some(unavailable(Outcome::Unknown, said))
    }
}

/// Ends at `deadline`, and when the store panics; the error says which.
async fn bounded<T>(deadline: Instant, call: impl Future<Output = T>) -> Result<T, &'static str> {
    match background::timeout_at(deadline, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_panic)) => Err("panicked"),
        Err(_elapsed) => Err("gave no answer in time"),
    }
}

pub(super) fn unavailable(outcome: Outcome, said: impl Into<String>) -> Error {
    Error::new(Code::Unavailable, outcome, said)
}

/// Whatever a store fails with is a failure of the provider (seed: Cancellation and errors).
fn failed(name: &str, verb: &str, error: Error) -> Error {
    if error.code() == Code::Unavailable {
        return error;
    }
    let said = format!("a {verb} of the Location Store {name} failed with {}: {}", error.code().as_str(), error.message());
    unavailable(error.outcome(), said)
}

/// The version that a commit gave `key`.
pub(super) fn version_of(applied: &[crate::contract::PutVersion], key: &Key) -> Result<Version, Error> {
    let found = applied.iter().find(|put| put.key == *key).map(|put| put.version.clone());
    found.ok_or_else(|| unavailable(Outcome::Unknown, "the Location Store applied a write and left out a put's version"))
}
