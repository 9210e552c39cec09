//! The Location Store on Redis (spec: redis.md).
//!
//! A record is one string; an index holds the names. A write is one script call, reads and pages of scans are plain
//! transactions. A snapshot is an entry in a list; whoever replaces a record that a snapshot may still show saves it first.

mod answer;
mod asks;
mod commit;
mod group;
mod lane;
mod layout;
mod page;
mod queue;
mod reads;
mod reap;
mod record;
mod scan;
mod snapshots;
#[cfg(test)]
mod tests;
mod tidy;
mod writes;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::record::fuzz;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::asks::{Ask, ask};
use self::layout::Layout;
use self::reads::Reads;
use self::reap::Reaper;
use self::writes::Writes;
use super::client::Client;
use crate::ambient::Ambient;
use crate::call::{Call, EngineCounters};
use crate::contract::{Error, Key, KeyPrefix, ReadResult, ScanRequest, ScanResult, StoreTime, WriteRequest, WriteResult};
use crate::engine::{Engine, LocationEngine, Pending};

/// A Location Store's engine on Redis.
pub(crate) struct RedisLocation(Arc<Inner>);

struct Inner {
    client: Client,
    closed: AtomicBool,
    layout: Layout,
    /// What a cursor calls this store.
    name: Vec<u8>,
    ambient: Arc<dyn Ambient>,
    reads: Reads,
    writes: Writes,
    /// What the largest of the records takes that scans have seen of late.
    largest: AtomicU64,
    reaper: Reaper,
}

impl RedisLocation {
    pub(crate) fn new(client: Client, prefix: &KeyPrefix, ambient: Arc<dyn Ambient>) -> Self {
        let layout = Layout::new(prefix);
        Self(Arc::new(Inner {
            client: client.at(&layout.format),
            closed: AtomicBool::new(false),
            layout,
            name: layout::store_name(prefix),
            ambient,
            reads: Reads::new(),
            writes: Writes::new(),
            largest: AtomicU64::new(0),
            reaper: Reaper::new(),
        }))
    }
}

impl Inner {
    fn stop(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.reaper.stop();
        self.client.close();
    }

    /// What carries commands, as long as the store is open.
    fn client(self: &Arc<Self>) -> Result<Client, Error> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::closed());
        }
        self.keep_tidy();
        Ok(self.client.clone())
    }
}

impl Drop for RedisLocation {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Engine for RedisLocation {
    fn ping(&self, call: Call) -> Pending<StoreTime> {
        let store = Arc::clone(&self.0);
        async move { ask(&store.client()?, vec![Ask::time()], &call).await?.time() }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.0.stop();
        std::future::ready(()).boxed()
    }

    fn counters(&self) -> Option<&EngineCounters> {
        Some(self.0.client.counters())
    }
}

impl LocationEngine for RedisLocation {
    fn read(&self, key: Key, call: Call) -> Pending<ReadResult> {
        Arc::clone(&self.0).read(key, call).boxed()
    }

    fn write(&self, request: WriteRequest, call: Call) -> Pending<WriteResult> {
        Arc::clone(&self.0).write(request, call).boxed()
    }

    fn scan(&self, request: ScanRequest, call: Call) -> Pending<ScanResult> {
        Arc::clone(&self.0).scan(request, call).boxed()
    }
}
