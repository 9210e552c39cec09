//! What the shared conformance scenarios cannot see: the clock, the bounds, what is left behind.

mod blobs;
mod file;
mod instant;
mod memory;
mod project;
mod snapshots;
mod sync;
mod upkeep;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::core::{Core, Store};
use super::file::FileStorage;
use super::memory::Memory;
use super::record::Scope;
use super::storage::{Storage, Table, View};
use crate::ambient::{self, Ambient};
use crate::call::{Operation, OperationTimeout};
use crate::contract::*;
use crate::engine::{LocationEngine, RelocationEngine};
use crate::{LocationStore, RelocationStore};

/// A clock that a test sets, and the system's random bytes.
#[derive(Debug)]
pub(super) struct Set {
    ms: AtomicU64,
    /// It goes on by so much at each reading.
    step: u64,
}

impl Set {
    pub(super) fn at(ms: u64) -> Arc<Self> {
        Arc::new(Self { ms: AtomicU64::new(ms), step: 0 })
    }

    /// One that nobody reads twice with the same result.
    pub(super) fn ticking() -> Arc<Self> {
        Arc::new(Self { ms: AtomicU64::new(1_000), step: 1 })
    }

    pub(super) fn set(&self, ms: u64) {
        self.ms.store(ms, Ordering::SeqCst);
    }
}

impl Ambient for Set {
    fn now(&self) -> StoreTime {
        StoreTime::from_unix_ms(self.ms.fetch_add(self.step, Ordering::SeqCst))
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        ambient::system().fill_random(buffer);
    }
}

pub(super) fn in_memory(clock: &Arc<Set>) -> Arc<Core<Memory>> {
    let clock: Arc<Set> = Arc::clone(clock);
    Core::new(Memory::new(clock))
}

pub(super) fn in_folder(folder: &Path, clock: &Arc<Set>) -> Result<Arc<Core<FileStorage>>, Error> {
    let clock: Arc<Set> = Arc::clone(clock);
    super::file::open(folder, clock)
}

pub(super) fn location<S: Storage>(core: &Arc<Core<S>>, prefix: &str) -> LocationStore {
    timed_location(core, prefix, limits::DEFAULT_OPERATION_TIMEOUT_MS)
}

fn timed_location<S: Storage>(core: &Arc<Core<S>>, prefix: &str, timeout_ms: u64) -> LocationStore {
    let engine: Arc<dyn LocationEngine> = Arc::new(Store::new(Arc::clone(core), Scope::new(prefix)));
    LocationStore::on(engine, OperationTimeout::new(timeout_ms).unwrap())
}

pub(super) fn relocation<S: Storage>(core: &Arc<Core<S>>, prefix: &str) -> RelocationStore {
    let engine: Arc<dyn RelocationEngine> = Arc::new(Store::new(Arc::clone(core), Scope::new(prefix)));
    RelocationStore::on(engine, OperationTimeout::new(limits::DEFAULT_OPERATION_TIMEOUT_MS).unwrap())
}

/// How long a test waits for what happens in the background.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn eventually(mut holds: impl FnMut() -> bool) {
    let held = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect("what was waited for did not happen");
}

/// The answer of an operation that must be there at the first poll.
#[track_caller]
pub(super) fn now<T: 'static>(mut operation: Operation<T>) -> Result<T, Error> {
    match operation.poll_now() {
        std::task::Poll::Ready(result) => result,
        std::task::Poll::Pending => panic!("not answered at the first poll"),
    }
}

pub(super) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(super) fn reference(name: &str) -> BlobReference {
    BlobReference::new(name).unwrap()
}

pub(super) fn ms(retention: u64) -> Retention {
    Retention::from_ms(retention).unwrap()
}

pub(super) fn put(name: &str, value: &str) -> WriteRequest {
    WriteRequest::new().mutation(Mutation::put(key(name), value.to_owned()))
}

pub(super) fn put_for(name: &str, value: &str, retention: u64) -> WriteRequest {
    WriteRequest::new().mutation(Mutation::put_for(key(name), value.to_owned(), ms(retention)))
}

pub(super) fn page(result: ScanResult) -> ScanPage {
    match result {
        ScanResult::Page(page) => page,
        ScanResult::Expired => panic!("the scan is expired"),
    }
}

pub(super) fn names(page: &ScanPage) -> Vec<&str> {
    page.items.iter().map(|item| item.key.as_str()).collect()
}
