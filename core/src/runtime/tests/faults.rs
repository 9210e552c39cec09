//! A provider that throws, never answers, or loses answers.

use std::sync::atomic::Ordering;

use super::rig::*;
use crate::call::Cancellation;
use crate::contract::*;
use crate::runtime::*;

#[test]
fn every_failure_of_a_provider_is_unavailable() {
    run(async {
        let faults = Code::ALL.map(Fault::Fails).into_iter().chain([Fault::Panics, Fault::NeverAnswers]);
        let (runtime, provider) = started(&store(), hasty()).await;
        let id = GlobalId::new("x").unwrap();
        let objects = ObjectFilter { object_kind: ObjectKind::Actor, stable_type: None, mesh_name: None };
        for fault in faults {
            provider.set_fault(Some(fault));
            let errors = [
                runtime.find_actor_location(id.clone()).await.unwrap_err(),
                runtime.find_spot_location(id.clone()).await.unwrap_err(),
                runtime.list_topology(Default::default(), PageRequest::default()).await.unwrap_err(),
                runtime.list_service_summaries(Default::default(), PageRequest::default()).await.unwrap_err(),
                runtime.list_object_locations(objects.clone(), PageRequest::default()).await.unwrap_err(),
                runtime.publish_node(described(node("mesh", "a"))).await.unwrap_err(),
                runtime.remove_node(node("mesh", "a")).await.unwrap_err(),
            ];
            for error in errors {
                assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied), "{fault:?}: {error}");
            }
            assert!(!runtime.is_peer_ready(node("mesh", "a"), Role::new("server").unwrap()).await.unwrap());
            let status = runtime.status();
            assert!(!status.store_healthy && status.last_error.is_some(), "{fault:?}");
        }
        provider.set_fault(None);
        assert_eq!(runtime.find_actor_location(id).await.unwrap(), None);
        let status = runtime.status();
        assert!(status.store_healthy && status.last_refresh_at.is_some());
    });
}

#[test]
fn a_lost_answer_or_request_does_an_operation_once() {
    run(async {
        for fault in [Fault::AnswerLost, Fault::RequestLost] {
            let store = store();
            // No renewal comes in between and takes the fault.
            let times = LocationRuntimeOptions { renew_interval: std::time::Duration::from_secs(60), ..long() };
            let (runtime, provider) = started(&store, times).await;
            let (_, _, b) = with_node(&store, "b").await;
            let lose = || *provider.next_write.lock() = Some(fault);
            let a = node("mesh", "a");
            lose();
            runtime.publish_node(described(a.clone())).await.unwrap();
            lose();
            let claim = reserved(&runtime, actor("x"), &a).await;
            lose();
            assert_eq!(runtime.commit(claim.clone()).await.unwrap(), ClaimResult::Done);
            assert!(runtime.is_owner(&claim));
            lose();
            assert_eq!(runtime.release(claim).await.unwrap(), ClaimResult::Done);
            lose();
            let claim = reserved(&runtime, actor("y"), &a).await;
            lose();
            assert_eq!(runtime.abort(claim).await.unwrap(), ClaimResult::Done);
            let claim = active(&runtime, actor("z"), &a).await;
            lose();
            assert_eq!(runtime.move_to(claim, b).await.unwrap(), MoveResult::Moved, "{fault:?}");
            let (dead, _, c) = with_node(&store, "c").await;
            let theirs = active(&dead, actor("w"), &c).await;
            killed(&store, dead).await;
            lose();
            let TakeResult::Taken { claim, .. } = runtime.take_over(actor("w"), a.clone()).await.unwrap() else { panic!() };
            assert_eq!(claim.owner_generation, theirs.owner_generation + 1);
            lose();
            runtime.remove_node(a.clone()).await.unwrap();
            assert!(!runtime.is_peer_ready(a, Role::new("server").unwrap()).await.unwrap());
        }
    });
}

#[test]
fn an_object_that_is_given_away_in_doubt_is_not_ours_until_that_is_settled() {
    run(async {
        let store = store();
        let (runtime, provider, a) = with_node(&store, "a").await;
        let (_second, _, b) = with_node(&store, "b").await;
        let claim = active(&runtime, actor("x"), &a).await;
        provider.set_fault(Some(Fault::NeverAnswers));
        let mut moving = runtime.move_to(claim.clone(), b);
        assert!(moving.poll_now().is_pending());
        drop(moving);
        assert!(!runtime.is_owner(&claim), "it may have moved");
        provider.set_fault(None);
        until("settled", || async { runtime.is_owner(&claim) }).await;
        assert_eq!(find(&runtime, &actor("x")).await.unwrap().node, a);
    });
}

#[test]
fn a_cancellation_reaches_the_provider() {
    run(async {
        let times = LocationRuntimeOptions { renew_interval: std::time::Duration::from_secs(60), ..long() };
        let (runtime, provider) = started(&store(), times).await;
        let before = provider.left.load(Ordering::SeqCst);
        provider.set_fault(Some(Fault::NeverAnswers));
        let cancellation = Cancellation::new();
        let find = runtime.find_actor_location(GlobalId::new("x").unwrap()).with_cancellation(&cancellation);
        let find = tokio::spawn(find);
        until("asked", || async { provider.reads.load(Ordering::SeqCst) > 1 }).await;
        cancellation.cancel();
        assert_eq!(find.await.unwrap().unwrap_err().code(), Code::Cancelled);
        assert_eq!(provider.left.load(Ordering::SeqCst), before + 1);
        let cancelled = runtime.find_actor_location(GlobalId::new("x").unwrap()).with_cancellation(&cancellation);
        let reads = provider.reads.load(Ordering::SeqCst);
        assert_eq!(cancelled.await.unwrap_err().code(), Code::Cancelled);
        assert_eq!(provider.reads.load(Ordering::SeqCst), reads, "nothing was asked");
    });
}

#[test]
fn a_record_of_a_newer_version_is_said_to_be_one() {
    run(async {
        let store = store();
        let (runtime, _) = started(&store, long()).await;
        for key in ["zlr/a/x", "zlr/s/x", "zlr/n/mesh/YQ"] {
            let put = Mutation::put(Key::new(key).unwrap(), &b"\x02?"[..]);
            store.write(WriteRequest::new().mutation(put)).await.unwrap();
        }
        let id = GlobalId::new("x").unwrap();
        let errors = [
            runtime.find_actor_location(id.clone()).await.unwrap_err(),
            runtime.find_spot_location(id).await.unwrap_err(),
            runtime.list_topology(Default::default(), PageRequest::default()).await.unwrap_err(),
            runtime.list_service_summaries(Default::default(), PageRequest::default()).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.code(), Code::Incompatible, "{error}");
        }
    });
}
