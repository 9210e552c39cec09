//! What a commit leaves in the engine, whichever script made it.

use super::super::record::HEADER;
use super::rig::*;
use crate::contract::*;

/// Writes that put `name`: alone, for a time, and beside others.
fn puts(name: &str) -> [WriteRequest; 4] {
    let alone = WriteRequest::new().mutation(Mutation::put(key(name), "value"));
    let mortal = WriteRequest::new().mutation(Mutation::put_for(key(name), "value", ms(60_000)));
    let beside = |request: &WriteRequest| request.clone().mutation(Mutation::delete(key("none")));
    [alone.clone(), mortal.clone(), beside(&alone), beside(&mortal)]
}

#[tokio::test]
async fn the_header_holds_the_commits_own_instant_and_its_expiry() {
    let rig = Rig::new().await;
    for (at, request) in puts("a").into_iter().enumerate() {
        let (_, now) = applied(rig.store.write(request).await);
        let raw: Vec<u8> = rig.raw("GET {p}:r:a").await;
        let number = |from: usize| u64::from_be_bytes(raw[from..from + 8].try_into().unwrap());
        assert_eq!((number(0), raw.len()), (at as u64 + 1, HEADER + 5));
        assert_eq!(number(18), now.unix_ms(), "{at}");
        let mortal = at % 2 == 1;
        assert_eq!(number(26), if mortal { now.plus(ms(60_000)).unix_ms() } else { 0 }, "{at}");
    }
}

#[tokio::test]
async fn the_first_write_of_any_kind_leaves_the_format() {
    for request in puts("a") {
        let rig = Rig::new().await;
        applied(rig.store.write(request).await);
        assert_eq!(rig.raw::<String>("GET {p}:f").await, "1");
    }
}

#[tokio::test]
async fn a_sequence_that_is_used_up_is_an_error_and_never_a_wrong_version() {
    for request in puts("a") {
        let rig = Rig::new().await;
        rig.raw::<()>("SET {p}:n 9007199254740991").await;
        for _ in 0..2 {
            let error = rig.store.write(request.clone()).await.unwrap_err();
            assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied), "{error}");
            assert_eq!(rig.get("a").await, None);
        }
    }
}

#[tokio::test]
async fn a_version_of_data_that_were_lost_never_matches() {
    let rig = Rig::new().await;
    for request in puts("a") {
        // As after a failover that lost the writes: the same sequence comes again.
        let lost = applied(rig.store.write(request.clone()).await).0.remove(0);
        rig.raw::<()>("FLUSHDB").await;
        let again = applied(rig.store.write(request.clone()).await).0.remove(0);
        assert_ne!(lost, again);
        let expecting = |version| request.clone().condition(Condition::Version { key: key("a"), expected: version });
        assert!(conflicts(rig.store.write(expecting(lost)).await));
        applied(rig.store.write(expecting(again)).await);
        rig.raw::<()>("FLUSHDB").await;
    }
}

#[tokio::test]
async fn foreign_data_are_told_of_whatever_the_conditions_say() {
    let rig = Rig::new().await;
    rig.put("taken", "").await;
    rig.raw::<()>("HSET {p}:r:foreign field value").await;
    let taken = Condition::Missing { key: key("taken") };
    let foreign = Condition::Missing { key: key("foreign") };
    for conditions in [vec![taken.clone(), foreign.clone()], vec![foreign, taken]] {
        let error = rig.store.write(WriteRequest { conditions, mutations: Vec::new() }).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied));
    }
}

#[tokio::test]
async fn all_that_a_snapshot_keeps_outlives_it_and_goes_by_itself() {
    let rig = Rig::new().await;
    for at in 0..100 {
        rig.put(&format!("k{at:02}"), "old").await;
    }
    rig.put("large", &"x".repeat(20_000)).await;
    page(&rig.store, ScanRequest::new("", 1)).await.unwrap();
    rig.put("k50", "new").await;
    delete(&rig.store, "large").await;
    let start = rig.entries().await[0].start.unix_ms();
    let kept: Vec<String> = rig.raw("KEYS {p}:[Suv]*").await;
    assert_eq!(kept.len(), 4, "the list, the copies, the large record and its name: {kept:?}");
    for key in kept {
        let left = rig.expiry(&key).await - start;
        assert!((limits::SNAPSHOT_LIFE_MS + 20_000..=limits::SNAPSHOT_LIFE_MS + 60_000).contains(&left), "{key}: {left}");
    }
}

#[tokio::test]
async fn foreign_data_where_we_keep_our_own_are_told_of_and_change_nothing() {
    let foreign = |result: Result<(), Error>, at: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{at}: {error}");
        assert!(!error.message().contains("user_script"), "{at}: {error}");
    };
    for (plant, scans_only) in [("RPUSH {p}:S zz", false), ("SET {p}:n abc", true)] {
        let rig = Rig::new().await;
        let many: WriteRequest =
            (0..40).fold(WriteRequest::new(), |all, at| all.mutation(Mutation::put(key(&format!("k{at}")), "v")));
        applied(rig.store.write(many).await);
        rig.raw::<()>(plant).await;
        let before: Vec<u8> = rig.raw("DUMP {p}:i").await;
        let delete = WriteRequest::new().mutation(Mutation::delete(key("k1")));
        for request in puts("k1").into_iter().chain([delete]) {
            if !scans_only {
                foreign(rig.store.write(request).await.map(drop), plant);
            }
        }
        foreign(rig.store.scan(ScanRequest::new("", 1)).await.map(drop), plant);
        assert_eq!(rig.raw::<Vec<u8>>("DUMP {p}:i").await, before, "{plant}");
    }
}
