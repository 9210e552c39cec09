//! A claim and its caller, step by step.

use super::super::memory::{self, Memory};
use super::*;
use crate::contract::{LockName, ProjectId};

const TIMEOUT: Duration = Duration::from_secs(20);

struct Rig {
    core: Arc<Core<Memory>>,
    scope: Scope,
    key: Arc<[u8]>,
    acquire: Arc<Acquire>,
}

impl Rig {
    fn new() -> Self {
        let scope = Scope::new(&ProjectId::new("w", "p").unwrap());
        let lock = LockName { namespace: Namespace::new("n").unwrap(), key: Name::new("k").unwrap() };
        let key = scope.key(&lock.namespace, &lock.key).into();
        let acquire = Arc::new(Acquire { lock, lease_ms: 60_000, wait: TIMEOUT, timeout: TIMEOUT });
        Self { core: memory::open(None), scope, key, acquire }
    }

    fn claim(&self, id: u8) -> Claim<Memory> {
        let (core, scope) = (Arc::clone(&self.core), self.scope.clone());
        Claim { core, scope, id: LeaseId([id; 16]), open: false, gone: Arc::default() }
    }

    async fn attempt(&self, claim: &mut Claim<Memory>) -> Option<Tried> {
        let call = Call::writing(ambient::monotonic() + TIMEOUT);
        claim.attempt(&self.key, &self.acquire, &call).await.unwrap()
    }
}

#[tokio::test]
async fn once_its_caller_is_gone_a_claim_is_granted_nothing() {
    let rig = Rig::new();
    let mut claim = rig.claim(1);
    let turn = Arc::new(rig.core.waiting.join(&rig.key));
    drop(Caller { claim: claim.again(), turn: Arc::clone(&turn) });
    assert!(!turn.is_first(), "it left the queue");
    assert!(rig.attempt(&mut claim).await.is_none());
    let mut other = rig.claim(2);
    assert!(matches!(rig.attempt(&mut other).await, Some(Tried::Granted(_))), "the lock is free");
}

#[tokio::test]
async fn a_caller_who_has_its_lease_takes_nothing_back_in_going() {
    let rig = Rig::new();
    let mut claim = rig.claim(1);
    let turn = Arc::new(rig.core.waiting.join(&rig.key));
    let mut caller = Caller { claim: claim.again(), turn };
    let Some(Tried::Granted(grant)) = rig.attempt(&mut claim).await else { panic!("the lock is free") };
    caller.claim.open = false;
    drop(caller);
    claim.hand_over(grant);
    let mut other = rig.claim(2);
    assert!(matches!(rig.attempt(&mut other).await, Some(Tried::Held(_))), "it is still the first one's");
}

#[tokio::test]
async fn what_was_granted_to_a_caller_who_left_is_given_back() {
    let rig = Rig::new();
    let mut claim = rig.claim(1);
    let turn = Arc::new(rig.core.waiting.join(&rig.key));
    let caller = Caller { claim: claim.again(), turn };
    assert!(matches!(rig.attempt(&mut claim).await, Some(Tried::Granted(_))));
    drop(caller);
    let mut other = rig.claim(2);
    assert!(matches!(rig.attempt(&mut other).await, Some(Tried::Granted(_))), "before the caller is gone for good");
}
