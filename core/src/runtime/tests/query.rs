//! Pages, counts, readiness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::rig::*;
use crate::contract::*;
use crate::runtime::*;

async fn all_nodes(runtime: &LocationRuntime, filter: &TopologyFilter, size: u32) -> Vec<TopologyEntry> {
    let mut all = Vec::new();
    let mut page = PageRequest::first(size);
    loop {
        let read = runtime.list_topology(filter.clone(), page).await.unwrap();
        assert!(size == 0 || read.entries.len() <= size as usize);
        all.extend(read.entries);
        match read.continuation_token {
            None => return all,
            token => page = PageRequest { size, continuation_token: token },
        }
    }
}

/// 3 meshes; `big` has 25 nodes, `mid` has 7, `one` has one; every third is in error, every fifth stopped, the rest ready.
async fn with_meshes(store: &LocationStore) -> (LocationRuntime, BTreeMap<NodeId, NodeState>) {
    let (runtime, _) = started(store, long()).await;
    let mut truth = BTreeMap::new();
    for (mesh, count) in [("big", 25), ("mid/%", 7), ("one", 1)] {
        for number in 0..count {
            let id = node(mesh, &format!("n{number}"));
            let state = match number {
                _ if number % 3 == 1 => NodeState::Error,
                _ if number % 5 == 4 => NodeState::Stopped,
                _ => NodeState::Ready,
            };
            truth.insert(id.clone(), state);
            runtime.publish_node(NodeDescriptor { state, ..described(id) }).await.unwrap();
        }
    }
    (runtime, truth)
}

use crate::LocationStore;

#[test]
fn every_node_is_in_one_page_of_a_cycle_whatever_the_size_and_filter() {
    run(async {
        let (runtime, truth) = with_meshes(&store()).await;
        let meshes = [None, Some("big"), Some("mid/%"), Some("one"), Some("none"), Some("bi")];
        for size in [0, 1, 2, 7, 25, 33, 1_000] {
            for mesh in meshes {
                for state in [None, Some(NodeState::Ready), Some(NodeState::Stopped), Some(NodeState::Lost)] {
                    let mesh_name = mesh.map(|mesh| MeshName::new(mesh).unwrap());
                    let filter = TopologyFilter { mesh_name: mesh_name.clone(), node_rid: None, state };
                    let expected: BTreeMap<_, _> = truth
                        .iter()
                        .filter(|(id, _)| mesh_name.as_ref().is_none_or(|mesh| id.mesh_name == *mesh))
                        .filter(|(_, of)| state.is_none_or(|state| **of == state))
                        .map(|(id, of)| (id.clone(), *of))
                        .collect();
                    let found = all_nodes(&runtime, &filter, size).await;
                    assert_eq!(found.len(), expected.len(), "{size} {filter:?}");
                    assert_eq!(found.into_iter().map(|entry| (entry.node, entry.state)).collect::<BTreeMap<_, _>>(), expected);
                }
            }
        }
        let one = TopologyFilter { node_rid: Some(RoutingId::parse("n0").unwrap()), ..Default::default() };
        assert_eq!(all_nodes(&runtime, &one, 2).await.len(), 3);
    });
}

#[test]
fn summaries_count_whole_meshes_in_pages_of_any_size() {
    run(async {
        let store = store();
        let (runtime, truth) = with_meshes(&store).await;
        let (dead, _, _) = with_node(&store, "lost").await;
        killed(&store, dead).await;
        let updated: BTreeMap<_, _> = all_nodes(&runtime, &Default::default(), 0)
            .await
            .into_iter()
            .map(|entry| (entry.node.mesh_name, entry.updated_at))
            .fold(BTreeMap::new(), |mut latest, (mesh, at)| {
                let known = latest.entry(mesh).or_insert(at);
                *known = at.max(*known);
                latest
            });
        for size in [0, 1, 2, 3, 4, 1_000] {
            let mut all = Vec::new();
            let mut page = PageRequest::first(size);
            loop {
                let read = runtime.list_service_summaries(Default::default(), page).await.unwrap();
                assert!(size == 0 || read.entries.len() <= size as usize);
                all.extend(read.entries);
                match read.continuation_token {
                    None => break,
                    token => page = PageRequest { size, continuation_token: token },
                }
            }
            let names: Vec<_> = all.iter().map(|summary| summary.mesh_name.as_str()).collect();
            assert_eq!(names, ["big", "mesh", "mid/%", "one"], "size {size}");
            for summary in all {
                let of = |state| {
                    let these = truth.iter().filter(|(id, of)| id.mesh_name == summary.mesh_name && **of == state);
                    these.count() as u64
                };
                let counts = (summary.ready_count, summary.error_count, summary.stopped_count);
                assert_eq!(counts, (of(NodeState::Ready), of(NodeState::Error), of(NodeState::Stopped)));
                let lost = u64::from(summary.mesh_name.as_str() == "mesh");
                assert_eq!(summary.total_count, counts.0 + counts.1 + counts.2 + lost);
                assert_eq!(summary.last_updated_at, updated[&summary.mesh_name]);
            }
        }
        let one = ServiceSummaryFilter { mesh_name: Some(MeshName::new("mid/%").unwrap()) };
        let page = runtime.list_service_summaries(one, PageRequest::first(1)).await.unwrap();
        assert_eq!((page.entries.len(), page.entries[0].total_count, page.continuation_token), (1, 7, None));
    });
}

#[test]
fn objects_are_found_by_rare_filters_while_others_come_and_go() {
    run(async {
        let store = store();
        let (runtime, _, node) = with_node(&store, "a").await;
        let rare = StableType::new("Rare").unwrap();
        let mut stood = BTreeSet::new();
        for number in 0..300 {
            let stable_type = if number % 50 == 7 { rare.clone() } else { a_type() };
            let id = actor(&format!("o{number:04}"));
            let ReserveResult::Reserved(claim) = runtime.reserve(id, stable_type.clone(), node.clone()).await.unwrap() else {
                panic!()
            };
            runtime.commit(claim).await.unwrap();
            if stable_type == rare {
                stood.insert(format!("o{number:04}"));
            }
        }
        let filter = ObjectFilter { object_kind: ObjectKind::Actor, stable_type: Some(rare.clone()), mesh_name: None };
        for size in [1, 2, 5, 1_000] {
            let mut seen = Vec::new();
            let mut page = PageRequest::first(size);
            for turn in 0.. {
                let passing = reserved(&runtime, actor(&format!("p{turn}")), &node).await;
                runtime.abort(passing).await.unwrap();
                let read = runtime.list_object_locations(filter.clone(), page).await.unwrap();
                assert!(read.entries.len() <= size as usize);
                seen.extend(read.entries);
                match read.continuation_token {
                    None => break,
                    token => page = PageRequest { size, continuation_token: token },
                }
            }
            let ids: Vec<_> = seen.iter().map(|entry| entry.global_id.as_str().to_owned()).collect();
            assert_eq!(ids.len(), stood.len(), "none twice: {ids:?}");
            assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), stood);
            assert!(seen.iter().all(|entry| entry.state == ObjectState::Ready && entry.stable_type == rare));
        }
        let elsewhere = ObjectFilter { mesh_name: Some(MeshName::new("other").unwrap()), ..filter.clone() };
        assert_eq!(runtime.list_object_locations(elsewhere, PageRequest::default()).await.unwrap().entries, []);
        let spots = ObjectFilter { object_kind: ObjectKind::UserSpot, ..filter };
        assert_eq!(runtime.list_object_locations(spots, PageRequest::default()).await.unwrap().entries, []);
    });
}

#[test]
fn a_wrong_token_or_size_is_an_argument_error() {
    run(async {
        let (runtime, _) = with_meshes(&store()).await;
        let filter = TopologyFilter::default();
        let page = runtime.list_topology(filter.clone(), PageRequest::first(3)).await.unwrap();
        let token = page.continuation_token.unwrap();
        assert!(token.len() <= 8_192);
        let with = |token: &str| PageRequest { size: 3, continuation_token: Some(token.to_owned()) };
        let narrower = TopologyFilter { state: Some(NodeState::Ready), ..filter.clone() };
        let wrong = [
            runtime.list_topology(filter.clone(), with("nothing")).await.unwrap_err(),
            runtime.list_topology(filter.clone(), with("")).await.unwrap_err(),
            runtime.list_topology(narrower, with(&token)).await.unwrap_err(),
            runtime.list_service_summaries(Default::default(), with(&token)).await.unwrap_err(),
        ];
        for error in wrong {
            assert_eq!((error.code(), error.argument_name()), (Code::InvalidArgument, Some("continuationToken")));
        }
        let error = runtime.list_topology(filter.clone(), PageRequest::first(1_001)).await.unwrap_err();
        assert_eq!(error.argument_name(), Some("pageSize"));
        // Another size is the same query, and the same token gives the same again.
        for _ in 0..2 {
            let rest = PageRequest { size: 0, continuation_token: Some(token.clone()) };
            assert_eq!(runtime.list_topology(filter.clone(), rest).await.unwrap().entries.len(), 30);
        }
    });
}

#[test]
fn a_snapshot_that_is_gone_is_unavailable() {
    run(async {
        let store = store();
        let (runtime, _) = with_meshes(&store).await;
        let first = runtime.list_topology(Default::default(), PageRequest::first(3)).await.unwrap();
        for _ in 0..limits::MAX_SNAPSHOTS + 1 {
            store.scan(ScanRequest::new("zlr/", 1)).await.unwrap();
        }
        let rest = PageRequest { size: 3, continuation_token: first.continuation_token };
        assert_eq!(runtime.list_topology(Default::default(), rest).await.unwrap_err().code(), Code::Unavailable);
    });
}

#[test]
fn a_find_is_at_most_two_reads_and_a_page_looks_at_each_owner_once() {
    run(async {
        let store = store();
        let times = LocationRuntimeOptions { renew_interval: std::time::Duration::from_secs(60), ..long() };
        let (runtime, provider) = started(&store, times).await;
        let mut owners = Vec::new();
        for number in 0..5 {
            let (owner, _, node) = with_node(&store, &format!("n{number}")).await;
            for object in 0..10 {
                active(&owner, actor(&format!("{number}-{object}")), &node).await;
            }
            owners.push(owner);
        }
        let reads = || provider.reads.swap(0, Ordering::SeqCst);
        reads();
        find(&runtime, &actor("0-0")).await.unwrap();
        assert_eq!(reads(), 2);
        find(&runtime, &actor("nothing")).await;
        assert_eq!(reads(), 1);
        let filter = ObjectFilter { object_kind: ObjectKind::Actor, stable_type: None, mesh_name: None };
        let page = runtime.list_object_locations(filter, PageRequest::default()).await.unwrap();
        assert_eq!(page.entries.len(), 50);
        assert!(reads() <= 5);
        assert_eq!(provider.scans.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_peer_is_ready_only_if_all_of_it_is() {
    run(async {
        let store = store();
        let (runtime, _, a) = with_node(&store, "a").await;
        let server = Role::new("server").unwrap();
        let ready = |node: NodeId, role: &Role| runtime.is_peer_ready(node, role.clone());
        assert!(ready(a.clone(), &server).await.unwrap());
        assert!(!ready(a.clone(), &Role::new("client").unwrap()).await.unwrap());
        assert!(!ready(node("other", "a"), &server).await.unwrap());
        assert!(!ready(node("mesh", "b"), &server).await.unwrap());
        for state in [NodeState::Discovered, NodeState::Connecting, NodeState::Error, NodeState::Stopped] {
            runtime.publish_node(NodeDescriptor { state, ..described(a.clone()) }).await.unwrap();
            assert!(!ready(a.clone(), &server).await.unwrap(), "{state:?}");
            let page = runtime.list_topology(Default::default(), PageRequest::default()).await.unwrap();
            assert_eq!(page.entries[0].state, state);
        }
        runtime.publish_node(NodeDescriptor { draining: true, ..described(a.clone()) }).await.unwrap();
        assert!(!ready(a.clone(), &server).await.unwrap());
        runtime.publish_node(described(a.clone())).await.unwrap();
        assert!(ready(a.clone(), &server).await.unwrap());
        let (other, _) = started(&store, long()).await;
        assert!(other.is_peer_ready(a.clone(), server.clone()).await.unwrap());
        killed(&store, runtime).await;
        until("lost", || async { !other.is_peer_ready(a.clone(), server.clone()).await.unwrap() }).await;
        let page = other.list_topology(Default::default(), PageRequest::default()).await.unwrap();
        assert_eq!(page.entries[0].state, NodeState::Lost);
    });
}
