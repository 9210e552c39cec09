//! When things expire, and what is left over.

use super::*;
use crate::contract::limits;
use crate::engine::redis::blob::wire::{DELETE, FINISH, RENEW};
use crate::engine::redis::tests::tap::{lost, named, runs};

/// How long after a minute something may still be seen for want of a finer clock.
const SLACK: u64 = 1_000;

#[test]
fn a_segment_of_an_unfinished_upload_is_gone_within_a_minute_after_the_timeout() {
    let rig = Arc::new(Rig::start(&[]));
    let store = rig.store();
    let began = rig.now();
    let looking = Arc::clone(&rig);
    store.tap.once(runs(&FINISH), move |_| async move {
        let keys = looking.keys();
        assert_eq!(keys.len(), 10, "{keys:?}");
        let timeout = began + u64::try_from(TIMEOUT.as_millis()).unwrap();
        for key in keys {
            let expiry = looking.expiry(&key);
            assert!(expiry >= timeout + 45_000, "{key} goes too early for a finish at the last moment");
            assert!(expiry <= timeout + MINUTE, "{key} stays too long");
        }
        // Cut off half-way: nothing else was sent.
        Err(lost())
    });
    let (looked, mut seen) = tokio::sync::oneshot::channel::<()>();
    store.tap.once(runs(&FINISH), |_| {
        let _ = looked.send(());
        std::future::pending()
    });
    run(async {
        // A caller that goes away leaves the upload where it is.
        tokio::select! {
            result = store.put("x", bytes(9 * SEGMENT + 1), 1_000_000_000) => panic!("{result:?}"),
            _ = &mut seen => {}
        }
        assert!(!store.has("x").await);
    });
    let keys = rig.keys();
    assert_eq!(keys.len(), 10);
    let latest = keys.iter().map(|key| rig.expiry(key)).max().unwrap();
    assert!(latest <= began + u64::try_from(TIMEOUT.as_millis()).unwrap() + MINUTE);
}

#[test]
fn a_segment_that_was_stuck_on_its_way_is_not_kept_the_longer() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let (go, gate) = tokio::sync::oneshot::channel::<()>();
    store.tap.once(named("SET"), |send| async move {
        let _ = gate.await;
        send.await
    });
    run(async {
        let put = store.put("x", bytes(9 * SEGMENT - 1), MINUTE);
        let other = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let _ = go.send(());
        };
        store.tap.once(runs(&FINISH), |_| async {
            Err(crate::engine::redis::transport::Failure::NotSent(crate::contract::Error::closed()))
        });
        store.tap.once(named("UNLINK"), |_| async { Err(lost()) });
        let (put, ()) = tokio::join!(put, other);
        put.unwrap_err();
    });
    let expiries: Vec<u64> = rig.keys().iter().map(|key| rig.expiry(key)).collect();
    assert_eq!(expiries.len(), 9);
    assert!(expiries.iter().all(|expiry| *expiry == expiries[0]), "the server's time says, not when the command came");
}

#[test]
fn a_finished_blob_outlives_no_segment() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for (size, parts) in [(1, 1), (4 * SEGMENT, 4)] {
        for ms in [5_000, limits::MAX_RETENTION_MS, 30_000] {
            let expires = run(async {
                match store.renew("x", ms).await.unwrap() {
                    BlobRenewResult::Renewed { expires_at, .. } => expires_at,
                    BlobRenewResult::Missing { .. } => stored(&store.put("x", bytes(size), ms).await.unwrap()).0,
                }
            });
            if ms == limits::MAX_RETENTION_MS {
                assert_eq!(expires.unix_ms(), limits::MAX_TIME_MS);
            }
            let BlobReadResult::Found { expires_at, .. } = run(store.read("x")).unwrap() else { panic!("missing") };
            assert_eq!(expires_at, expires);
            let segments = rig.segments();
            assert_eq!(segments.len(), parts);
            for segment in segments {
                assert_eq!(rig.expiry(&segment), expires.unix_ms() + MINUTE);
            }
            let manifest = rig.keys().into_iter().find(|key| key.ends_with(":b")).unwrap();
            let end = rig.expiry(&manifest);
            assert!((expires.unix_ms()..=expires.unix_ms() + SLACK).contains(&end));
        }
        run(store.delete("x")).unwrap();
        until("it is gone", || rig.keys().is_empty());
    }
}

#[test]
fn an_expired_reference_is_missing_at_once_and_may_be_put_again() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for size in [1, 2 * SEGMENT] {
        let (expires, _) = stored(&run(store.put("x", bytes(size), 300)).unwrap());
        loop {
            let read = run(store.read("x")).unwrap();
            match read {
                BlobReadResult::Found { store_now, .. } => assert!(store_now < expires, "{read:?} after {expires:?}"),
                BlobReadResult::Missing { store_now } => {
                    assert!(store_now >= expires, "{read:?} before {expires:?}");
                    break;
                }
            }
        }
        // The manifest is still there, which nobody may notice.
        assert_eq!(rig.keys().iter().filter(|key| key.ends_with(":b")).count(), 1);
        assert!(matches!(run(store.renew("x", MINUTE)).unwrap(), BlobRenewResult::Missing { .. }));
        run(store.delete("x")).unwrap();
        stored(&run(store.put("x", other(&bytes(size)), MINUTE)).unwrap());
        assert!(run(store.bytes("x")).unwrap() == other(&bytes(size)));
        // What the expired upload left goes within a minute of its expiry.
        let late = rig.segments().iter().filter(|key| rig.expiry(key) <= expires.unix_ms() + MINUTE).count();
        assert_eq!((rig.segments().len(), late), if size == 1 { (1, 0) } else { (3, 1) });
        run(store.delete("x")).unwrap();
    }
}

#[test]
fn retention_counts_from_the_commit() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let (held, mut holding) = tokio::sync::oneshot::channel();
    store.tap.once(runs(&FINISH), |send| async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let _ = held.send(());
        send.await
    });
    let began = rig.now();
    let (expires, now) = stored(&run(store.put("x", bytes(2 * SEGMENT), MINUTE)).unwrap());
    assert!(holding.try_recv().is_ok());
    assert!(now.unix_ms() >= began + 200);
    assert_eq!(expires, now.plus(retention(MINUTE)));
}

#[test]
fn a_renewal_moves_manifest_and_segments_in_one_script() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        stored(&store.put("x", bytes(3 * SEGMENT), MINUTE).await.unwrap());
        store.tap.seen();
        store.renew("x", 2 * MINUTE).await.unwrap();
    });
    let calls: Vec<_> = store.tap.seen().into_iter().filter(runs(&RENEW)).collect();
    let [call] = &calls[..] else { panic!("{} calls", calls.len()) };
    assert_eq!(call.commands.len(), 1);
    for key in rig.keys() {
        assert!(call.commands[0].iter().any(|arg| arg == key.as_bytes()), "{key} is not declared");
    }
}

#[test]
fn a_renewal_that_meets_another_upload_leaves_it_whole() {
    let rig = Rig::start(&[]);
    let (store, rival) = (rig.store(), rig.store());
    let theirs = other(&bytes(2 * SEGMENT));
    let swapped = theirs.clone();
    run(async {
        stored(&store.put("x", bytes(3 * SEGMENT), MINUTE).await.unwrap());
        store.tap.once(runs(&RENEW), move |send| async move {
            rival.delete("x").await.unwrap();
            stored(&rival.put("x", swapped, MINUTE).await.unwrap());
            send.await
        });
        let renewed = store.renew("x", 10 * MINUTE).await.unwrap();
        let BlobRenewResult::Renewed { expires_at, .. } = renewed else { panic!("{renewed:?}") };
        assert!(store.bytes("x").await.unwrap() == theirs);
        until("the first upload is gone", || rig.segments().len() == 2);
        for segment in rig.segments() {
            assert_eq!(rig.expiry(&segment), expires_at.unix_ms() + MINUTE);
        }
    });
}

#[test]
fn what_a_delete_leaves_is_gone_within_a_minute() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    store.tap.once(named("UNLINK"), |_| async { Err(lost()) });
    run(async {
        stored(&store.put("x", bytes(3 * SEGMENT), 1_000_000_000).await.unwrap());
        store.delete("x").await.unwrap();
        assert!(!store.has("x").await);
    });
    let left = rig.keys();
    assert_eq!(left.len(), 2, "{left:?}");
    let now = rig.now();
    for key in left {
        assert!(rig.expiry(&key) <= now + MINUTE, "{key}");
    }
    assert_eq!(store.tap.seen().into_iter().filter(runs(&DELETE)).count(), 1);
}

#[test]
fn what_an_upload_leaves_that_lost_is_gone_within_a_minute() {
    let rig = Rig::start(&[]);
    let (store, rival) = (rig.store(), rig.store());
    run(async {
        store.tap.once(runs(&FINISH), move |send| async move {
            stored(&rival.put("x", bytes(1), MINUTE).await.unwrap());
            send.await
        });
        store.tap.once(named("UNLINK"), |_| async { Err(lost()) });
        let conflict = store.put("x", bytes(3 * SEGMENT), 1_000_000_000).await.unwrap();
        assert!(matches!(conflict, BlobPutResult::Conflict { .. }));
    });
    let (left, now) = (rig.keys_like(":bs:"), rig.now());
    assert_eq!(left.len(), 2, "the first segment goes at once, so that nobody finishes this upload later");
    assert!(rig.keys_like(":bu:").is_empty());
    for key in left {
        assert!(rig.expiry(&key) <= now + MINUTE, "{key}");
    }
}

#[test]
fn at_no_moment_is_there_a_key_without_expiry() {
    let rig = Arc::new(Rig::start(&[]));
    let store = rig.store();
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let watcher = {
        let (rig, over) = (Arc::clone(&rig), Arc::clone(&over));
        std::thread::spawn(move || {
            let mut connection = redis::Client::open(rig.server.url()).unwrap().get_connection().unwrap();
            let script = "local all = redis.call('KEYS', '*') local bad = {}
                for _, key in ipairs(all) do if redis.call('PTTL', key) == -1 then bad[#bad + 1] = key end end return bad";
            let mut looks = 0;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let bad: Vec<String> = redis::cmd("EVAL").arg(script).arg(0).query(&mut connection).unwrap();
                assert!(bad.is_empty(), "{bad:?}");
                looks += 1;
            }
            looks
        })
    };
    run(async {
        let mut random = 7_u64;
        for round in 0..150_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let name = format!("n{}", round % 5);
            let size = if random & 1 << 40 == 0 { 100 } else { 4 * SEGMENT };
            let work = async {
                let _ = store.put(&name, bytes(size), 5_000).await;
                let _ = store.renew(&name, 6_000).await;
                let _ = store.delete(&name).await;
            };
            // Cancelled at a random moment.
            let _ = tokio::time::timeout(Duration::from_micros((random >> 33) % 8_000), work).await;
        }
    });
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 10);
    let now = rig.now();
    for key in rig.keys() {
        let timeout = u64::try_from(TIMEOUT.as_millis()).unwrap();
        assert!(rig.expiry(&key) <= now + timeout + MINUTE, "{key}");
    }
}

#[test]
fn what_expires_before_a_renewal_comes_is_missing() {
    let rig = Arc::new(Rig::start(&[]));
    let store = rig.store();
    for size in [10, 2 * SEGMENT] {
        let (expires, _) = stored(&run(store.put("x", bytes(size), 300)).unwrap());
        // Its keys outlive it a little.
        let looking = Arc::clone(&rig);
        store.tap.before(runs(&RENEW), async move {
            while looking.now() < expires.unix_ms() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(looking.keys().iter().any(|key| key.ends_with(":b")), "the machine is too slow for this test");
        });
        let renewed = run(store.renew("x", MINUTE)).unwrap();
        assert!(matches!(renewed, BlobRenewResult::Missing { .. }), "{renewed:?}");
        assert!(!run(store.has("x")));
    }
}
