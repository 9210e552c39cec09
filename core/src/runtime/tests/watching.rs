//! Changes, with the last complete state first.

use super::rig::*;
use crate::contract::*;
use crate::runtime::*;

#[test]
fn the_complete_state_comes_first_and_then_each_change() {
    run(async {
        let store = store();
        let (runtime, _, a) = with_node(&store, "a").await;
        assert!(!runtime.status().watch_enabled);
        let mut watch = runtime.watch_topology(TopologyFilter::default());
        assert!(runtime.status().watch_enabled);
        let first = watch.next().await.unwrap();
        assert!(matches!(&first[..], [Change::Added(entry)] if entry.node == a), "{first:?}");
        let (other, _, b) = with_node(&store, "b").await;
        let joined = watch.next().await.unwrap();
        assert!(matches!(&joined[..], [Change::Added(entry)] if entry.node == b), "{joined:?}");
        killed(&store, other).await;
        let died = watch.next().await.unwrap();
        assert!(matches!(&died[..], [Change::Changed(entry)] if entry.state == NodeState::Lost), "{died:?}");
        runtime.remove_node(a.clone()).await.unwrap();
        let left = watch.next().await.unwrap();
        assert!(matches!(&left[..], [Change::Removed(entry)] if entry.node == a), "{left:?}");
        drop(watch);
        assert!(!runtime.status().watch_enabled);
    });
}

#[test]
fn a_watch_waits_while_the_store_fails_and_ends_with_the_runtime() {
    run(async {
        let store = store();
        let (runtime, provider, node) = with_node(&store, "a").await;
        let filter = ObjectFilter { object_kind: ObjectKind::Actor, stable_type: None, mesh_name: None };
        let mut watch = runtime.watch_objects(filter);
        assert_eq!(watch.next().await, Some(Vec::new()), "the complete state is empty");
        let claim = active(&runtime, actor("x"), &node).await;
        provider.set_fault(Some(Fault::Fails(Code::Unavailable)));
        let asked = provider.scans.load(std::sync::atomic::Ordering::SeqCst);
        let healed = {
            let next = watch.next();
            let heal = async {
                until("failed", || async { provider.scans.load(std::sync::atomic::Ordering::SeqCst) > asked + 2 }).await;
                provider.set_fault(None);
            };
            tokio::join!(next, heal).0
        };
        assert!(matches!(&healed.unwrap()[..], [Change::Added(entry)] if entry.global_id == claim.id.global_id));
        let waiting = tokio::spawn(async move { (watch.next().await, watch.next().await) });
        runtime.stop().await.unwrap();
        let (_, last) = waiting.await.unwrap();
        assert_eq!(last, None);
    });
}
