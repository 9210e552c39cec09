//! What stores.md says of a Relocation Store.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::contract::{Code, Outcome, PayloadSource, limits};
use crate::engine::redis::blob::wire::FINISH;
use crate::engine::redis::tests::tap::{named, runs};

const SIZES: [usize; 12] = [
    0,
    1,
    20_000,
    SEGMENT - 1,
    SEGMENT,
    SEGMENT + 1,
    2 * SEGMENT,
    2 * SEGMENT + 1,
    AT_ONCE,
    AT_ONCE + 1,
    11 * SEGMENT + 7,
    limits::MAX_BLOB,
];

async fn keeps_the_contract(store: &Store, size: usize) {
    let name = format!("size {size}");
    let payload = bytes(size);
    let (expires_at, store_now) = stored(&store.put(&name, payload.clone(), MINUTE).await.unwrap());
    assert_eq!(expires_at, store_now.plus(retention(MINUTE)));

    let again = store.put(&name, payload.clone(), 2 * MINUTE).await.unwrap();
    assert!(matches!(again, BlobPutResult::AlreadyStored { expires_at: stands, .. } if stands == expires_at), "{again:?}");
    let conflict = store.put(&name, other(&payload), 2 * MINUTE).await.unwrap();
    assert!(matches!(conflict, BlobPutResult::Conflict { .. }), "{conflict:?}");
    let longer = [payload.clone(), vec![0]].concat();
    if longer.len() <= limits::MAX_BLOB {
        assert!(matches!(store.put(&name, longer, MINUTE).await.unwrap(), BlobPutResult::Conflict { .. }));
    }

    let BlobReadResult::Found { bytes, expires_at: told, store_now: seen } = store.read(&name).await.unwrap() else {
        panic!("{size}: missing")
    };
    assert!(bytes == payload, "{size}: other bytes");
    assert_eq!(told, expires_at);
    assert!(seen >= store_now);
    assert!(bytes.is_unique() || bytes.is_empty(), "{size}: a binding would have to copy it");

    let renewed = store.renew(&name, 1_000).await.unwrap();
    let BlobRenewResult::Renewed { expires_at: earlier, store_now } = renewed else { panic!("{renewed:?}") };
    assert_eq!(earlier, store_now.plus(retention(1_000)));
    assert!(earlier < expires_at);
    store.delete(&name).await.unwrap();
    store.delete(&name).await.unwrap();
    assert!(matches!(store.read(&name).await.unwrap(), BlobReadResult::Missing { .. }));
    assert!(matches!(store.renew(&name, 1_000).await.unwrap(), BlobRenewResult::Missing { .. }));
}

#[test]
fn blobs_of_every_size_keep_the_contract() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for size in SIZES {
        run(keeps_the_contract(&store, size));
    }
    until("nothing is left", || rig.keys().is_empty());
}

#[test]
fn through_somebody_elses_client_too_one_segment_at_a_time() {
    let rig = Rig::start(&[]);
    let store = rig.hosted();
    for size in SIZES {
        run(keeps_the_contract(&store, size));
    }
    until("nothing is left", || rig.keys().is_empty());
}

#[test]
fn references_and_prefixes_are_told_apart_byte_by_byte() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let long = "x".repeat(limits::MAX_REFERENCE);
    let names = ["a", "A", "a\0", "{a}", "a:b", "é", "e\u{301}", &long, &long[1..]];
    run(async {
        for name in names {
            stored(&store.put(name, name.as_bytes().to_vec(), MINUTE).await.unwrap());
        }
        for name in names {
            assert!(store.bytes(name).await.unwrap() == name.as_bytes());
        }
    });
    // Every blob has a slot of its own: one tag per reference, before any brace of the reference's.
    let tags: std::collections::BTreeSet<_> = rig.keys().iter().map(|key| key.split('}').next().unwrap().to_owned()).collect();
    assert_eq!(tags.len(), names.len());
}

#[test]
fn a_blob_of_up_to_2_mib_takes_one_round_trip() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    for (segments, size) in [(1, SEGMENT), (4, 4 * SEGMENT), (8, AT_ONCE)] {
        let (sent, seen) = tokio::sync::oneshot::channel::<()>();
        // A segment's answer is held back until the script is on its way, too.
        store.tap.once(named("SET"), |send| async move {
            let answer = send.await;
            seen.await.unwrap();
            answer
        });
        store.tap.once(runs(&FINISH), |send| {
            sent.send(()).unwrap();
            send
        });
        run(async {
            store.tap.seen();
            stored(&store.put(&format!("{segments}"), bytes(size), MINUTE).await.unwrap());
            assert_eq!(store.tap.seen().len(), segments + 1);
        });
    }
    run(async {
        stored(&store.put("small", bytes(SEGMENT), MINUTE).await.unwrap());
        store.tap.seen();
        assert!(store.has("small").await);
        assert_eq!(store.tap.seen().len(), 1);
    });
}

#[test]
fn a_small_blob_whose_segment_comes_behind_its_script_is_stored_all_the_same() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    store.tap.once(named("SET"), |send| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        send.await
    });
    stored(&run(store.put("small", "late", MINUTE)).unwrap());
    assert!(run(store.bytes("small")).unwrap() == b"late");
}

struct Pieces {
    bytes: Bytes,
    asked: AtomicUsize,
}

impl PayloadSource for Pieces {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn range(&self, range: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            assert!(range.len() <= SEGMENT, "a piece of {} bytes", range.len());
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(self.bytes.slice(range))
        }
        .boxed()
    }
}

#[test]
fn a_source_is_asked_piece_by_piece_and_sent_only_if_needed() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    let source = Arc::new(Pieces { bytes: bytes(9 * SEGMENT + 5).into(), asked: AtomicUsize::new(0) });
    run(async {
        stored(&store.put("s", Payload::Source(Arc::clone(&source) as _), MINUTE).await.unwrap());
        assert_eq!(source.asked.swap(0, Ordering::Relaxed), 10);
        assert!(store.bytes("s").await.unwrap() == source.bytes);
        store.tap.seen();

        let again = store.put("s", Payload::Source(Arc::clone(&source) as _), MINUTE).await.unwrap();
        assert!(matches!(again, BlobPutResult::AlreadyStored { .. }));
        let sent: usize = store.tap.seen().iter().flat_map(|batch| &batch.commands).flatten().map(Bytes::len).sum();
        assert!(sent < 1_000, "{sent} bytes were sent for a blob that is stored");

        // Another size needs no digest either.
        source.asked.store(0, Ordering::Relaxed);
        let shorter = Arc::new(Pieces { bytes: source.bytes.slice(1..), asked: AtomicUsize::new(0) });
        let conflict = store.put("s", Payload::Source(Arc::clone(&shorter) as _), MINUTE).await.unwrap();
        assert!(matches!(conflict, BlobPutResult::Conflict { .. }));
        assert_eq!(shorter.asked.load(Ordering::Relaxed), 0);
    });
}

struct Broken;

impl PayloadSource for Broken {
    fn size(&self) -> usize {
        3 * SEGMENT
    }

    fn range(&self, range: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>> {
        let short = if range.start == 0 { range.len() } else { range.len() - 1 };
        async move { Ok(Bytes::from(vec![0; short])) }.boxed()
    }
}

#[test]
fn a_source_that_hands_over_too_little_stores_nothing() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        let error = store.put("b", Payload::Source(Arc::new(Broken)), MINUTE).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied));
        assert!(!store.has("b").await);
    });
    until("what was uploaded is gone", || rig.keys().is_empty());
}

#[test]
fn something_else_under_our_key_is_left_alone() {
    let rig = Rig::start(&[]);
    for store in [rig.store(), rig.hosted()] {
        leaves_alone(&rig, &store);
    }
}

fn leaves_alone(rig: &Rig, store: &Store) {
    // As long as a manifest, too: the first bytes decide. With a 1 in the format's place and an expiry to come, what is not
    // ours looks like a live manifest but for its first bytes, or for the last one that it lacks.
    let [long, newer] = ["TEXT", "ZLB2"].map(|start| format!("{start:0<133}"));
    let alike = format!("TXT1{}", "7".repeat(129));
    let short = format!("ZLB1{}", "7".repeat(128));
    for (name, plant) in [
        ("list", vec!["RPUSH", "", "x"]),
        ("hash", vec!["HSET", "", "x", "y"]),
        ("text", vec!["SET", "", "hello"]),
        ("long text", vec!["SET", "", &long]),
        ("alike", vec!["SET", "", &alike]),
        ("short", vec!["SET", "", &short]),
        ("newer", vec!["SET", "", &newer]),
    ] {
        let key = run(async {
            stored(&store.put(name, "x", MINUTE).await.unwrap());
            rig.keys().into_iter().find(|key| key.ends_with(":b")).unwrap()
        });
        let _: i64 = rig.ask(&["DEL", &key, &format!("{key}0")]);
        let planted: Vec<&str> = plant.iter().map(|word| if word.is_empty() { key.as_str() } else { word }).collect();
        let _: redis::Value = rig.ask(&planted);
        run(async {
            for size in [1, 2 * SEGMENT - 1] {
                let error = store.put(name, bytes(size), MINUTE).await.unwrap_err();
                assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{name}: {error}");
                assert!(!error.message().contains("t:"), "a key in a message");
            }
            assert_eq!(store.renew(name, MINUTE).await.unwrap_err().code(), Code::Incompatible, "{name}");
            assert_eq!(store.delete(name).await.unwrap_err().code(), Code::Incompatible, "{name}");
            match store.read(name).await {
                Ok(BlobReadResult::Missing { .. }) => assert_ne!(name, "newer", "a newer layout is never taken for nothing"),
                Err(error) => assert_eq!((error.code(), name), (Code::Incompatible, "newer")),
                Ok(found) => panic!("{found:?}"),
            }
        });
        until("only what was planted is left", || rig.keys() == std::slice::from_ref(&key));
        let _: i64 = rig.ask(&["DEL", &key]);
    }
}

#[test]
fn a_full_server_refuses_puts_and_allows_what_frees_memory() {
    let rig = Rig::start(&["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"]);
    let store = rig.store();
    run(async {
        stored(&store.put("large", bytes(9 * SEGMENT), MINUTE).await.unwrap());
        stored(&store.put("small", bytes(1_000), MINUTE).await.unwrap());
        let error = store.put("too large", bytes(40 * SEGMENT), MINUTE).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied), "{error}");
        assert!(!store.has("too large").await);
    });
    until("what was uploaded is gone", || rig.segments().len() == 10);
    let _: redis::Value = rig.ask(&["CONFIG", "SET", "maxmemory", "1mb"]);
    run(async {
        let error = store.put("more", "x", MINUTE).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied), "{error}");
        for name in ["large", "small"] {
            assert!(store.has(name).await);
            assert!(matches!(store.renew(name, 2 * MINUTE).await.unwrap(), BlobRenewResult::Renewed { .. }), "{name}");
            store.delete(name).await.unwrap();
        }
    });
    until("all is gone", || rig.keys().is_empty());
}

#[test]
fn a_server_that_takes_no_segment_says_what_to_change() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    store.tap.once(named("SET"), |_| async {
        let message = "Protocol error: invalid bulk length".to_owned();
        Ok(vec![crate::engine::redis::transport::Reply::Error { code: "ERR".to_owned(), message }])
    });
    run(async {
        let error = store.put("x", bytes(2 * SEGMENT), MINUTE).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied));
        assert!(error.message().contains("proto-max-bulk-len"), "{error}");
    });
}
