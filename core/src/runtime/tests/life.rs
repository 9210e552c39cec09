//! From the start to the disposal, which comes exactly once on every way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::rig::*;
use crate::contract::*;
use crate::runtime::*;

fn times_closed(provider: &Provider) -> usize {
    provider.closed.load(Ordering::SeqCst)
}

#[test]
fn a_stop_removes_what_was_published_and_closes_each_store_once() {
    run(async {
        let (store, relocation) = (store(), Provider::on(store()));
        let provider = Provider::on(store.clone());
        let mut options = options(&provider, long());
        options.add_relocation_store(Arc::clone(&relocation) as _).unwrap();
        let runtime = LocationRuntime::start(options).await.unwrap();
        let node = node("mesh", "a");
        runtime.publish_node(described(node.clone())).await.unwrap();
        let claim = active(&runtime, actor("x"), &node).await;
        let left = reserved(&runtime, actor("y"), &node).await;
        let (a, b) = tokio::join!(runtime.stop(), runtime.stop());
        a.unwrap();
        b.unwrap();
        runtime.stop().await.unwrap();
        assert_eq!((times_closed(&provider), times_closed(&relocation)), (1, 1));
        assert!(!runtime.is_owner(&claim));
        assert_eq!(runtime.commit(left).await.unwrap_err().code(), Code::Closed);
        assert!(!runtime.is_peer_ready(node, Role::new("server").unwrap()).await.unwrap());
        drop(runtime);
        assert_eq!((times_closed(&provider), times_closed(&relocation)), (1, 1));
        let (other, _) = started(&store, long()).await;
        assert_eq!(find(&other, &actor("x")).await, None);
        assert_eq!(find(&other, &actor("y")).await, None);
        assert_eq!(other.list_topology(Default::default(), PageRequest::default()).await.unwrap().entries, []);
        let ScanResult::Page(leases) = store.scan(ScanRequest::new("zlr/l/", 10)).await.unwrap() else { panic!() };
        assert_eq!(leases.items.len(), 1, "the other's own");
    });
}

#[test]
fn one_object_for_both_stores_is_closed_once() {
    run(async {
        let provider = Provider::on(store());
        let mut options = options(&provider, long());
        options.add_relocation_store(Arc::clone(&provider) as _).unwrap();
        LocationRuntime::start(options).await.unwrap().stop().await.unwrap();
        assert_eq!(times_closed(&provider), 1);
    });
}

#[test]
fn a_failed_start_closes_each_store_once() {
    run(async {
        for fault in [Fault::Fails(Code::Internal), Fault::Panics, Fault::NeverAnswers, Fault::RequestLost] {
            let (provider, relocation) = (Provider::on(store()), Provider::on(store()));
            provider.set_fault(Some(fault));
            let mut options = options(&provider, hasty());
            options.add_relocation_store(Arc::clone(&relocation) as _).unwrap();
            let error = LocationRuntime::start(options).await.unwrap_err();
            assert_eq!(error.errors()[0].code(), Code::Unavailable, "{fault:?}");
            assert_eq!((times_closed(&provider), times_closed(&relocation)), (1, 1), "{fault:?}");
        }
    });
}

#[test]
fn a_wrong_configuration_closes_each_store_once_and_asks_for_nothing() {
    run(async {
        let (provider, relocation) = (Provider::on(store()), Provider::on(store()));
        let mut wrong = options(&provider, LocationRuntimeOptions { renew_timeout: Duration::ZERO, ..long() });
        wrong.add_relocation_store(Arc::clone(&relocation) as _).unwrap();
        let error = LocationRuntime::start(wrong).await.unwrap_err();
        assert_eq!(error.errors()[0].argument_name(), Some("renewTimeout"));
        assert_eq!((times_closed(&provider), times_closed(&relocation)), (1, 1));
        assert_eq!(provider.reads.load(Ordering::SeqCst) + provider.writes.load(Ordering::SeqCst), 0);

        let relocation = Provider::on(store());
        let mut without = FrameworkOptions::new();
        without.add_relocation_store(Arc::clone(&relocation) as _).unwrap();
        let error = LocationRuntime::start(without).await.unwrap_err();
        assert_eq!(error.errors()[0].argument_name(), Some("addLocationStore"));
        assert_eq!(times_closed(&relocation), 1);
    });
}

#[test]
fn a_store_that_does_not_close_is_reported_and_the_other_is_closed() {
    run(async {
        for fault in [Fault::Fails(Code::Internal), Fault::Panics, Fault::NeverAnswers] {
            let (provider, relocation) = (Provider::on(store()), Provider::on(store()));
            *provider.close_fault.lock() = Some(fault);
            *relocation.close_fault.lock() = Some(fault);
            let mut options = options(&provider, hasty());
            options.add_relocation_store(Arc::clone(&relocation) as _).unwrap();
            let runtime = LocationRuntime::start(options).await.unwrap();
            let error = runtime.stop().await.unwrap_err();
            assert_eq!(error.errors().len(), 2, "{error}");
            assert!(error.to_string().contains("Relocation Store"), "{error}");
            assert_eq!(runtime.stop().await.unwrap_err().errors().len(), 2);
            assert_eq!((times_closed(&provider), times_closed(&relocation)), (1, 1), "{fault:?}");
        }
    });
}

#[test]
fn a_stop_with_a_store_that_is_gone_says_so_and_closes_it() {
    run(async {
        for fault in [Fault::Fails(Code::Timeout), Fault::NeverAnswers, Fault::Panics] {
            let (runtime, provider) = started(&store(), hasty()).await;
            let node = node("mesh", "a");
            runtime.publish_node(described(node.clone())).await.unwrap();
            active(&runtime, actor("x"), &node).await;
            provider.set_fault(Some(fault));
            let error = runtime.stop().await.unwrap_err();
            assert!(error.errors().iter().all(|error| error.code() == Code::Unavailable), "{error}");
            assert_eq!(times_closed(&provider), 1);
        }
    });
}

#[test]
fn a_stop_waits_for_operations_under_way() {
    run(async {
        let (runtime, provider) = started(&store(), hasty()).await;
        provider.set_fault(Some(Fault::NeverAnswers));
        let mut under_way = runtime.find_actor_location(GlobalId::new("x").unwrap());
        assert!(under_way.poll_now().is_pending());
        let find = tokio::spawn(under_way);
        let _ = runtime.stop().await;
        assert!(find.is_finished(), "the store was closed under an operation");
        assert_eq!(find.await.unwrap().unwrap_err().code(), Code::Unavailable);
        assert_eq!(times_closed(&provider), 1);
    });
}

#[test]
fn a_runtime_that_is_dropped_ends_as_in_a_crash_and_closes_its_stores() {
    run(async {
        let store = store();
        let (runtime, provider, node) = with_node(&store, "a").await;
        let id = owner(&runtime);
        let clone = runtime.clone();
        drop(runtime);
        active(&clone, actor("x"), &node).await;
        drop(clone);
        until("the store is closed", || async { times_closed(&provider) == 1 }).await;
        assert_eq!(lease_generation(&store, id).await, Some(1), "nothing was given back");
        let writes = provider.writes.load(Ordering::SeqCst);
        let (other, _) = started(&store, long()).await;
        let entry = find(&other, &actor("x")).await.unwrap();
        assert_eq!(entry.state, ObjectState::Ready, "until the lease has run out");
        assert_eq!(provider.writes.load(Ordering::SeqCst), writes, "nothing is renewed");
    });
}

#[test]
fn a_start_that_nobody_waits_for_closes_its_stores() {
    run(async {
        let provider = Provider::on(store());
        let mut start = Box::pin(LocationRuntime::start(options(&provider, long())));
        let _ = futures_util::poll!(start.as_mut());
        drop(start);
        until("the store is closed", || async { times_closed(&provider) == 1 }).await;
    });
}
