//! Callers that meet each other.

use super::*;
use crate::call::BLOBS;
use crate::contract::{Code, Outcome};
use crate::engine::redis::blob::wire::FINISH;
use crate::engine::redis::tests::tap::{named, runs};

#[test]
fn of_two_that_put_the_same_bytes_one_stores_and_one_finds_them() {
    let rig = Rig::start(&[]);
    for size in WAYS {
        let (store, rival) = (rig.store(), rig.store());
        run(async {
            store.tap.once(runs(&FINISH), move |send| async move {
                stored(&rival.put("x", bytes(size), MINUTE).await.unwrap());
                send.await
            });
            let second = store.put("x", bytes(size), 9 * MINUTE).await.unwrap();
            assert!(matches!(second, BlobPutResult::AlreadyStored { .. }), "{second:?}");
            assert!(store.bytes("x").await.unwrap() == bytes(size));
            store.delete("x").await.unwrap();
        });
        until("the loser's segments are gone", || rig.keys().is_empty());
    }
}

/// A segment that hangs, on a line that has become silent say, holds up nobody once the script has said what became of the put;
/// and what it leaves when it comes after all goes too.
#[test]
fn a_put_ends_with_the_answer_of_its_script() {
    let rig = Rig::start(&[]);
    let (store, rival) = (rig.store(), rig.store());
    run(async {
        stored(&rival.put("x", other(&bytes(3 * SEGMENT)), MINUTE).await.unwrap());
        for place in 0..3 {
            let (come, held) = tokio::sync::oneshot::channel::<()>();
            store.tap.once_after(place, named("SET"), |send| async move {
                let _ = held.await;
                send.await
            });
            let put = store.put("x", bytes(3 * SEGMENT), MINUTE);
            let put = tokio::time::timeout(Duration::from_secs(10), put).await.expect("the script has answered").unwrap();
            assert!(matches!(put, BlobPutResult::Conflict { .. }), "{put:?}");
            come.send(()).expect("somebody sees to what is still under way");
            until("only the rival's is left", || rig.keys().len() == 4);
        }
    });
}

#[test]
fn of_many_that_put_different_bytes_one_wins() {
    let rig = Rig::start(&[]);
    let stores: Vec<Store> = (0..4).map(|_| rig.store()).collect();
    for round in 0..5 {
        let name = format!("r{round}");
        run(async {
            let puts = stores.iter().enumerate().flat_map(|(who, store)| {
                let payload = [vec![u8::try_from(who).unwrap()], bytes(2 * SEGMENT)].concat();
                [store.put(&name, payload.clone(), MINUTE), store.put(&name, payload, MINUTE)]
            });
            let results = futures_util::future::join_all(puts).await;
            let results: Vec<BlobPutResult> = results.into_iter().map(Result::unwrap).collect();
            let count = |which: fn(&BlobPutResult) -> bool| results.iter().filter(|result| which(result)).count();
            assert_eq!(count(|result| matches!(result, BlobPutResult::Stored { .. })), 1, "{results:?}");
            assert_eq!(count(|result| matches!(result, BlobPutResult::AlreadyStored { .. })), 1, "{results:?}");
            let winner = results.iter().position(|result| matches!(result, BlobPutResult::Stored { .. })).unwrap() / 2;
            assert_eq!(usize::from(stores[0].bytes(&name).await.unwrap()[0]), winner);
            stores[0].delete(&name).await.unwrap();
        });
    }
    until("the losers' segments are gone", || rig.keys().is_empty());
}

#[test]
fn a_read_beside_a_delete_is_whole_or_missing() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let payload = bytes(40 * SEGMENT);
    // At each place of the read, with and without unlinking.
    for (place, unlinks) in [(1, true), (3, true), (20, true), (39, true), (1, false), (20, false)] {
        let rival = rig.store();
        if !unlinks {
            for _ in 0..20 {
                rival.tap.once(named("UNLINK"), |_| std::future::pending());
            }
        }
        run(async {
            stored(&store.put("x", payload.clone(), MINUTE).await.unwrap());
            at_get(&store, place, async move { rival.delete("x").await.unwrap() });
            match store.bytes("x").await {
                Some(read) => assert!(read == payload, "{place}: torn"),
                None => assert!(unlinks, "{place}: who is reading has the time to finish"),
            }
            assert!(!store.has("x").await);
        });
        let _: redis::Value = rig.ask(&["FLUSHALL"]);
    }
}

#[test]
fn a_read_that_misses_a_segment_of_an_upload_that_is_gone_starts_over() {
    let rig = Rig::start(&[]);
    let (store, rival) = (rig.store(), rig.store());
    let (mine, theirs) = (bytes(10 * SEGMENT), other(&bytes(12 * SEGMENT)));
    let replaced = theirs.clone();
    let server = rig.server.url();
    run(async {
        stored(&store.put("x", mine, MINUTE).await.unwrap());
        at_get(&store, 5, async move {
            rival.delete("x").await.unwrap();
            stored(&rival.put("x", replaced, MINUTE).await.unwrap());
            let mut connection = redis::Client::open(server).unwrap().get_connection().unwrap();
            until("the first upload is unlinked", || {
                let keys: Vec<String> = redis::cmd("KEYS").arg("*:bs:*").query(&mut connection).unwrap();
                keys.len() == 11
            });
        });
        assert!(store.bytes("x").await.unwrap() == theirs);
    });
}

#[test]
fn a_read_that_misses_a_segment_of_a_live_upload_says_so() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        stored(&store.put("x", bytes(3 * SEGMENT), MINUTE).await.unwrap());
        for victim in ["b0", "bs"] {
            let victim = rig.keys_like(victim).pop().unwrap();
            let _: i64 = rig.ask(&["DEL", &victim]);
            let error = store.read("x").await.unwrap_err();
            assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied));
            let error = store.renew("x", MINUTE).await.unwrap_err();
            assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied));
            // It can still be got rid of.
            store.delete("x").await.unwrap();
            stored(&store.put("x", bytes(3 * SEGMENT), MINUTE).await.unwrap());
        }
    });
}

#[test]
fn something_else_in_place_of_a_segment_is_a_segment_that_is_gone() {
    let rig = Rig::start(&[]);
    for store in [rig.store(), rig.hosted()] {
        run(async {
            for (size, segment) in [(10, "b0"), (3 * SEGMENT, "b0"), (3 * SEGMENT, "bs")] {
                stored(&store.put("x", bytes(size), MINUTE).await.unwrap());
                let victim = rig.keys_like(segment).pop().unwrap();
                let _: i64 = rig.ask(&["DEL", &victim]);
                let _: i64 = rig.ask(&["RPUSH", &victim, "x"]);
                let error = store.read("x").await.unwrap_err();
                assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied), "{size} {segment}: {error}");
                store.delete("x").await.unwrap();
                let _: i64 = rig.ask(&["DEL", &victim]);
            }
        });
    }
}

#[test]
fn a_read_through_somebody_elses_client_never_mixes_two_uploads() {
    let rig = Rig::start(&[]);
    let store = rig.hosted();
    for (mine, theirs) in [(20_000, 20_000), (3 * SEGMENT, 3 * SEGMENT), (20_000, 2 * SEGMENT), (2 * SEGMENT, 20_000)] {
        let rival = rig.store();
        // The first upload's other segments stay for a while: only the names tell them apart.
        rival.tap.once(named("UNLINK"), |_| std::future::pending());
        let (mine, theirs) = (bytes(mine), other(&bytes(theirs)));
        let replaced = theirs.clone();
        run(async {
            stored(&store.put("x", mine, MINUTE).await.unwrap());
            // After the manifest was read, and before its first segment is.
            store.tap.once(named("GET"), move |send| async move {
                rival.delete("x").await.unwrap();
                stored(&rival.put("x", replaced, 9 * MINUTE).await.unwrap());
                send.await
            });
            let BlobReadResult::Found { bytes, expires_at, store_now } = store.read("x").await.unwrap() else {
                panic!("missing")
            };
            assert!(bytes == theirs, "two uploads were mixed");
            assert!(expires_at > store_now.plus(retention(5 * MINUTE)), "the bytes of one upload, the expiry of the other");
        });
        let _: redis::Value = rig.ask(&["FLUSHALL"]);
    }
}

#[test]
fn a_read_beside_renewals_is_whole() {
    let rig = Rig::start(&[]);
    let (store, rival) = (rig.store(), rig.store());
    let payload = bytes(20 * SEGMENT);
    run(async {
        stored(&store.put("x", payload.clone(), MINUTE).await.unwrap());
        for place in [1, 10, 19] {
            let rival = rival.clone();
            at_get(&store, place, async move {
                rival.renew("x", 2 * MINUTE).await.unwrap();
            });
            assert!(store.bytes("x").await.unwrap() == payload);
        }
        // An expiry beside a read: whole or missing too.
        let short = rival.clone();
        at_get(&store, 10, async move {
            let BlobRenewResult::Renewed { expires_at, .. } = short.renew("x", 1).await.unwrap() else { panic!("missing") };
            // Not by reading: that waits for room, behind a test that waits for all of it, which the outer read has a part of.
            while short.now().await < expires_at {}
        });
        assert!(store.bytes("x").await.is_none_or(|read| read == payload));
        assert!(!store.has("x").await);
    });
}

#[test]
fn a_read_that_finds_no_room_waits_for_it() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let payload = bytes(10 * SEGMENT);
    run(async {
        stored(&store.put("x", payload.clone(), MINUTE).await.unwrap());
        for _ in 0..60 {
            store.tap.seen();
            // All but enough for one segment, as if large blobs were under way.
            let others = BLOBS.room(128 * 1_024 * 1_024 - 2 * SEGMENT).await.unwrap();
            let mut reading = std::pin::pin!(store.bytes("x"));
            let waiting = async {
                while !store.tap.seen().iter().any(|batch| batch.atomic) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let met = tokio::select! {
                _ = &mut reading => panic!("it did not wait for room"),
                () = waiting => true,
                // The room is the whole process's: a test beside this one may stand before us, and wants all that we hold.
                () = tokio::time::sleep(Duration::from_secs(1)) => false,
            };
            drop(others);
            assert!(reading.await.unwrap() == payload);
            if met {
                return;
            }
        }
        panic!("others always stood before us");
    });
}

#[test]
fn two_renewals_at_once_both_take_place() {
    let rig = Rig::start(&[]);
    let stores: Vec<Store> = (0..4).map(|_| rig.store()).collect();
    run(async {
        stored(&stores[0].put("x", bytes(2 * SEGMENT), MINUTE).await.unwrap());
        let renewals = stores.iter().flat_map(|store| (0..8).map(|_| store.renew("x", 2 * MINUTE)));
        for renewed in futures_util::future::join_all(renewals).await {
            assert!(matches!(renewed.unwrap(), BlobRenewResult::Renewed { .. }));
        }
        assert!(stores[0].bytes("x").await.unwrap() == bytes(2 * SEGMENT));
    });
}

/// Has something happen before the segment at `place` of the next read is fetched.
fn at_get(store: &Store, place: usize, what: impl Future<Output = ()> + Send + 'static) {
    let suffix = format!(":{place}");
    let which = move |batch: &crate::engine::redis::transport::Batch| {
        let command = &batch.commands[0];
        command[0] == "GET" && command[1].ends_with(suffix.as_bytes())
    };
    store.tap.once(which, |send| async move {
        what.await;
        send.await
    });
}
