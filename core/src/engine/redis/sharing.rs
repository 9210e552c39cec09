//! Stores with equal connection settings share their connections, by reference count: the last one closes them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::bells::Bells;
use super::config::RedisConfig;
use super::native::Native;
use super::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};
use crate::call::{Call, EngineCounters};
use crate::contract::Error;

static SHARED: LazyLock<Mutex<HashMap<RedisConfig, Shared>>> = LazyLock::new(Mutex::default);

struct Shared {
    native: Native,
    leases: usize,
}

/// One store's share. It ends when it is closed or dropped.
pub(super) struct Lease {
    config: RedisConfig,
    native: Native,
    ended: AtomicBool,
}

impl Lease {
    /// A share in the connections for `config`; no I/O.
    pub(super) fn take(config: &RedisConfig) -> Self {
        let mut all = SHARED.lock();
        let shared = all.entry(config.clone()).or_insert_with(|| Shared { native: Native::new(config.clone()), leases: 0 });
        shared.leases += 1;
        Self { config: config.clone(), native: shared.native.clone(), ended: AtomicBool::new(false) }
    }

    fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let last = {
            let mut all = SHARED.lock();
            let Some(shared) = all.get_mut(&self.config) else { return };
            shared.leases -= 1;
            if shared.leases == 0 { all.remove(&self.config) } else { None }
        };
        if let Some(Shared { native, .. }) = last {
            native.close();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end();
    }
}

impl Transport for Lease {
    fn ready(&self, line: Line, slot: Slot, deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        if self.ended.load(Ordering::Acquire) {
            return futures_util::future::ready(Err(Error::closed())).boxed();
        }
        self.native.ready(line, slot, deadline)
    }

    fn send(&self, line: Line, slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
        if self.ended.load(Ordering::Acquire) {
            return futures_util::future::ready(Err(Failure::NotSent(Error::closed()))).boxed();
        }
        self.native.send(line, slot, batch, call)
    }

    fn transactions(&self) -> bool {
        self.native.transactions()
    }

    fn scripts(&self) -> &Scripts {
        self.native.scripts()
    }

    fn min_acked_replicas(&self) -> u32 {
        self.native.min_acked_replicas()
    }

    fn counters(&self) -> &EngineCounters {
        self.native.counters()
    }

    fn bells(&self) -> Option<Arc<Bells>> {
        self.native.bells()
    }

    fn close(&self) {
        self.end();
    }
}
