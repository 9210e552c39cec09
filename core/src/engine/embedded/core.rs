//! An engine: a storage, its live snapshots, and the upkeep that removes what is over.

use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use parking_lot::{Mutex, MutexGuard};

use super::expiry;
use super::project::Waiting;
use super::record::Due;
use super::snapshots::Snapshots;
use super::storage::{Storage, Table, View};
use crate::call::Call;
use crate::contract::{Error, StoreTime};
use crate::engine::{Engine, Pending};
use crate::{ambient, background};

/// How often the upkeep looks for what is over.
const UPKEEP_EVERY: Duration = Duration::from_secs(1);
/// Expired entries that go in one commit.
const REAP_AT_ONCE: usize = 256;
/// How long one step of the upkeep may take before it is given up until the next time.
const UPKEEP_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Core<S: Storage> {
    pub(super) storage: S,
    /// Who waits for a lock of any project here.
    pub(super) waiting: Arc<Waiting>,
    kept_up: AtomicBool,
}

impl<S: Storage> Core<S> {
    pub(super) fn new(storage: S) -> Arc<Self> {
        Arc::new(Self { storage, waiting: Arc::default(), kept_up: AtomicBool::new(false) })
    }

    pub(super) fn snapshots(&self) -> MutexGuard<'_, Snapshots<S::View>> {
        self.storage.snapshots().lock()
    }

    /// There is something that will be over one day: an expiry, or a snapshot. The upkeep runs as long as that is so.
    pub(super) fn keep_up(self: &Arc<Self>) {
        if !self.kept_up.swap(true, Ordering::AcqRel) {
            background::handle().spawn(keep_up(Arc::downgrade(self)));
        }
    }

    /// Removes what is over now.
    pub(super) async fn upkeep(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let (due, now) = self.observe(|view, now| Ok((expiry::due(view, now, REAP_AT_ONCE)?, now))).await?;
            self.snapshots().drop_overdue(now);
            let more = due.len() == REAP_AT_ONCE;
            if !due.is_empty() {
                self.reap(due).await?;
            }
            if !more {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    async fn reap(self: &Arc<Self>, due: Vec<Due>) -> Result<(), Error> {
        let core = Arc::clone(self);
        let call = Call::writing(ambient::monotonic() + UPKEEP_TIMEOUT);
        self.storage.commit(call, move |draft, now| expiry::reap(draft, &due, now, &mut *core.snapshots())).await
    }

    async fn nothing_to_come(&self) -> bool {
        let soonest = |view: &S::View, _now| {
            let mut any = false;
            view.walk(Table::Due, Bound::Unbounded, &mut |_, _| {
                any = true;
                Ok(ControlFlow::Break(()))
            })?;
            Ok(any)
        };
        let any = self.observe(soonest).await;
        matches!(any, Ok(false)) && self.snapshots().is_empty()
    }

    fn observe<R, F>(&self, look: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&S::View, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static,
    {
        self.storage.observe(Call::reading(ambient::monotonic() + UPKEEP_TIMEOUT), look)
    }
}

async fn keep_up<S: Storage>(engine: Weak<Core<S>>) {
    loop {
        tokio::time::sleep(UPKEEP_EVERY).await;
        let Some(core) = engine.upgrade() else { return };
        if let Err(error) = core.upkeep().await {
            tracing::warn!(%error, "what has expired could not be removed; it is tried again");
        }
        if core.nothing_to_come().await {
            core.kept_up.store(false, Ordering::Release);
            // Something may have come before the flag fell, and found it standing.
            if core.nothing_to_come().await || core.kept_up.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

/// A store of any kind on an engine: `scope` is its part of the data.
pub(super) struct Store<S: Storage, P> {
    pub(super) held: Held<S>,
    pub(super) scope: P,
}

impl<S: Storage, P> Store<S, P> {
    pub(super) fn new(core: Arc<Core<S>>, scope: P) -> Self {
        Self { held: Held(Mutex::new(Some(core))), scope }
    }
}

impl<S: Storage, P: Send + Sync + 'static> Engine for Store<S, P> {
    fn answers_inline(&self) -> bool {
        S::INLINE
    }

    fn ping(&self, call: Call) -> Pending<StoreTime> {
        let core = self.held.get();
        async move { core?.storage.observe(call, |_, now| Ok(now)).await }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.held.release()
    }
}

/// What a store holds of its engine until it is closed.
pub(super) struct Held<S: Storage>(Mutex<Option<Arc<Core<S>>>>);

impl<S: Storage> Held<S> {
    pub(super) fn get(&self) -> Result<Arc<Core<S>>, Error> {
        self.0.lock().clone().ok_or_else(Error::closed)
    }

    /// Gives the engine up; the future is done when it is closed, if this was its last store.
    pub(super) fn release(&self) -> BoxFuture<'static, ()> {
        let core = self.0.lock().take();
        core.and_then(|core| core.storage.release()).unwrap_or_else(|| ready(()).boxed())
    }
}

impl<S: Storage> Drop for Held<S> {
    fn drop(&mut self) {
        // A storage closes by itself; nobody waits for it here.
        drop(self.release());
    }
}
