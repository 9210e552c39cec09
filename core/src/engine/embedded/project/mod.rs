//! The logic of project state and locks, the same for both storages.

mod leases;
mod record;
mod state;
#[cfg(test)]
mod tests;
mod waiting;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::record::fuzz;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use self::leases::Tried;
pub(super) use self::leases::reap as reap_lease;
pub(super) use self::record::Scope;
pub(super) use self::state::reap as reap_entry;
use self::state::{Room, Set};
use self::waiting::Turn;
pub(super) use self::waiting::Waiting;
use super::core::{Core, Store};
use super::expiry;
use super::record::Due;
use super::storage::{Draft, Storage};
use crate::call::Call;
use crate::contract::{
    Code, Error, Grant, LeaseId, Name, Namespace, Outcome, ReleaseResult, RenewResult, StateDeleteResult, StateEntry,
    StateSetResult,
};
use crate::engine::{Acquire, Pending, ProjectEngine, StateSet};
use crate::{ambient, background};

/// The first in a queue looks at least so often, whatever the clock does.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl<S: Storage> ProjectEngine for Store<S, Scope> {
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
            let claim = Claim { core, scope, id, open: false, gone: Arc::default() };
            claim.acquire(Arc::new(acquire), call).await
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
    /// It is granted and not yet handed over; or a commit is under way that may grant it, or ended in a way that does not tell.
    open: bool,
    /// The caller is gone: nothing is granted any more.
    gone: Arc<AtomicBool>,
}

impl<S: Storage> Claim<S> {
    async fn acquire(mut self, acquire: Arc<Acquire>, call: Call) -> Result<Option<Grant>, Error> {
        let end = ambient::monotonic() + acquire.wait;
        let key: Arc<[u8]> = self.scope.key(&acquire.lock.namespace, &acquire.lock.key).into();
        if acquire.wait.is_zero() {
            return match self.attempt(&key, &acquire, &call).await? {
                Some(Tried::Granted(grant)) => Ok(Some(self.hand_over(grant))),
                _ => Ok(None),
            };
        }
        let turn = Arc::new(self.core.waiting.join(&key));
        let mut caller = Caller { claim: self.again(), turn: Arc::clone(&turn) };
        // In memory a free lock is had at the first poll.
        if S::INLINE
            && turn.is_first()
            && let Some(Tried::Granted(grant)) = self.attempt(&key, &acquire, &call).await?
        {
            caller.claim.open = false;
            return Ok(Some(self.hand_over(grant)));
        }
        // From here on it goes by itself: a caller who does not poll must not hold up those who come behind.
        let queued = background::spawn_scoped(self.queued(turn, key, acquire, call, end)).await;
        caller.claim.open = false;
        Ok(queued?.map(|(claim, grant)| claim.hand_over(grant)))
    }

    /// Waits for the turn, and takes the lock.
    async fn queued(
        mut self,
        turn: Arc<Turn>,
        key: Arc<[u8]>,
        acquire: Arc<Acquire>,
        call: Call,
        end: Instant,
    ) -> Result<Option<(Self, Grant)>, Error> {
        loop {
            let mut look_again = end;
            if turn.is_first() {
                match self.attempt(&key, &acquire, &call).await? {
                    Some(Tried::Granted(grant)) => {
                        turn.leave();
                        return Ok(Some((self, grant)));
                    }
                    Some(Tried::Held(left)) => look_again = end.min(ambient::monotonic() + left.min(LOOK_EVERY)),
                    None => {}
                }
            }
            if ambient::monotonic() >= end {
                turn.leave();
                return Ok(None);
            }
            wait(turn.woken(), look_again).await;
        }
    }

    /// The same claim in a second hand: whatever it gets is given back when the caller goes.
    fn again(&self) -> Self {
        let Self { core, scope, id, gone, .. } = self;
        Self { core: Arc::clone(core), scope: scope.clone(), id: *id, open: true, gone: Arc::clone(gone) }
    }

    /// Tries once. `None`: it waits for nobody, and somebody else waits; or its caller is gone.
    async fn attempt(&mut self, key: &Arc<[u8]>, acquire: &Arc<Acquire>, call: &Call) -> Result<Option<Tried>, Error> {
        let sent = ambient::monotonic();
        let call = call.until(sent + acquire.timeout);
        let change = {
            let (waiting, scope, id) = (Arc::clone(&self.core.waiting), self.scope.clone(), self.id);
            let (key, acquire, gone) = (Arc::clone(key), Arc::clone(acquire), Arc::clone(&self.gone));
            move |draft: &mut dyn Draft, now| {
                if gone.load(Ordering::SeqCst) || (acquire.wait.is_zero() && !waiting.is_nobody(&key)) {
                    return Ok(None);
                }
                leases::acquire(draft, &scope, &key, &acquire, id, now, sent).map(Some)
            }
        };
        self.open = true;
        let answered = background::timeout_at(call.deadline, self.core.storage.commit(call.clone(), change)).await;
        let result = answered.unwrap_or_else(|_| {
            let said = format!("no answer within the operation timeout of {} ms", acquire.timeout.as_millis());
            Err(Error::new(Code::Timeout, call.outcome(), said))
        });
        let granted = matches!(&result, Ok(Some(Tried::Granted(_))));
        self.open = granted || result.as_ref().is_err_and(|error| error.outcome() == Outcome::Unknown);
        if !self.open {
            call.unmark_sent();
        }
        if granted {
            self.core.keep_up();
        }
        result
    }

    fn hand_over(mut self, grant: Grant) -> Grant {
        self.open = false;
        grant
    }
}

impl<S: Storage> Drop for Claim<S> {
    fn drop(&mut self) {
        if self.open {
            let mut back = give_back(Arc::clone(&self.core), self.scope.clone(), self.id).boxed();
            // Begun here, it comes before a closing that follows.
            if back.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                background::spawn(back);
            }
        }
    }
}

/// Who waits for a claim that goes by itself. Dropped before its end, nothing is granted any more, and what was is given back.
struct Caller<S: Storage> {
    claim: Claim<S>,
    turn: Arc<Turn>,
}

impl<S: Storage> Drop for Caller<S> {
    fn drop(&mut self) {
        // Before the claim gives back.
        if self.claim.open {
            self.claim.gone.store(true, Ordering::SeqCst);
        }
        self.turn.leave();
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
        background::sleep_until(ambient::monotonic() + GIVE_BACK_EVERY).await;
    }
}

async fn wait(woken: impl Future<Output = ()>, until: Instant) {
    tokio::select! {
        () = woken => {}
        () = background::sleep_until(until) => {}
    }
}
