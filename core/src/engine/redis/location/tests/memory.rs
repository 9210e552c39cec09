//! Snapshots keep to a bound, and what frees memory works when there is none left.

use super::super::commit::{COMMIT, PUT};
use super::rig::*;
use crate::contract::*;
use crate::engine::redis::tests::tap::runs;

const MIB: u64 = 1_048_576;

async fn fill(rig: &Rig) {
    for at in 0..100 {
        rig.put(&format!("k{at:02}"), "old").await;
    }
}

fn next(page: &ScanPage) -> ScanRequest {
    ScanRequest::new("", 1_000).after(page.next_cursor.clone().unwrap())
}

async fn begin(rig: &Rig) -> ScanPage {
    page(&rig.store, ScanRequest::new("", 1)).await.unwrap()
}

/// Sets what an entry says it has saved, as if it had, and what the later ones say was saved before them.
async fn say_saved(rig: &Rig, place: usize, bytes: u64) {
    rig.edit_snapshots(|at, raw| {
        if at == place {
            raw[40..48].copy_from_slice(&bytes.to_be_bytes());
        }
        if at > place {
            let base = u64::from_be_bytes(raw[32..40].try_into().unwrap());
            raw[32..40].copy_from_slice(&(base + bytes).to_be_bytes());
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_saved_is_counted() {
    let rig = Rig::new().await;
    fill(&rig).await;
    rig.put("large", &"x".repeat(20_000)).await;
    begin(&rig).await;
    rig.put("k50", "new").await;
    rig.put("k50", "newer").await;
    rig.put("fresh", "").await;
    delete(&rig.store, "large").await;
    let entries = rig.entries().await;
    let of = |name: &str, value: u64| value + 34 + format!("{{p}}:r:{name}").len() as u64 + 128;
    assert_eq!(entries[0].bytes, of("k50", 3) + of("large", 20_000), "once, and nothing for what is new");
    assert_eq!(entries[0].moved, 1);
    begin(&rig).await;
    assert_eq!(rig.entries().await[1].base, entries[0].bytes);
}

#[tokio::test]
async fn over_the_bound_the_oldest_go() {
    let rig = Rig::new().await;
    fill(&rig).await;
    let oldest = begin(&rig).await;
    rig.put("k10", "new").await;
    let middle = begin(&rig).await;
    rig.put("k11", "new").await;
    let newest = begin(&rig).await;
    say_saved(&rig, 0, 50 * MIB).await;
    say_saved(&rig, 1, 14 * MIB - 1_000).await;
    let undo: Vec<String> = rig.raw("KEYS {p}:u:*").await;
    assert_eq!(undo.len(), 2);
    // 1,000 bytes are left: a small record still fits, a few do not.
    rig.put("k12", "new").await;
    assert_eq!(rig.entries().await.len(), 3);
    let mut request = WriteRequest::new();
    for at in 20..30 {
        request = request.mutation(Mutation::put(key(&format!("k{at}")), "new"));
    }
    applied(rig.other().write(request).await);
    assert!(page(&rig.store, next(&oldest)).await.is_none());
    assert_eq!(rig.entries().await.len(), 2);
    let undo: Vec<String> = rig.raw("KEYS {p}:u:*").await;
    assert_eq!(undo.len(), 2, "what the oldest saved is gone, what this write saved is there");
    let mut expected: Vec<(String, String)> = (1..100).map(|at| (format!("k{at:02}"), "old".into())).collect();
    expected[9].1 = "new".into();
    assert_eq!(rest(&rig.store, "", 1_000, &middle).await.unwrap(), expected);
    expected[10].1 = "new".into();
    assert_eq!(rest(&rig.store, "", 1_000, &newest).await.unwrap(), expected);
}

#[tokio::test]
async fn large_records_that_were_moved_go_with_their_snapshot() {
    let rig = Rig::new().await;
    fill(&rig).await;
    for at in 0..20 {
        rig.put(&format!("large{at}"), &"x".repeat(20_000)).await;
    }
    let oldest = begin(&rig).await;
    for at in 0..20 {
        rig.put(&format!("large{at}"), "").await;
    }
    begin(&rig).await;
    assert_eq!(rig.raw::<Vec<String>>("KEYS {p}:u:*").await.len(), 21);
    say_saved(&rig, 0, 64 * MIB).await;
    // Somebody who knows nothing of all that.
    put(&rig.other(), "k50", "new").await;
    assert!(page(&rig.store, next(&oldest)).await.is_none());
    assert_eq!(rig.raw::<Vec<String>>("KEYS {p}:u:*").await.len(), 1, "only what the second scan needs");
    assert_eq!(rig.raw::<u64>("EXISTS {p}:v:*").await, 0);
}

#[tokio::test]
async fn a_moved_list_that_expired_by_itself_holds_nobody_up() {
    let rig = Rig::new().await;
    fill(&rig).await;
    rig.put("large", &"x".repeat(20_000)).await;
    begin(&rig).await;
    rig.put("large", "").await;
    begin(&rig).await;
    for undo in rig.raw::<Vec<String>>("KEYS {p}:[uv]:*").await {
        rig.raw::<()>(&format!("DEL {undo}")).await;
    }
    rig.age_snapshots(limits::SNAPSHOT_LIFE_MS).await;
    put(&rig.other(), "k50", "new").await;
    assert!(rig.entries().await.is_empty());
}

#[tokio::test]
async fn only_what_belongs_to_a_dropped_snapshot_goes() {
    let rig = Rig::new().await;
    fill(&rig).await;
    let (store, _tap) = rig.tapped(true);
    for name in ["k10", "k11"] {
        page(&store, ScanRequest::new("", 1)).await.unwrap();
        put(&store, name, "new").await;
    }
    // Somebody else drops the oldest; this store still takes it for the first of the list.
    for undo in rig.raw::<Vec<String>>("KEYS {p}:u:*").await {
        if undo.ends_with(&rig.entries().await[0].id.map(|byte| format!("{byte:02x}")).concat()) {
            rig.raw::<()>(&format!("DEL {undo}")).await;
        }
    }
    rig.raw::<()>("LTRIM {p}:S 1 -1").await;
    assert_eq!(rig.raw::<Vec<String>>("KEYS {p}:u:*").await.len(), 1);
    rig.age_snapshots(limits::SNAPSHOT_LIFE_MS).await;
    put(&store, "k12", "new").await;
    assert!(rig.raw::<Vec<String>>("KEYS {p}:[Suv]*").await.is_empty());
}

#[tokio::test]
async fn a_write_that_replaces_more_than_the_bound_drops_all() {
    let rig = Rig::new().await;
    fill(&rig).await;
    let value = "x".repeat(limits::MAX_VALUE);
    let mut request = WriteRequest::new();
    for at in 0..65 {
        rig.put(&format!("large{at}"), &value).await;
        request = request.mutation(Mutation::delete(key(&format!("large{at}"))));
    }
    let first = begin(&rig).await;
    applied(rig.store.write(request).await);
    assert!(page(&rig.store, next(&first)).await.is_none());
    let left: Vec<String> = rig.raw("KEYS {p}:[Suv]*").await;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(rig.raw::<u64>("ZCARD {p}:i").await, 100, "no name is left when no snapshot is");
}

#[tokio::test]
async fn a_client_whose_knowledge_is_stale_does_nothing_and_tries_again() {
    let rig = Rig::new().await;
    fill(&rig).await;
    let (store, tap) = rig.tapped(true);
    put(&store, "k00", "old").await;
    let first = begin(&rig).await;
    tap.seen();
    put(&store, "k50", "new").await;
    put(&store, "k51", "new").await;
    let second = begin(&rig).await;
    put(&store, "k50", "newer").await;
    let calls = tap.seen();
    assert_eq!(calls.iter().filter(|batch| runs(&PUT)(batch)).count(), 1, "it knew of no snapshot");
    // NOSCRIPT, the first, the second, one that did not know the second scan, and its repetition.
    assert_eq!(calls.iter().filter(|batch| runs(&COMMIT)(batch)).count(), 5);
    let sequence: u64 = rig.raw("GET {p}:n").await;
    assert_eq!(sequence, 104, "an answer of nothing done counts no commit");
    let of = |at: usize, value: &str| (format!("k{at:02}"), value.to_owned());
    let mut expected: Vec<_> = (1..100).map(|at| of(at, "old")).collect();
    assert_eq!(rest(&rig.store, "", 1_000, &first).await.unwrap(), expected);
    (expected[49], expected[50]) = (of(50, "new"), of(51, "new"));
    assert_eq!(rest(&rig.store, "", 1_000, &second).await.unwrap(), expected);
}

/// From here on the server takes nothing that needs memory.
async fn fill_memory(rig: &Rig) {
    rig.raw::<()>("CONFIG SET maxmemory 1").await;
}

#[tokio::test]
async fn without_memory_puts_are_refused_whole() {
    let rig = Rig::new().await;
    fill(&rig).await;
    let first = begin(&rig).await;
    fill_memory(&rig).await;
    let refused = async |request: WriteRequest| {
        let error = rig.store.write(request).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied));
    };
    refused(WriteRequest::new().mutation(Mutation::put(key("k00"), "new"))).await;
    refused(WriteRequest::new().mutation(Mutation::delete(key("k00"))).mutation(Mutation::put(key("k01"), "new"))).await;
    assert_eq!((rig.get("k00").await, rig.get("k01").await), (Some("old".into()), Some("old".into())));
    assert_eq!(rig.raw::<u64>("GET {p}:n").await, 100);
    assert!(rig.raw::<Vec<String>>("KEYS {p}:u:*").await.is_empty());
    assert!(page(&rig.store, next(&first)).await.is_some());
    rig.raw::<()>("CONFIG SET maxmemory 0").await;
    rig.put("k00", "new").await;
}

#[tokio::test]
async fn without_memory_deletes_checks_scans_and_reaping_work() {
    let rig = Rig::new().await;
    fill(&rig).await;
    rig.put("large", &"x".repeat(20_000)).await;
    put_for(&rig.store, "mortal", "", 1).await;
    fill_memory(&rig).await;
    let first = begin(&rig).await;
    delete(&rig.store, "k50").await;
    delete(&rig.store, "large").await;
    let missing = |name: &str| WriteRequest::new().condition(Condition::Missing { key: key(name) });
    applied(rig.store.write(missing("k50")).await);
    assert!(conflicts(rig.store.write(missing("k51")).await));
    let shown = rest(&rig.store, "", 1_000, &first).await.unwrap();
    assert_eq!(shown.len(), 100);
    assert_eq!(shown.last().unwrap().1.len(), 20_000);
    until(async || rig.entries().await.iter().all(|entry| entry.finished > 0)).await;
    until(async || rig.raw::<Reply2>("ZSCORE {p}:i mortal").await.is_none()).await;
}

type Reply2 = Option<f64>;

#[tokio::test]
async fn a_put_beside_deletes_does_not_take_them_along_when_memory_is_full() {
    let rig = Rig::new().await;
    fill(&rig).await;
    fill_memory(&rig).await;
    let write = |at: usize| {
        let name = key(&format!("k{at:02}"));
        let mutation = if at.is_multiple_of(2) { Mutation::put(name, "new") } else { Mutation::delete(name) };
        tokio::spawn(rig.store.write(WriteRequest::new().mutation(mutation)))
    };
    let writes: Vec<_> = rig.paused(|| (0..20).map(write).collect()).await;
    for (at, write) in writes.into_iter().enumerate() {
        assert_eq!(write.await.unwrap().is_ok(), at % 2 == 1, "{at}");
    }
}
