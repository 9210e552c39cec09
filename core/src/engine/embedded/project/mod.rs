//! The logic of project state and locks, the same for both storages.

mod leases;
mod record;
mod state;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::leases::Tried;
pub(super) use self::leases::reap as reap_lease;
use self::record::Scope;
pub(super) use self::state::reap as reap_entry;
use self::state::{Room, Set};
pub(super) use self::waiting::Waiting;
use super::core::{Core, Held};
use super::expiry;
use super::record::Due;
use super::storage::{Draft, Storage};
use crate::call::Call;
use crate::contract::{
    Code, Error, Grant, LeaseId, Name, Namespace, Outcome, ProjectId, ReleaseResult, RenewResult, StateDeleteResult, StateEntry,
    StateSetResult, StoreTime,
};
use crate::engine::{Acquire, Engine, Pending, ProjectEngine, StateSet};
use crate::{ambient, background};

/// The first in a queue looks at least so often, whatever the clock does.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Project<S: Storage> {
    held: Held<S>,
    scope: Scope,
}

impl<S: Storage> Project<S> {
    pub(super) fn new(core: Arc<Core<S>>, id: &ProjectId) -> Self {
        Self { held: Held::new(core), scope: Scope::new(id) }
    }
}

impl<S: Storage> Engine for Project<S> {
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

impl<S: Storage> ProjectEngine for Project<S> {
    fn state_get(&self, namespace: Namespace, key: Name, call: Call) -> Pending<Option<StateEntry>> {
        let core = self.held.get();
        let key = self.scope.key(&namespace, &key);
        async move { core?.storage.observe(call, move |view, now| state::get(view, &key, now)).await }.boxed()
    }

    fn state_set(&self, set: StateSet, call: Call) -> Pending<StateSetResult> {
        let core = self.held.get();
        let scope = self.scope.clone();
        async move {
            let core = core?;
            let expiring = set.options.ttl_seconds.is_some();
            let result = state_set(&core, scope, set, call).await?;
            if expiring {
                core.keep_up();
            }
            Ok(result)
        }
        .boxed()
    }

    fn state_delete(&self, namespace: Namespace, key: Name, expected: Option<u64>, call: Call) -> Pending<StateDeleteResult> {
        let core = self.held.get();
        let key = self.scope.key(&namespace, &key);
        let change = move |draft: &mut dyn Draft, now| state::delete(draft, &key, expected, now);
        async move { core?.storage.commit(call, change).await }.boxed()
    }

    fn lock_acquire(&self, acquire: Acquire, call: Call) -> Pending<Option<Grant>> {
        let core = self.held.get();
        let scope = self.scope.clone();
        async move {
            let core = core?;
            let id = LeaseId(ambient::random(core.storage.ambient()));
            let claim = Claim { core, scope, id, open: false };
            claim.acquire(acquire, call).await
        }
        .boxed()
    }

    fn lock_attach(&self, id: LeaseId, call: Call) -> Pending<Option<Grant>> {
        let core = self.held.get();
        let scope = self.scope.clone();
        let sent = ambient::monotonic();
        async move { core?.storage.observe(call, move |view, now| leases::attach(view, &scope, id, now, sent)).await }.boxed()
    }

    fn lock_renew(&self, id: LeaseId, lease_ms: u64, call: Call) -> Pending<RenewResult> {
        let core = self.held.get();
        let scope = self.scope.clone();
        let change = move |draft: &mut dyn Draft, now| leases::renew(draft, &scope, id, lease_ms, now);
        async move { core?.storage.commit(call, change).await }.boxed()
    }

    fn lock_release(&self, id: LeaseId, call: Call) -> Pending<ReleaseResult> {
        let core = self.held.get();
        let scope = self.scope.clone();
        async move { release(&*core?, scope, id, call).await }.boxed()
    }
}

async fn state_set<S: Storage>(core: &Arc<Core<S>>, scope: Scope, set: StateSet, call: Call) -> Result<StateSetResult, Error> {
    let key: Arc<[u8]> = scope.key(&set.namespace, &set.key).into();
    let set = Arc::new(set);
    loop {
        let change = {
            let (scope, key, set) = (scope.clone(), Arc::clone(&key), Arc::clone(&set));
            move |draft: &mut dyn Draft, now| state::set(draft, &scope, &key, &set, now)
        };
        if let Set::Done(result) = core.storage.commit(call.clone(), change).await? {
            return Ok(result);
        }
        call.unmark_sent();
        let look = {
            let (scope, key) = (scope.clone(), Arc::clone(&key));
            move |view: &S::View, now| state::room(view, &scope, &key, now)
        };
        match core.storage.observe(call.clone(), look).await? {
            Room::None => return Ok(StateSetResult::LimitReached),
            Room::After(expired) => remove_expired(core, expired, call.clone()).await?,
            Room::Perhaps => {}
        }
        call.unmark_sent();
        if ambient::monotonic() >= call.deadline {
            return Err(Error::new(Code::Timeout, Outcome::NotApplied, "the project stayed full for the operation timeout"));
        }
    }
}

async fn remove_expired<S: Storage>(core: &Arc<Core<S>>, expired: Vec<Due>, call: Call) -> Result<(), Error> {
    let change = {
        let core = Arc::clone(core);
        move |draft: &mut dyn Draft, now| expiry::reap(draft, &expired, now, &mut *core.snapshots())
    };
    core.storage.commit(call, change).await
}

async fn release<S: Storage>(core: &Core<S>, scope: Scope, id: LeaseId, call: Call) -> Result<ReleaseResult, Error> {
    let waiting = Arc::clone(&core.waiting);
    let change = move |draft: &mut dyn Draft, now| {
        let Some(key) = leases::release(draft, &scope, id, now)? else { return Ok(ReleaseResult::Lost) };
        // Here, since the caller may be gone when the commit is done. Who is woken comes behind it with a commit of its own.
        waiting.wake_first(&key);
        Ok(ReleaseResult::Released)
    };
    core.storage.commit(call, change).await
}

/// A lease that may be granted and is nobody's yet. Dropped like that, it is given back.
struct Claim<S: Storage> {
    core: Arc<Core<S>>,
    scope: Scope,
    id: LeaseId,
    /// A commit is under way that may grant it, or ended in a way that does not tell.
    open: bool,
}

impl<S: Storage> Claim<S> {
    async fn acquire(mut self, acquire: Acquire, call: Call) -> Result<Option<Grant>, Error> {
        let end = ambient::monotonic() + acquire.wait;
        let key: Arc<[u8]> = self.scope.key(&acquire.lock.namespace, &acquire.lock.key).into();
        let acquire = Arc::new(acquire);
        let turn = (!acquire.wait.is_zero()).then(|| self.core.waiting.join(&key));
        loop {
            let mut look_again = end;
            if turn.as_ref().is_none_or(|turn| turn.is_first()) {
                match self.attempt(&key, &acquire, &call).await? {
                    Some(Tried::Granted(grant)) => return Ok(Some(grant)),
                    Some(Tried::Held(left)) => look_again = end.min(ambient::monotonic() + left.min(LOOK_EVERY)),
                    None => {}
                }
            }
            let Some(turn) = &turn else { return Ok(None) };
            if ambient::monotonic() >= end {
                return Ok(None);
            }
            wait(turn.woken(), look_again).await;
        }
    }

    /// Tries once. `None`: it waits for nobody, and somebody else waits.
    async fn attempt(&mut self, key: &Arc<[u8]>, acquire: &Arc<Acquire>, call: &Call) -> Result<Option<Tried>, Error> {
        let sent = ambient::monotonic();
        let call = call.until(sent + acquire.timeout);
        let change = {
            let (waiting, scope, id) = (Arc::clone(&self.core.waiting), self.scope.clone(), self.id);
            let (key, acquire) = (Arc::clone(key), Arc::clone(acquire));
            move |draft: &mut dyn Draft, now| {
                if acquire.wait.is_zero() && !waiting.is_nobody(&key) {
                    return Ok(None);
                }
                leases::acquire(draft, &scope, &key, &acquire, id, now, sent).map(Some)
            }
        };
        self.open = true;
        let result = self.core.storage.commit(call.clone(), change).await;
        self.open = result.as_ref().is_err_and(|error| error.outcome() == Outcome::Unknown);
        if !self.open {
            call.unmark_sent();
        }
        if let Ok(Some(Tried::Granted(_))) = &result {
            self.core.keep_up();
        }
        result
    }
}

impl<S: Storage> Drop for Claim<S> {
    fn drop(&mut self) {
        if self.open {
            let (core, scope, id) = (Arc::clone(&self.core), self.scope.clone(), self.id);
            background::spawn(give_back(core, scope, id));
        }
    }
}

/// How long a lease that nobody knows is tried to be given back: longer than any lasts.
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(60);
const GIVE_BACK_EVERY: Duration = Duration::from_millis(100);

async fn give_back<S: Storage>(core: Arc<Core<S>>, scope: Scope, id: LeaseId) {
    let end = ambient::monotonic() + GIVE_BACK_WITHIN;
    while let Err(error) = release(&core, scope.clone(), id, Call::writing(end)).await {
        if error.code() == Code::Closed || ambient::monotonic() + GIVE_BACK_EVERY >= end {
            return;
        }
        tokio::time::sleep(GIVE_BACK_EVERY).await;
    }
}

async fn wait(woken: impl Future<Output = ()>, until: Instant) {
    tokio::select! {
        () = woken => {}
        () = background::sleep_until(until) => {}
    }
}
