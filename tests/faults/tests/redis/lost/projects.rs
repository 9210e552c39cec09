//! Operations of state and locks.

use zlink_test_faults::party::{Entry, Party, Set};

use super::{Done, Rig, unknown};
use crate::left::each_value_has_its_expiry;
use crate::rig::{for_parties, turn_to_work};

const LEASE_MS: u64 = 30_000;

async fn projects_take_effect_at_most_once(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    for (name, expected) in [("set", None), ("set of nothing", Some(0)), ("compare and set of an entry", Some(1))] {
        rig.sweep(name, |done| {
            Box::pin(async move {
                let key = rig.fresh();
                let (state, seer) = (rig.project.state(), rig.project_seer.state());
                let mut before = None;
                if expected != Some(0) {
                    assert_eq!(seer.set(&key, 1, Some(0)).await.expect("a set beside the fault"), Set::Done(Some(1)));
                    before = Some(Entry { value: 1, version: 1 });
                }
                let set = state.set(&key, 2, expected).await;
                let seen = seer.get(&key).await.expect("a look beside the fault");
                let after = Some(Entry { value: 2, version: before.map_or(1, |_| 2) });
                match &set {
                    Ok(set) => assert_eq!((*set, seen), (Set::Done(after.map(|entry| entry.version)), after)),
                    Err(error) => {
                        assert_ne!(done, Done::Yes, "the entry was set, and nobody looked: {error:?}");
                        assert!(seen == before || seen == after, "{seen:?}");
                    }
                }
                unknown(&set)
            })
        })
        .await;
    }
    rig.sweep("delete of an entry", |done| {
        Box::pin(async move {
            let key = rig.fresh();
            let (state, seer) = (rig.project.state(), rig.project_seer.state());
            assert_eq!(seer.set(&key, 1, Some(0)).await.expect("a set beside the fault"), Set::Done(Some(1)));
            let deleted = state.delete(&key, Some(1)).await;
            let there = seer.get(&key).await.expect("a look beside the fault").is_some();
            match &deleted {
                Ok(deleted) => assert_eq!((*deleted, there), (Set::Done(None), false)),
                Err(_) => assert!(!(there && done == Done::Yes), "{deleted:?}"),
            }
            unknown(&deleted)
        })
    })
    .await;
    rig.sweep("acquire and release", |_| {
        Box::pin(async move {
            let key = rig.fresh();
            let locks = rig.project.locks();
            let acquired = locks.acquire(&key, 0, LEASE_MS).await;
            let mut token = 0;
            if let Ok(grant) = &acquired {
                let grant = grant.as_ref().expect("nobody else wants this lock");
                token = grant.token;
                assert!(grant.release().await.expect("a release is made sure of"), "a lease is lost");
            }
            // Whatever became of it, nobody holds the lock any more.
            let next = rig.project_seer.locks().acquire(&key, 5_000, LEASE_MS).await.expect("an acquire beside the fault");
            let next = next.expect("the lock is free");
            assert!(next.token > token, "token {} after {token}", next.token);
            assert!(next.release().await.expect("a release beside the fault"), "a lease is lost");
            unknown(&acquired)
        })
    })
    .await;
    each_value_has_its_expiry(&rig.server);
    rig.finish("an answer or the line lost at each command of state and locks").await;
}

for_parties!([core Core, node Node, java Java] [projects_take_effect_at_most_once]);
