//! Operations of a Location Store.

use zlink_store::{Condition, Error, Key, Mutation, ReadResult, ScanRequest, ScanResult, Version, WriteRequest, WriteResult};
use zlink_test_faults::party::Party;

use super::{Done, Rig, retention, unknown};
use crate::left::nothing_stays;
use crate::rig::{for_parties, turn_to_work};

async fn writes_take_effect_at_most_once(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    rig.sweep("create two", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key(), rig.fresh_key()];
            let mut request = WriteRequest::new().condition(Condition::Missing { key: keys[0].clone() });
            for key in keys.clone() {
                request = request.mutation(Mutation::put_for(key, "new", retention()));
            }
            let written = rig.store.write(request).await;
            put_was(rig, &keys, None, &written, done).await
        })
    })
    .await;
    rig.sweep("compare and set", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key()];
            let expected = rig.put(&keys[0], "old").await;
            let request = WriteRequest::new()
                .condition(Condition::Version { key: keys[0].clone(), expected: expected.clone() })
                .mutation(Mutation::put(keys[0].clone(), "new"));
            let written = rig.store.write(request).await;
            put_was(rig, &keys, Some(expected), &written, done).await
        })
    })
    .await;
    rig.sweep("put", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key()];
            let before = rig.put(&keys[0], "old").await;
            let written = rig.store.write(WriteRequest::new().mutation(Mutation::put(keys[0].clone(), "new"))).await;
            put_was(rig, &keys, Some(before), &written, done).await
        })
    })
    .await;
    rig.sweep("delete two", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key(), rig.fresh_key()];
            rig.put(&keys[1], "old").await;
            let expected = rig.put(&keys[0], "old").await;
            let mut request = WriteRequest::new().condition(Condition::Version { key: keys[0].clone(), expected });
            for key in keys.clone() {
                request = request.mutation(Mutation::delete(key));
            }
            let written = rig.store.write(request).await;
            let there = rig.seen(&keys[0]).await.is_some();
            assert_eq!(there, rig.seen(&keys[1]).await.is_some(), "torn");
            match &written {
                Ok(WriteResult::Applied { .. }) => assert!(!there, "an acknowledged delete was not done"),
                Ok(WriteResult::Conflict { .. }) => panic!("a conflict with itself"),
                Err(_) => assert!(!(there && done == Done::Yes), "{written:?}"),
            }
            unknown(&written)
        })
    })
    .await;
    rig.sweep("check", |_| {
        Box::pin(async move {
            let key = rig.fresh_key();
            let checked = rig.store.write(WriteRequest::new().condition(Condition::Missing { key })).await;
            assert!(!matches!(checked, Ok(WriteResult::Conflict { .. })), "{checked:?}");
            unknown(&checked)
        })
    })
    .await;
    nothing_stays(&rig.server, "p");
    rig.finish("an answer or the line lost at each command of each write").await;
}

/// Puts of "new" that were disturbed were applied once and all together, or not at all and nobody was told that they were.
async fn put_was(rig: &Rig, keys: &[Key], before: Option<Version>, written: &Result<WriteResult, Error>, done: Done) -> bool {
    let mut seen = Vec::new();
    for key in keys {
        seen.push(rig.seen(key).await);
    }
    match written {
        Ok(WriteResult::Applied { put_versions, .. }) => {
            let told: Vec<_> = put_versions.iter().map(|put| Some((b"new".to_vec(), put.version.clone()))).collect();
            assert_eq!(seen, told, "what was acknowledged is not there");
        }
        Ok(WriteResult::Conflict { .. }) => panic!("a conflict with itself"),
        Err(error) => {
            // Of a commit that was made there is a mark, and there was time to look.
            assert_ne!(done, Done::Yes, "the commit was made, and nobody looked: {error:?}");
            let old = before.map(|version| (b"old".to_vec(), version));
            let all_old = seen.iter().all(|seen| *seen == old);
            let all_new = seen.iter().all(|seen| seen.as_ref().is_some_and(|(bytes, _)| bytes == b"new"));
            assert!(all_old || all_new, "{seen:?}");
        }
    }
    unknown(written)
}

async fn reads_and_scans_are_repeated(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    for number in 0..5 {
        rig.put(&Key::new(format!("s{number}")).expect("a legal key"), "value").await;
    }
    rig.sweep("ping", |_| {
        Box::pin(async move {
            rig.store.ping().await.expect("a ping");
            false
        })
    })
    .await;
    rig.sweep("read", |_| {
        Box::pin(async move {
            let read = rig.store.read(Key::new("s3").expect("a legal key")).await.expect("a read");
            assert!(matches!(read, ReadResult::Found(_)), "{read:?}");
            false
        })
    })
    .await;
    rig.sweep("scan", |_| {
        Box::pin(async move {
            let mut request = ScanRequest::new("s", 2);
            let mut keys = Vec::new();
            loop {
                let ScanResult::Page(page) = rig.store.scan(request).await.expect("a page") else { panic!("a scan expired") };
                keys.extend(page.items.into_iter().map(|item| item.key.as_str().to_owned()));
                let Some(cursor) = page.next_cursor else { break };
                request = ScanRequest::new("s", 2).after(cursor);
            }
            assert_eq!(keys, ["s0", "s1", "s2", "s3", "s4"]);
            false
        })
    })
    .await;
    nothing_stays(&rig.server, "p");
    rig.finish("an answer or the line lost at each command of each read").await;
}

for_parties!([core Core, node Node, java Java] [writes_take_effect_at_most_once, reads_and_scans_are_repeated]);
