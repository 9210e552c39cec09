//! The owner lease: kept, adopted after doubt, lost and claimed again, and never trusted longer than it can be.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::rig::*;
use crate::contract::*;
use crate::runtime::*;

#[test]
fn a_renewal_is_one_write_and_touches_the_lease_only() {
    run(async {
        let store = store();
        let (runtime, provider, node) = with_node(&store, "a").await;
        let key = keys::node(&node).unwrap();
        let ReadResult::Found(before) = store.read(key.clone()).await.unwrap() else { panic!() };
        let first = runtime.status().owner_lease_renewed_at;
        let (reads, writes) = (provider.reads.load(Ordering::SeqCst), provider.writes.load(Ordering::SeqCst));
        until("renewed", || async { provider.writes.load(Ordering::SeqCst) >= writes + 3 }).await;
        until("told", || async { runtime.status().owner_lease_renewed_at > first }).await;
        assert_eq!(provider.reads.load(Ordering::SeqCst), reads);
        let ReadResult::Found(after) = store.read(key).await.unwrap() else { panic!() };
        assert_eq!(before.version, after.version);
        assert_eq!(lease_generation(&store, owner(&runtime)).await, Some(1));
        runtime.stop().await.unwrap();
    });
}

#[test]
fn a_renewal_whose_answer_is_lost_is_adopted() {
    run(async {
        for fault in [Fault::AnswerLost, Fault::RequestLost] {
            let store = store();
            let (runtime, provider, node) = with_node(&store, "a").await;
            let claim = active(&runtime, actor("x"), &node).await;
            for _ in 0..3 {
                let writes = provider.writes.load(Ordering::SeqCst);
                *provider.next_write.lock() = Some(fault);
                until("renewed", || async { provider.writes.load(Ordering::SeqCst) >= writes + 2 }).await;
            }
            assert_eq!(lease_generation(&store, owner(&runtime)).await, Some(1), "{fault:?}: it was never lost");
            assert!(runtime.is_owner(&claim));
            assert!(runtime.status().owner_lease_healthy);
            runtime.stop().await.unwrap();
        }
    });
}

#[test]
fn a_lost_lease_is_claimed_again_and_what_still_runs_is_published_again() {
    run(async {
        let store = store();
        let (runtime, _, node) = with_node(&store, "a").await;
        let claim = active(&runtime, actor("x"), &node).await;
        let creating = reserved(&runtime, actor("y"), &node).await;
        for generation in 2..5 {
            end_lease(&store, owner(&runtime)).await;
            until("claimed", || async { lease_generation(&store, owner(&runtime)).await == Some(generation) }).await;
            until("ours again", || async { runtime.is_owner(&claim) && runtime.is_owner(&creating) }).await;
        }
        let entry = find(&runtime, &actor("x")).await.unwrap();
        assert_eq!((entry.state, entry.object_generation), (ObjectState::Ready, claim.object_generation));
        let role = Role::new("server").unwrap();
        until("ready", || async { runtime.is_peer_ready(node.clone(), role.clone()).await.unwrap() }).await;
        assert_eq!(runtime.commit(creating).await.unwrap(), ClaimResult::Done);
        runtime.stop().await.unwrap();
    });
}

#[test]
fn what_was_taken_over_while_the_lease_was_lost_is_not_taken_back() {
    run(async {
        let store = store();
        let (first, provider, node) = with_node(&store, "a").await;
        let (second, _, other) = with_node(&store, "b").await;
        let claim = active(&first, actor("x"), &node).await;
        provider.set_fault(Some(Fault::Fails(Code::Unavailable)));
        end_lease(&store, owner(&first)).await;
        let TakeResult::Taken { claim: theirs, committed } = second.take_over(actor("x"), other).await.unwrap() else { panic!() };
        assert!(committed);
        assert_eq!(theirs.object_generation, claim.object_generation);
        assert_eq!(theirs.owner_generation, claim.owner_generation + 1);
        provider.set_fault(None);
        until("claimed", || async { lease_generation(&store, owner(&first)).await == Some(2) }).await;
        until("settled", || async { first.commit(claim.clone()).await.is_ok_and(|result| result == ClaimResult::Lost) }).await;
        assert!(!first.is_owner(&claim));
        assert!(second.is_owner(&theirs));
        assert_eq!(first.release(claim).await.unwrap(), ClaimResult::Lost);
        assert_eq!(find(&first, &actor("x")).await.unwrap().node, theirs.node);
    });
}

#[test]
fn a_lease_that_may_have_run_out_admits_nothing() {
    run(async {
        let times = LocationRuntimeOptions {
            owner_lease_ttl: Duration::from_millis(6_000),
            renew_interval: Duration::from_millis(100),
            renew_timeout: Duration::from_millis(400),
            fencing_margin: Duration::from_millis(5_400),
            ..long()
        };
        let store = store();
        let (runtime, provider) = started(&store, times).await;
        let node = node("mesh", "a");
        // On a busy machine the little that the margin leaves may have passed.
        until("published", || async { runtime.publish_node(described(node.clone())).await.is_ok() }).await;
        let mut claim = None;
        until("reserved", || {
            let reserve = runtime.reserve(actor("x"), a_type(), node.clone());
            let claim = &mut claim;
            let result = futures_util::FutureExt::now_or_never(reserve);
            if let Some(Ok(ReserveResult::Reserved(reserved))) = result {
                *claim = Some(reserved);
            }
            let is_some = claim.is_some();
            async move { is_some }
        })
        .await;
        let claim = claim.unwrap();
        provider.set_fault(Some(Fault::Fails(Code::Unavailable)));
        until("run out", || async { !runtime.status().owner_lease_healthy }).await;
        assert_eq!(lease_generation(&store, owner(&runtime)).await, Some(1), "nobody else can have found it missing");
        assert!(!runtime.is_owner(&claim));
        // Only the renewals fail from here on.
        provider.set_fault(None);
        let refused = [
            runtime.publish_node(described(node.clone())).await.err(),
            runtime.reserve(actor("y"), a_type(), node.clone()).await.err(),
            runtime.commit(claim.clone()).await.err(),
        ];
        // A renewal may have come in between; what is refused changed nothing.
        for error in refused.into_iter().flatten() {
            assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied), "{error}");
        }
        until("renewed", || async { runtime.status().owner_lease_healthy }).await;
    });
}
