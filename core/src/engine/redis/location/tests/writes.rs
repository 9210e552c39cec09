//! Writes: all or nothing beside foreign data, in groups, and after answers that did not come.

use tokio::task::JoinHandle;

use super::super::commit::{COMMIT, PUT};
use super::super::writes::WIDTH;
use super::rig::*;
use crate::LocationStore;
use crate::contract::*;
use crate::engine::redis::tests::tap::{lost, named, runs};

fn put_request(name: &str) -> WriteRequest {
    WriteRequest::new().mutation(Mutation::put(key(name), "new"))
}

fn incompatible<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{error:?}");
    assert!(!error.message().contains("{p}"), "no engine key in a message");
}

/// A write of one put, one that also deletes, and one that only deletes.
async fn all_writes_are_incompatible(rig: &Rig) {
    incompatible(rig.store.write(put_request("a")).await);
    incompatible(rig.store.write(put_request("a").mutation(Mutation::delete(key("b")))).await);
    incompatible(rig.store.write(WriteRequest::new().mutation(Mutation::delete(key("a")))).await);
}

#[tokio::test]
async fn a_foreign_record_is_missing_for_readers_and_stops_writers() {
    for plant in [
        "HSET {p}:r:a field value",
        "SET {p}:r:a short",
        "SET {p}:r:a a-text-of-another-program-and-long-enough",
        "SADD {p}:r:a member",
    ] {
        let rig = Rig::new().await;
        rig.put("b", "old").await;
        rig.raw::<()>(plant).await;
        rig.raw::<()>("ZADD {p}:i 0 a").await;
        assert_eq!(rig.get("a").await, None);
        assert_eq!(shown(&page(&rig.store, ScanRequest::new("", 10)).await.unwrap()), [("b".into(), "old".into())]);
        all_writes_are_incompatible(&rig).await;
        incompatible(rig.store.write(WriteRequest::new().condition(Condition::Missing { key: key("a") })).await);
        assert_eq!(rig.get("b").await.as_deref(), Some("old"));
        assert_eq!(rig.raw::<u64>("EXISTS {p}:r:a").await, 1, "it is not touched");
    }
}

#[tokio::test]
async fn a_write_with_one_foreign_record_changes_nothing() {
    let rig = Rig::new().await;
    rig.raw::<()>("HSET {p}:r:1500 field value").await;
    let mut request = WriteRequest::new();
    for at in 0..limits::MAX_WRITE_KEYS {
        request = request.mutation(Mutation::put(key(&at.to_string()), vec![1; 1_000]));
    }
    incompatible(rig.store.write(request).await);
    let keys: Vec<String> = rig.raw("KEYS {p}:*").await;
    assert_eq!(keys, ["{p}:r:1500"]);
}

#[tokio::test]
async fn foreign_data_in_place_of_the_stores_own_stops_everything_before_it_begins() {
    // Key, and what reads it besides writes.
    for (place, reads, scans) in
        [("f", true, true), ("n", false, false), ("i", false, true), ("x", false, false), ("S", false, true)]
    {
        let rig = Rig::new().await;
        for at in 0..100 {
            rig.put(&format!("k{at:02}"), "old").await;
        }
        rig.raw::<()>(&format!("DEL {{p}}:{place}")).await;
        rig.raw::<()>(&format!("HSET {{p}}:{place} field value")).await;
        let before: Vec<String> = rig.raw("KEYS {p}:r:*").await;
        incompatible(rig.store.write(put_request("a")).await);
        incompatible(rig.store.write(put_request("a").mutation(Mutation::delete(key("k01")))).await);
        if place != "n" {
            incompatible(rig.store.write(WriteRequest::new().mutation(Mutation::delete(key("k01")))).await);
        }
        if reads {
            incompatible(rig.store.read(key("k01")).await);
        } else {
            assert!(rig.get("k01").await.is_some());
        }
        let scan = rig.store.scan(ScanRequest::new("", 10)).await;
        if scans || place == "n" {
            incompatible(scan);
        } else {
            scan.unwrap();
        }
        let after: Vec<String> = rig.raw("KEYS {p}:r:*").await;
        assert_eq!(before.len(), after.len(), "{place}");
        assert_eq!(rig.raw::<String>(&format!("TYPE {{p}}:{place}")).await, "hash");
    }
}

#[tokio::test]
async fn a_foreign_undo_key_stops_the_write_that_would_save_there() {
    let rig = Rig::new().await;
    for at in 0..100 {
        rig.put(&format!("k{at:02}"), "old").await;
    }
    let large = "x".repeat(20_000);
    rig.put("large", &large).await;
    page(&rig.store, ScanRequest::new("", 1)).await.unwrap();
    let id: String = rig.entries().await[0].id.iter().map(|byte| format!("{byte:02x}")).collect();
    for place in ["u", "v"] {
        rig.raw::<()>(&format!("SET {{p}}:{place}:{id} x")).await;
        for name in ["k50", "large"] {
            incompatible(rig.store.write(put_request(name)).await);
            incompatible(rig.store.write(WriteRequest::new().mutation(Mutation::delete(key(name)))).await);
        }
        assert_eq!((rig.get("k50").await, rig.get("large").await), (Some("old".into()), Some(large.clone())));
        rig.raw::<()>(&format!("DEL {{p}}:{place}:{id}")).await;
    }
}

#[tokio::test]
async fn a_newer_layout_is_never_misread() {
    let rig = Rig::new().await;
    for at in 0..100 {
        rig.put(&format!("k{at:02}"), "old").await;
    }
    let first = page(&rig.store, ScanRequest::new("", 1)).await.unwrap();
    rig.raw::<()>("SET {p}:f 2").await;
    all_writes_are_incompatible(&rig).await;
    incompatible(rig.store.read(key("k01")).await);
    incompatible(rig.store.scan(ScanRequest::new("", 10)).await);
    incompatible(rig.store.scan(ScanRequest::new("k1", 100)).await);
    incompatible(rig.store.scan(ScanRequest::new("", 10).after(first.next_cursor.unwrap())).await);
    assert_eq!(rig.raw::<u64>("LLEN {p}:S").await, 1);
    let error = rig.store.read(key("k01")).await.unwrap_err();
    assert!(error.message().contains("newer version"));
}

#[tokio::test]
async fn in_a_group_a_failing_condition_or_foreign_data_fails_only_its_own_write() {
    let rig = Rig::new().await;
    rig.put("taken", "old").await;
    rig.raw::<()>("HSET {p}:r:foreign field value").await;
    let (store, tap) = rig.tapped(true);
    let names = ["a", "b", "taken", "c", "foreign", "d", "e"];
    let write = |name: &str| tokio::spawn(store.write(put_request(name).condition(Condition::Missing { key: key(name) })));
    let writes = rig.paused(|| names.map(write)).await;
    for (name, write) in names.into_iter().zip(writes) {
        match name {
            "taken" => assert!(conflicts(write.await.unwrap())),
            "foreign" => incompatible(write.await.unwrap()),
            name => {
                let (versions, _) = applied(write.await.unwrap());
                let ReadResult::Found(found) = rig.store.read(key(name)).await.unwrap() else { panic!() };
                assert_eq!(versions, [found.version], "{name}");
            }
        }
    }
    assert!(tap.seen().iter().filter(|batch| runs(&COMMIT)(batch)).count() <= 4, "they went in groups");
    assert_eq!(rig.raw::<u64>("GET {p}:n").await, 6, "one sequence number for each that was applied");
}

#[tokio::test]
async fn racers_for_one_key_have_one_winner() {
    let rig = Rig::new().await;
    let stores = [rig.store.clone(), rig.other()];
    for round in 0..5 {
        let name = format!("k{round}");
        let write = |at: usize| {
            let request = put_request(&name).condition(Condition::Missing { key: key(&name) });
            tokio::spawn(stores[at % 2].write(request))
        };
        let writes: Vec<_> = rig.paused(|| (0..100).map(write).collect()).await;
        let mut won = 0;
        for write in writes {
            won += usize::from(!conflicts(write.await.unwrap()));
        }
        assert_eq!(won, 1);
    }
}

#[tokio::test]
async fn groups_that_read_what_others_write_are_judged_apart() {
    let rig = Rig::new().await;
    // Each puts its own key if the other's is missing: never both.
    for round in 0..20 {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let write = |own: &str, other: &str| {
            let request = put_request(own).condition(Condition::Missing { key: key(other) });
            tokio::spawn(rig.store.write(request))
        };
        let start = || {
            let filler: Vec<_> = (0..5).map(|at| write(&format!("f{round}-{at}"), "never")).collect();
            (filler, write(&a, &b), write(&b, &a))
        };
        let (filler, first, second) = rig.paused(start).await;
        let (first, second) = (conflicts(first.await.unwrap()), conflicts(second.await.unwrap()));
        assert!(first != second, "one of them sees the other");
        for write in filler {
            applied(write.await.unwrap());
        }
    }
}

#[tokio::test]
async fn after_a_lost_answer_the_commit_is_known_by_its_mark() {
    let rig = Rig::new().await;
    let (store, tap) = rig.tapped(true);
    put(&store, "warm", "").await;
    applied(store.write(put_request("warm").mutation(Mutation::put(key("warm2"), ""))).await);
    for (which, request) in [
        (&PUT, put_request("a")),
        (&COMMIT, WriteRequest::new().mutation(Mutation::delete(key("warm"))).mutation(Mutation::put(key("a"), "new"))),
    ] {
        let sequence: u64 = rig.raw("GET {p}:n").await;
        let raw = rig.raw.clone();
        // The answer is lost some time after the commit.
        tap.once(runs(which), async move |sending| {
            sending.await?;
            let now = async || {
                let (seconds, micros): (u64, u64) = ask(&raw, "TIME").await;
                seconds * 1_000 + micros / 1_000
            };
            let committed = now().await;
            until(async || now().await > committed + 20).await;
            Err(lost())
        });
        let (versions, store_now) = applied(store.write(request).await);
        let ReadResult::Found(found) = rig.store.read(key("a")).await.unwrap() else { panic!() };
        assert_eq!(versions, [found.version]);
        let raw: Vec<u8> = rig.raw("GET {p}:r:a").await;
        assert_eq!(store_now.unix_ms(), u64::from_be_bytes(raw[18..26].try_into().unwrap()), "the commit's own instant");
        assert!(store_now.unix_ms() + 20 <= found.store_now.unix_ms());
        assert_eq!(rig.raw::<u64>("GET {p}:n").await, sequence + 1, "applied once");
    }
}

#[tokio::test]
async fn a_missing_mark_proves_nothing() {
    let rig = Rig::new().await;
    rig.put("b", "").await;
    let (store, tap) = rig.tapped(true);
    let unknown = |result: Result<WriteResult, Error>| {
        let error = result.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown));
    };
    // It never came there.
    tap.once(runs(&PUT), async |_| Err(lost()));
    unknown(store.write(put_request("a")).await);
    // Somebody else has put the key since.
    put(&store, "warm", "").await;
    let other = rig.other();
    tap.once(runs(&PUT), async move |sending| {
        sending.await?;
        put(&other, "a", "other").await;
        Err(lost())
    });
    unknown(store.write(put_request("a")).await);
    assert_eq!(rig.get("a").await.as_deref(), Some("other"));
    // A delete leaves no mark.
    tap.once_after(1, runs(&COMMIT), async |sending| {
        sending.await?;
        Err(lost())
    });
    tap.seen();
    unknown(store.write(WriteRequest::new().mutation(Mutation::delete(key("b")))).await);
    assert!(!tap.seen().iter().any(named("GETRANGE")), "there is nothing to look for");
    assert_eq!(rig.get("b").await, None);
}

#[tokio::test]
async fn a_conflict_whose_answer_is_lost_is_unknown() {
    let rig = Rig::new().await;
    rig.put("a", "").await;
    let (store, tap) = rig.tapped(true);
    put(&store, "warm", "").await;
    tap.lose(runs(&PUT));
    let request = put_request("a").condition(Condition::Missing { key: key("a") });
    assert_eq!(store.write(request).await.unwrap_err().outcome(), Outcome::Unknown);
}

/// Writes that take all the calls that may be under way at a stopped server.
async fn occupy(store: &LocationStore) -> Vec<JoinHandle<Result<WriteResult, Error>>> {
    let mut writes = Vec::new();
    for at in 0..WIDTH {
        let before = store.stats().commands_sent;
        writes.push(tokio::spawn(store.write(put_request(&format!("sent{at}")))));
        sent(store, before).await;
    }
    writes
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_never_sent() {
    let rig = Rig::new().await;
    rig.put("warm", "").await;
    rig.server.pause().unwrap();
    let first = occupy(&rig.store).await;
    let gone: Vec<_> = (0..50).map(|at| tokio::spawn(rig.store.write(put_request(&format!("gone{at}"))))).collect();
    let last = tokio::spawn(rig.store.write(put_request("last")));
    settle().await;
    gone.iter().for_each(JoinHandle::abort);
    for write in gone {
        assert!(write.await.is_err());
    }
    rig.server.resume().unwrap();
    for write in first.into_iter().chain([last]) {
        applied(write.await.unwrap());
    }
    let keys: Vec<String> = rig.raw("KEYS {p}:r:gone*").await;
    assert!(keys.is_empty(), "{keys:?}");
}

#[tokio::test]
async fn a_timeout_says_whether_anything_was_sent() {
    let rig = Rig::new().await;
    let options = crate::StoreOptions { operation_timeout_ms: 200, ..crate::StoreOptions::with_prefix("p").unwrap() };
    let store = LocationStore::open(&*rig.server.url(), options).unwrap();
    put(&store, "warm", "").await;
    rig.server.pause().unwrap();
    let first = occupy(&store).await;
    let queued: Vec<_> = (0..5).map(|at| tokio::spawn(store.write(put_request(&format!("queued{at}"))))).collect();
    for write in first {
        let error = write.await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Timeout, Outcome::Unknown));
    }
    for write in queued {
        let error = write.await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Timeout, Outcome::NotApplied), "it waited for its turn");
    }
    rig.server.resume().unwrap();
    until(async || get(&rig.store, "sent0").await.is_some()).await;
    put(&store, "last", "").await;
    assert!(rig.raw::<Vec<String>>("KEYS {p}:r:queued*").await.is_empty());
}
