//! What is left of nodes whose owner is gone, and descriptors that vanish.

use std::sync::atomic::Ordering;

use super::rig::*;
use crate::contract::*;
use crate::runtime::record::{NodeRecord, Record};
use crate::runtime::sweep::LOST_FOR_MS;
use crate::runtime::*;

async fn lost_at(store: &crate::LocationStore, node: &NodeId) -> Option<Option<StoreTime>> {
    match store.read(keys::node(node).unwrap()).await.unwrap() {
        ReadResult::Missing { .. } => None,
        ReadResult::Found(value) => Some(NodeRecord::decode(&value.bytes).unwrap().lost_at),
    }
}

#[test]
fn a_lost_node_is_stamped_and_deleted_ten_minutes_later() {
    run(async {
        let store = store();
        let (dead, _, a) = with_node(&store, "a").await;
        let (runtime, provider, b) = with_node(&store, "b").await;
        let core = &runtime.0.core;
        core.sweep().await.unwrap();
        assert_eq!(lost_at(&store, &a).await, Some(None), "its owner is alive");
        killed(&store, dead).await;
        until("the look at its lease is forgotten", || async {
            core.sweep().await.unwrap();
            lost_at(&store, &a).await.flatten().is_some()
        })
        .await;
        let stamp = lost_at(&store, &a).await;
        provider.ahead.store(LOST_FOR_MS - 60_000, Ordering::SeqCst);
        core.sweep().await.unwrap();
        assert_eq!(lost_at(&store, &a).await, stamp, "not yet, and stamped once");
        provider.ahead.store(LOST_FOR_MS, Ordering::SeqCst);
        core.sweep().await.unwrap();
        assert_eq!(lost_at(&store, &a).await, None);
        assert_eq!(lost_at(&store, &b).await, Some(None));
    });
}

#[test]
fn a_node_that_is_published_again_is_not_lost_any_more() {
    run(async {
        let store = store();
        let (dead, _, a) = with_node(&store, "a").await;
        let (runtime, provider, _) = with_node(&store, "b").await;
        killed(&store, dead).await;
        let core = &runtime.0.core;
        until("stamped", || async {
            core.sweep().await.unwrap();
            lost_at(&store, &a).await.flatten().is_some()
        })
        .await;
        let (again, _, _) = with_node(&store, "a").await;
        assert_eq!(lost_at(&store, &a).await, Some(None));
        provider.ahead.store(LOST_FOR_MS * 2, Ordering::SeqCst);
        core.sweep().await.unwrap();
        assert_eq!(lost_at(&store, &a).await, Some(None));
        drop(again);
    });
}

#[test]
fn a_descriptor_that_vanished_is_published_again() {
    run(async {
        let store = store();
        let (runtime, _, a) = with_node(&store, "a").await;
        store.write(WriteRequest::new().mutation(Mutation::delete(keys::node(&a).unwrap()))).await.unwrap();
        assert_eq!(lost_at(&store, &a).await, None);
        runtime.0.core.sweep().await.unwrap();
        until("back", || async { lost_at(&store, &a).await.is_some() }).await;
    });
}
