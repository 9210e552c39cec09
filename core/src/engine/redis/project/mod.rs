//! Project state and distributed locks on Redis (spec: redis.md, State and locks).
//!
//! All keys of a project share one hash tag, and every operation is one script call, or for `get` one transaction. An entry is a
//! string of its own; a ZSET of names by expiry counts the live ones exactly, so that expired ones can go in their own time.
//! Leases, and the queues of who waits for locks, lie in a few keys of fixed names.

mod acquire;
mod answer;
mod debts;
mod entry;
mod keys;
mod leases;
mod order;
mod reap;
mod state;
#[cfg(test)]
mod tests;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::entry::fuzz;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::debts::Debts;
use self::keys::Keys;
use self::order::Order;
use self::reap::Reaper;
use super::bells::Bells;
use super::client::Client;
use super::transport::{Batch, Line, Reply};
use super::words::{time, unread};
use crate::ambient::Ambient;
use crate::call::{Call, EngineCounters};
use crate::contract::{
    Grant, LeaseId, Name, Namespace, ProjectId, ReleaseResult, RenewResult, StateDeleteResult, StateEntry, StateSetResult,
    StoreTime,
};
use crate::engine::{Acquire, Engine, Pending, ProjectEngine, StateSet};

/// The engine of one project on Redis.
pub(crate) struct RedisProject(Arc<Inner>);

struct Inner {
    client: Client,
    keys: Keys,
    /// What wakes who waits for a lock; where there is nothing, heartbeats find it.
    bells: Option<Arc<Bells>>,
    reaper: Reaper,
    /// Acquires that are being taken back.
    debts: Debts,
    /// In what order acquires go out that may wait.
    order: Order,
    ambient: Arc<dyn Ambient>,
}

impl RedisProject {
    pub(crate) fn new(client: Client, id: &ProjectId, ambient: Arc<dyn Ambient>) -> Self {
        let keys = Keys::new(id);
        let (client, bells) = (client.at(&keys.format), client.bells());
        let (reaper, debts, order) = (Reaper::default(), Debts::default(), Order::default());
        Self(Arc::new(Inner { client, keys, bells, reaper, debts, order, ambient }))
    }
}

impl Engine for RedisProject {
    fn ping(&self, call: Call) -> Pending<StoreTime> {
        let inner = Arc::clone(&self.0);
        async move {
            let batch = Batch { commands: vec![vec![Bytes::from_static(b"TIME")]], atomic: false };
            let replies = inner.client.commands(Line::Small, batch, true, &call).await.map_err(unread)?;
            time(replies.first().unwrap_or(&Reply::Nil))
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let inner = Arc::clone(&self.0);
        async move {
            inner.reaper.stop();
            inner.debts.done().await;
            inner.client.close();
        }
        .boxed()
    }

    fn counters(&self) -> Option<&EngineCounters> {
        Some(self.0.client.counters())
    }
}

impl ProjectEngine for RedisProject {
    fn state_get(&self, namespace: Namespace, key: Name, call: Call) -> Pending<Option<StateEntry>> {
        let inner = Arc::clone(&self.0);
        async move { inner.get(&namespace, &key, &call).await }.boxed()
    }

    fn state_set(&self, set: StateSet, call: Call) -> Pending<StateSetResult> {
        let inner = Arc::clone(&self.0);
        async move { inner.set(set, &call).await }.boxed()
    }

    fn state_delete(&self, namespace: Namespace, key: Name, expected: Option<u64>, call: Call) -> Pending<StateDeleteResult> {
        let inner = Arc::clone(&self.0);
        async move { inner.delete(&namespace, &key, expected, &call).await }.boxed()
    }

    fn lock_acquire(&self, acquire: Acquire, call: Call) -> Pending<Option<Grant>> {
        acquire::acquire(Arc::clone(&self.0), acquire, call).boxed()
    }

    fn lock_attach(&self, id: LeaseId, call: Call) -> Pending<Option<Grant>> {
        let inner = Arc::clone(&self.0);
        async move { inner.attach(id, &call).await }.boxed()
    }

    fn lock_renew(&self, id: LeaseId, lease_ms: u64, call: Call) -> Pending<RenewResult> {
        let inner = Arc::clone(&self.0);
        async move { inner.renew(id, lease_ms, &call).await }.boxed()
    }

    fn lock_release(&self, id: LeaseId, call: Call) -> Pending<ReleaseResult> {
        let inner = Arc::clone(&self.0);
        async move { inner.release(id, &call).await }.boxed()
    }
}
