//! Answers that get lost, and commands that come late.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::background;
use crate::contract::{Code, Outcome};
use crate::engine::redis::blob::wire::{DELETE, FINISH, RENEW};
use crate::engine::redis::tests::tap::{lost, named, runs};
use crate::engine::redis::transport::Failure;

#[test]
fn a_put_finds_its_own_work_after_a_lost_answer() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        for (name, size) in [("small", 10), ("segments", 3 * SEGMENT), ("large", AT_ONCE + 1)] {
            let rival = store.clone();
            let told = Arc::new(parking_lot::Mutex::new(None));
            let heard = Arc::clone(&told);
            store.tap.once(runs(&FINISH), move |send| async move {
                send.await.unwrap();
                // "With that expiry": others may have moved it meanwhile, at another moment than that of the commit.
                let committed = rival.now().await;
                while rival.now().await == committed {}
                let BlobRenewResult::Renewed { expires_at, store_now } = rival.renew(name, 7 * MINUTE).await.unwrap() else {
                    panic!("the script did not run")
                };
                *heard.lock() = Some((expires_at, store_now));
                Err(lost())
            });
            let (expires, now) = stored(&store.put(name, bytes(size), MINUTE).await.unwrap());
            let (renewed, renewal) = told.lock().unwrap();
            assert_eq!(expires, renewed, "{name}");
            assert!(now < renewal, "{name}: not the commit's own time");
            assert!(store.bytes(name).await.unwrap() == bytes(size));
        }
    });
}

#[test]
fn a_put_whose_finish_never_came_is_finished_by_the_repeat() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for size in WAYS {
        store.tap.once(runs(&FINISH), |_| async { Err(lost()) });
        stored(&run(store.put("x", bytes(size), MINUTE)).unwrap());
        assert!(run(store.bytes("x")).unwrap() == bytes(size));
        run(store.delete("x")).unwrap();
    }
}

#[test]
fn a_put_whose_segment_was_lost_is_put_again_while_there_is_time() {
    let rig = Rig::start(&[]);
    for transactions in [true, false] {
        let store = rig.open(transactions);
        for size in WAYS {
            for place in 0..size.div_ceil(SEGMENT).clamp(1, 3) {
                store.tap.once_after(place, named("SET"), |_| async { Err(lost()) });
                stored(&run(store.put("x", bytes(size), MINUTE)).unwrap());
                assert!(run(store.bytes("x")).unwrap() == bytes(size), "{size} {place}");
                run(store.delete("x")).unwrap();
                until("nothing is left", || rig.keys().is_empty());
            }
        }
    }
}

/// What is cleared away before the last segment has come would stay behind.
#[test]
fn what_a_lost_put_left_is_cleared_away_behind_the_last_segment() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for size in [3 * SEGMENT, AT_ONCE + 1] {
        let (failed, held) = tokio::sync::oneshot::channel::<()>();
        let came = Arc::new(AtomicBool::new(false));
        let comes = Arc::clone(&came);
        // It is on its way, whoever waits for it, and comes when another one has failed for long.
        store.tap.once(named("SET"), |send| {
            let coming = background::handle().spawn(async move {
                let _ = held.await;
                tokio::time::sleep(Duration::from_millis(300)).await;
                let answer = send.await;
                comes.store(true, Ordering::SeqCst);
                answer
            });
            async move { coming.await.unwrap() }
        });
        store.tap.once(named("SET"), |_| async move {
            drop(failed);
            Err(Failure::NotSent(Error::new(Code::OutOfMemory, Outcome::NotApplied, "no memory")))
        });
        let error = run(store.put("x", bytes(size), MINUTE)).unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied), "{error}");
        assert_eq!(store.tap.left(), 0);
        until("the last one has come, and nothing is left", || came.load(Ordering::SeqCst) && rig.keys().is_empty());
    }
}

#[test]
fn a_small_put_that_got_no_answer_at_all_is_not_sent_again() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    store.tap.once(named("SET"), |_| async { Err(lost()) });
    store.tap.once(runs(&FINISH), |_| async { Err(lost()) });
    let error = run(store.put("x", "small", MINUTE)).unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown));
    assert_eq!(store.tap.seen().into_iter().filter(named("SET")).count(), 1);
}

#[test]
fn a_put_that_was_replaced_before_its_repeat_reports_neither_a_conflict_nor_that_it_stored_nothing() {
    let rig = Rig::start(&[]);
    for size in WAYS {
        let store = rig.store();
        for (theirs, last) in [(bytes(size), false), (other(&bytes(size)), true)] {
            let rival = rig.store();
            store.tap.once(runs(&FINISH), move |send| async move {
                send.await.unwrap();
                rival.delete("x").await.unwrap();
                stored(&rival.put("x", theirs, MINUTE).await.unwrap());
                Err(lost())
            });
            let error = run(store.put("x", bytes(size), MINUTE)).unwrap_err();
            assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
            if !last {
                run(store.delete("x")).unwrap();
            }
        }
        // Whereas one that never came meets a conflict.
        store.tap.once(runs(&FINISH), |_| async { Err(lost()) });
        let conflict = run(store.put("x", bytes(size), MINUTE)).unwrap();
        assert!(matches!(conflict, BlobPutResult::Conflict { .. }), "{conflict:?}");
        run(store.delete("x")).unwrap();
        until("nothing is left", || rig.keys().is_empty());
    }
}

#[test]
fn a_call_that_ends_early_says_what_it_may_have_done() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for (size, which, outcome) in
        [(AT_ONCE + 1, "SET", Outcome::NotApplied), (AT_ONCE + 1, "", Outcome::Unknown), (10, "", Outcome::Unknown)]
    {
        let (reached, mut hanging) = tokio::sync::oneshot::channel();
        let hangs = |send: futures_util::future::BoxFuture<'static, _>| async move {
            let _answer: Result<_, _> = send.await;
            let _ = reached.send(());
            std::future::pending().await
        };
        match which {
            "" => store.tap.once(runs(&FINISH), hangs),
            name => store.tap.once(named(name), hangs),
        }
        let call = writing();
        run(async {
            tokio::select! {
                result = store.engine.put(reference("x"), bytes(size).into(), retention(MINUTE), call.clone()) => panic!("{result:?}"),
                _ = &mut hanging => {}
            }
        });
        assert_eq!(call.outcome(), outcome, "{size} {which}");
        run(store.delete("x")).unwrap();
    }
}

#[test]
fn a_repeated_finish_never_brings_back_what_others_deleted() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let rival = rig.store();
    // Nothing is unlinked: only the rules of the scripts stand between the segments and a second life.
    for _ in 0..2 {
        rival.tap.once(named("UNLINK"), |_| async { Err(lost()) });
    }
    store.tap.once(runs(&FINISH), move |send| async move {
        send.await.unwrap();
        rival.delete("x").await.unwrap();
        Err(lost())
    });
    let error = run(store.put("x", bytes(3 * SEGMENT), MINUTE)).unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
    assert!(!run(store.has("x")));
    assert_eq!(store.tap.seen().into_iter().filter(named("SET")).count(), 3, "it was uploaded again");
}

#[test]
fn a_repeated_finish_never_brings_back_what_expired() {
    let rig = Arc::new(Rig::start(&[]));
    let store = rig.store();
    let manifests = Arc::clone(&rig);
    store.tap.once(runs(&FINISH), move |send| async move {
        send.await.unwrap();
        until("the manifest is gone for good", || manifests.keys_like(":b").iter().all(|key| !key.ends_with(":b")));
        Err(lost())
    });
    let error = run(store.put("x", bytes(2 * SEGMENT), 50)).unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
    assert!(!run(store.has("x")));
}

#[test]
fn a_segment_that_comes_a_second_time_changes_nothing() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        stored(&store.put("x", bytes(2 * SEGMENT), 1_000 * MINUTE).await.unwrap());
        // Much later, the first of them comes once more.
        let again = store.tap.seen().into_iter().filter(named("SET")).nth(1).unwrap();
        let before: Vec<u64> = rig.segments().iter().map(|key| rig.expiry(key)).collect();
        let _: redis::Value = rig.send(&again.commands[0]);
        let after: Vec<u64> = rig.segments().iter().map(|key| rig.expiry(key)).collect();
        assert_eq!(before, after);
    });
}

#[test]
fn a_finish_that_comes_twice_finishes_once() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let (expires, _) = stored(&run(store.put("x", "small", MINUTE)).unwrap());
    // Somebody else's client may send again what it got no answer to.
    let call = store.tap.seen().into_iter().find(runs(&FINISH)).unwrap();
    let answer: Vec<Vec<u8>> = rig.send(&call.commands[0]);
    assert_eq!(answer[0], b"stored");
    assert_eq!(answer[2], format!("{:016}", expires.unix_ms()).into_bytes());
}

#[test]
fn a_renewal_finds_its_own_work_after_a_lost_answer() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        for (name, size) in [("small", 10), ("segments", 2 * SEGMENT), ("large", AT_ONCE + 1)] {
            stored(&store.put(name, bytes(size), MINUTE).await.unwrap());
            let rig_time = rig.now();
            store.tap.once(runs(&RENEW), |send| async move {
                send.await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(lost())
            });
            let renewed = store.renew(name, 3 * MINUTE).await.unwrap();
            let BlobRenewResult::Renewed { expires_at, store_now } = renewed else { panic!("{renewed:?}") };
            assert_eq!(expires_at, store_now.plus(retention(3 * MINUTE)));
            assert!(store_now.unix_ms() < rig_time + 20, "{name}: it was renewed a second time");
        }
    });
}

#[test]
fn a_repeated_renewal_undoes_nothing_that_others_did_in_between() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for size in WAYS {
        let rival = store.clone();
        run(async {
            stored(&store.put("x", bytes(size), MINUTE).await.unwrap());
            store.tap.once(runs(&RENEW), move |send| async move {
                send.await.unwrap();
                rival.renew("x", 2 * MINUTE).await.unwrap();
                Err(lost())
            });
            let error = store.renew("x", 30 * MINUTE).await.unwrap_err();
            assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
            let BlobReadResult::Found { expires_at, store_now, .. } = store.read("x").await.unwrap() else { panic!("missing") };
            assert!(expires_at <= store_now.plus(retention(2 * MINUTE)));
            store.delete("x").await.unwrap();
        });
    }
}

#[test]
fn a_repeated_delete_removes_only_what_its_first_attempt_read() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for size in WAYS {
        let rival = store.clone();
        run(async {
            stored(&store.put("x", bytes(size), MINUTE).await.unwrap());
            store.tap.once(runs(&DELETE), move |send| async move {
                send.await.unwrap();
                stored(&rival.put("x", other(&bytes(size)), MINUTE).await.unwrap());
                Err(lost())
            });
            store.delete("x").await.unwrap();
            assert!(store.bytes("x").await.unwrap() == other(&bytes(size)), "the repeat removed another upload");
            store.delete("x").await.unwrap();
        });
    }
}
