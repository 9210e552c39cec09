//! Reserve, commit, abort, move, release, take over, attach.

use super::rig::*;
use crate::contract::*;
use crate::runtime::*;

#[test]
fn an_object_is_creating_then_ready_then_missing() {
    run(async {
        let store = store();
        let (runtime, _, node) = with_node(&store, "a").await;
        for kind in ObjectKind::ALL {
            let id = ObjectId { kind, ..actor("x") };
            assert_eq!(find(&runtime, &id).await, None);
            let claim = reserved(&runtime, id.clone(), &node).await;
            let entry = find(&runtime, &id).await.unwrap();
            assert_eq!((entry.state, entry.kind, &entry.node), (ObjectState::Creating, kind, &node));
            assert_eq!(entry.object_generation, claim.object_generation);
            assert!(runtime.is_owner(&claim));
            assert_eq!(runtime.release(claim.clone()).await.unwrap(), ClaimResult::Lost, "it is not active");
            assert!(runtime.is_owner(&claim));
            for _ in 0..2 {
                assert_eq!(runtime.commit(claim.clone()).await.unwrap(), ClaimResult::Done);
                assert_eq!(find(&runtime, &id).await.unwrap().state, ObjectState::Ready);
            }
            assert_eq!(runtime.abort(claim.clone()).await.unwrap(), ClaimResult::Lost, "it is not reserved");
            for _ in 0..2 {
                assert_eq!(runtime.release(claim.clone()).await.unwrap(), ClaimResult::Done);
                assert_eq!(find(&runtime, &id).await, None);
            }
            assert!(!runtime.is_owner(&claim));
            assert_eq!(runtime.commit(claim).await.unwrap(), ClaimResult::Lost);
        }
        runtime.stop().await.unwrap();
    });
}

#[test]
fn an_id_is_taken_once_whoever_asks() {
    run(async {
        let store = store();
        let (first, _, a) = with_node(&store, "a").await;
        let (second, _, b) = with_node(&store, "b").await;
        let attempts: Vec<_> = (0..20)
            .map(|turn| {
                let (runtime, node) = if turn % 2 == 0 { (&first, &a) } else { (&second, &b) };
                tokio::spawn(runtime.reserve(actor("x"), a_type(), node.clone()))
            })
            .collect();
        let mut taken = 0;
        for attempt in attempts {
            taken += usize::from(matches!(attempt.await.unwrap().unwrap(), ReserveResult::Reserved(_)));
        }
        assert_eq!(taken, 1);
    });
}

#[test]
fn spots_share_one_id_space_and_actors_have_their_own() {
    run(async {
        let store = store();
        let (runtime, _, node) = with_node(&store, "a").await;
        let user = ObjectId { kind: ObjectKind::UserSpot, ..actor("x") };
        let instance = ObjectId { kind: ObjectKind::InstanceSpot, ..actor("x") };
        let claim = active(&runtime, user.clone(), &node).await;
        let ReserveResult::Exists(entry) = runtime.reserve(instance.clone(), a_type(), node.clone()).await.unwrap() else {
            panic!()
        };
        assert_eq!(entry.kind, ObjectKind::UserSpot);
        assert_eq!(find(&runtime, &instance).await.unwrap().kind, ObjectKind::UserSpot);
        active(&runtime, actor("x"), &node).await;
        runtime.release(claim.clone()).await.unwrap();
        let again = reserved(&runtime, instance, &node).await;
        assert!(again.object_generation > claim.object_generation);
    });
}

#[test]
fn generations_grow_under_one_id() {
    run(async {
        let store = store();
        let (first, _, a) = with_node(&store, "a").await;
        let (second, _, b) = with_node(&store, "b").await;
        let mut last = 0;
        for turn in 0..20 {
            let (runtime, node) = if turn % 2 == 0 { (&first, &a) } else { (&second, &b) };
            let claim = reserved(runtime, actor("x"), node).await;
            assert!(claim.object_generation > last);
            last = claim.object_generation;
            if turn % 3 == 0 {
                runtime.commit(claim.clone()).await.unwrap();
                assert_eq!(runtime.release(claim).await.unwrap(), ClaimResult::Done);
            } else {
                assert_eq!(runtime.abort(claim).await.unwrap(), ClaimResult::Done);
            }
        }
    });
}

#[test]
fn a_moved_object_keeps_its_generation_and_has_one_owner() {
    run(async {
        let store = store();
        let (first, _, a) = with_node(&store, "a").await;
        let (second, _, b) = with_node(&store, "b").await;
        let claim = active(&first, actor("x"), &a).await;
        assert!(matches!(second.attach(actor("x")).await.unwrap(), TakeResult::Owned(_)));
        assert_eq!(first.move_to(claim.clone(), b.clone()).await.unwrap(), MoveResult::Moved);
        assert!(!first.is_owner(&claim));
        let entry = find(&first, &actor("x")).await.unwrap();
        assert_eq!((entry.state, &entry.node), (ObjectState::Ready, &b));
        let TakeResult::Taken { claim: theirs, committed } = second.attach(actor("x")).await.unwrap() else { panic!() };
        assert!(committed && second.is_owner(&theirs));
        assert_eq!(theirs.object_generation, claim.object_generation);
        assert_eq!(theirs.owner_generation, claim.owner_generation + 1);
        assert_eq!(first.move_to(claim.clone(), b.clone()).await.unwrap(), MoveResult::Lost);
        assert_eq!(first.release(claim).await.unwrap(), ClaimResult::Lost);
        assert!(matches!(first.take_over(actor("x"), a).await.unwrap(), TakeResult::Owned(_)));
        assert_eq!(second.release(theirs).await.unwrap(), ClaimResult::Done);
    });
}

#[test]
fn an_object_moves_between_nodes_of_one_runtime() {
    run(async {
        let store = store();
        let (runtime, _, a) = with_node(&store, "a").await;
        let b = node("other", "b");
        runtime.publish_node(described(b.clone())).await.unwrap();
        let claim = active(&runtime, actor("x"), &a).await;
        assert_eq!(runtime.move_to(claim.clone(), b.clone()).await.unwrap(), MoveResult::Moved);
        let TakeResult::Taken { claim: moved, .. } = runtime.attach(actor("x")).await.unwrap() else { panic!() };
        assert_eq!((&moved.node, runtime.is_owner(&moved), runtime.is_owner(&claim)), (&b, true, false));
    });
}

#[test]
fn nothing_moves_to_a_node_that_is_not_alive() {
    run(async {
        let store = store();
        let (runtime, _, a) = with_node(&store, "a").await;
        let (dead, _, b) = with_node(&store, "b").await;
        let (stopped, _, c) = with_node(&store, "c").await;
        stopped.publish_node(NodeDescriptor { state: NodeState::Stopped, ..described(c.clone()) }).await.unwrap();
        killed(&store, dead).await;
        let claim = active(&runtime, actor("x"), &a).await;
        for target in [b, c, node("mesh", "nobody")] {
            let moved = runtime.move_to(claim.clone(), target).await.unwrap();
            assert_eq!(moved, MoveResult::TargetUnavailable);
            assert!(runtime.is_owner(&claim));
        }
        assert_eq!(runtime.move_to(claim, a).await.unwrap_err().argument_name(), Some("target"));
        let creating = reserved(&runtime, actor("y"), &node("mesh", "a")).await;
        assert_eq!(runtime.move_to(creating, node("mesh", "c")).await.unwrap(), MoveResult::Lost, "it is not active");
    });
}

#[test]
fn what_a_dead_owner_left_is_taken_over_once() {
    run(async {
        let store = store();
        let (dead, _, a) = with_node(&store, "a").await;
        let (first, _, b) = with_node(&store, "b").await;
        let (second, _, c) = with_node(&store, "c").await;
        let claim = active(&dead, actor("x"), &a).await;
        let creating = reserved(&dead, actor("y"), &a).await;
        assert!(matches!(first.take_over(actor("x"), b.clone()).await.unwrap(), TakeResult::Owned(_)));
        assert_eq!(first.take_over(actor("nothing"), b.clone()).await.unwrap(), TakeResult::Missing);
        killed(&store, dead).await;
        until("seen", || async { find(&first, &actor("x")).await.unwrap().state == ObjectState::Unavailable }).await;
        assert_eq!(find(&first, &actor("y")).await.unwrap().state, ObjectState::Creating);
        let (one, two) = tokio::join!(first.take_over(actor("x"), b.clone()), second.take_over(actor("x"), c.clone()));
        let taken: Vec<_> = [one.unwrap(), two.unwrap()]
            .into_iter()
            .filter_map(|result| if let TakeResult::Taken { claim, .. } = result { Some(claim) } else { None })
            .collect();
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].object_generation, claim.object_generation);
        assert_eq!(find(&first, &actor("x")).await.unwrap().state, ObjectState::Ready);
        let TakeResult::Taken { claim: mine, committed } = first.take_over(actor("y"), b).await.unwrap() else { panic!() };
        assert!(!committed);
        assert_eq!(mine.object_generation, creating.object_generation);
        assert_eq!(first.commit(mine).await.unwrap(), ClaimResult::Done);
    });
}

#[test]
fn objects_live_on_nodes_that_are_published() {
    run(async {
        let (runtime, _) = started(&store(), long()).await;
        let nobody = node("mesh", "nobody");
        assert_eq!(runtime.reserve(actor("x"), a_type(), nobody.clone()).await.unwrap_err().argument_name(), Some("node"));
        assert_eq!(runtime.take_over(actor("x"), nobody).await.unwrap_err().argument_name(), Some("node"));
    });
}

#[test]
fn a_node_is_published_by_one_live_runtime() {
    run(async {
        let store = store();
        let (first, _, a) = with_node(&store, "a").await;
        let (second, _) = started(&store, long()).await;
        assert_eq!(second.publish_node(described(a.clone())).await.unwrap(), PublishResult::Occupied);
        second.remove_node(a.clone()).await.unwrap();
        let role = Role::new("server").unwrap();
        assert!(second.is_peer_ready(a.clone(), role.clone()).await.unwrap(), "another's node stays");
        let lost = NodeDescriptor { state: NodeState::Lost, ..described(a.clone()) };
        assert_eq!(first.publish_node(lost).await.unwrap_err().argument_name(), Some("state"));
        killed(&store, first).await;
        assert_eq!(second.publish_node(described(a.clone())).await.unwrap(), PublishResult::Published);
        assert!(second.is_peer_ready(a.clone(), role.clone()).await.unwrap());
        second.remove_node(a.clone()).await.unwrap();
        assert!(!second.is_peer_ready(a, role).await.unwrap());
    });
}

#[test]
fn a_tombstone_lives_for_an_hour() {
    run(async {
        let store = store();
        let (runtime, _, node) = with_node(&store, "a").await;
        let claim = reserved(&runtime, actor("x"), &node).await;
        runtime.abort(claim).await.unwrap();
        let key = keys::object(ObjectKind::Actor, &actor("x").global_id).unwrap();
        let ReadResult::Found(value) = store.read(key).await.unwrap() else { panic!() };
        let left = value.expires_at.unwrap().unix_ms() - value.store_now.unix_ms();
        assert!((3_500_000..=3_600_000).contains(&left), "{left}");
    });
}
