//! Operations that are dropped at random moments, many of each kind, and what must be so afterwards.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::Barrier;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use zlink_store::{
    BlobReadResult, BlobReference, Error, Key, Mutation, Payload, PayloadSource, RelocationStore, Retention, ScanRequest,
    ScanResult, WriteRequest,
};

use crate::is_long;
use crate::party::{Answer, Location, Project, Relocation};

/// Operations of each kind, in whole batches.
fn each() -> u32 {
    if is_long() { 1_000 } else { 256 }
}
const AT_ONCE: usize = 8;
/// Groups of records that one commit writes, and the records of one.
const GROUPS: u32 = 20;
const GROUP: usize = 3;
/// Blobs that are read, renewed and deleted.
const BLOBS: u32 = 20;
/// Has several segments on Redis, and a file of its own on the file engine.
const BLOB: usize = 300_000;
/// No operation may take longer, dropped or not.
const PATIENCE: Duration = Duration::from_secs(20);

/// Drops many operations (a thousand in the long form) of each kind, checks that none was done in part, and deletes everything.
///
/// # Panics
/// If something is torn, or an operation that is not dropped fails.
pub async fn drop_each_kind(store: &Location, blobs: &Relocation) {
    let retention = Retention::from_ms(3_600_000).expect("a legal retention");
    for number in 0..GROUPS {
        store.write(group(number, 0, Some(retention))).await.expect("a write");
    }
    for number in 0..BLOBS {
        blobs.put(old(number), content(number), retention).await.expect("a put");
    }
    let ScanResult::Page(page) = store.scan(ScanRequest::new("g", 5)).await.expect("a page") else { panic!("a scan expired") };
    let cursor = page.next_cursor.expect("another page");

    drop_some("ping", |_| store.ping()).await;
    drop_some("read", |number| store.read(key(number, 0))).await;
    drop_some("next page", |_| store.scan(ScanRequest::new("g", 5).after(cursor.clone()))).await;
    drop_some("write", |number| store.write(group(number, number, None))).await;
    groups_are_whole(store).await;
    drop_some("expiring write", |number| store.write(group(number, number, Some(retention)))).await;
    groups_are_whole(store).await;
    drop_some("first page", |_| store.scan(ScanRequest::new("g", 5))).await;
    drop_some("delete", |number| store.write(without(number))).await;
    groups_are_whole(store).await;
    drop_some("blob read", |number| blobs.read(old(number))).await;
    drop_some("blob renewal", |number| blobs.renew(old(number), retention)).await;
    drop_some("blob delete", |number| blobs.delete(old(number))).await;
    drop_some("blob put", |number| blobs.put(new(number), content(number), retention)).await;

    assert_eq!((store.in_flight(), blobs.in_flight()), (0, 0), "what was dropped counts as in flight");
    let reads = (0..=each()).map(|number| blobs.read(new(number)).map(move |read| (number, read.expect("a read"))));
    let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    while let Some((number, read)) = reads.next().await {
        assert!(!matches!(read, BlobReadResult::Found { bytes, .. } if bytes != content(number)), "blob {number} is torn");
    }
    for number in 0..GROUPS {
        store.write(without(number)).await.expect("a delete");
    }
    let deletes = (0..BLOBS).map(old).chain((0..=each()).map(new)).map(|reference| blobs.delete(reference));
    stream::iter(deletes).buffer_unordered(AT_ONCE).for_each(async |deleted| deleted.expect("a delete")).await;
}

/// Drops many operations (a thousand in the long form) of each kind of a project; afterwards every lock can be had, from `other` too.
///
/// # Panics
/// If a lock is left behind, or an operation that is not dropped fails.
pub async fn drop_each_kind_of_project(project: &Project, other: &Project) {
    let state = project.state();
    let entry = |number: u32| format!("e{}", number % GROUPS);
    let lock = |number: u32| format!("l{}", number % 4);
    drop_some("set", |number| state.set(&entry(number), u64::from(number), None)).await;
    drop_some("look", |number| state.get(&entry(number))).await;
    drop_some("delete of an entry", |number| state.delete(&entry(number), None)).await;
    let lease = 30_000;
    drop_each(
        "acquire",
        |number| project.locks().acquire(&lock(number), 0, lease),
        async |grant| {
            if let Some(grant) = grant {
                assert!(grant.release().await.expect("a release"), "a lease is lost");
            }
        },
    )
    .await;
    for number in 0..4 {
        let grant = other.locks().acquire(&lock(number), 10_000, lease).await.expect("an acquire").expect("a free lock");
        assert!(grant.release().await.expect("a release"), "a lease is lost");
    }
}

/// Drops operations, each at some moment of the time that it takes.
async fn drop_some<T>(name: &str, operation: impl Fn(u32) -> Answer<T>) {
    drop_each(name, operation, async |_| {}).await;
}

/// The same; what is not dropped is handed to `then`.
async fn drop_each<T>(name: &str, operation: impl Fn(u32) -> Answer<T>, then: impl AsyncFn(T)) {
    let mut random = fastrand::Rng::with_seed(3);
    let began = now();
    let first = timeout(PATIENCE, operation(0)).await.unwrap_or_else(|_| panic!("{name} hangs"));
    let mut longest = now() - began;
    then(first.unwrap_or_else(|error| panic!("{name}: {error}"))).await;
    let (mut number, mut done) = (0, 0);
    while number < each() {
        let batch: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                number += 1;
                done_within(longest.mul_f64(random.f64() * 1.5), operation(number))
            })
            .collect();
        let answered: Vec<T> = join_all(batch).await.into_iter().flatten().collect();
        done += answered.len();
        // As many are to be dropped as are let be.
        longest = longest.mul_f64(if answered.len() > AT_ONCE / 2 { 0.9 } else { 1.1 });
        for answer in answered {
            then(answer).await;
        }
    }
    let few = number as usize / 20;
    assert!(done > few && done < number as usize - few, "{name}: {done} of {number} were done before they were dropped");
}

/// What it gave in that time; else it is dropped. It is polled once in any case.
async fn done_within<T>(time: Duration, operation: Answer<T>) -> Option<T> {
    let end = now() + time;
    let over = async {
        // A timer is too coarse for the end of it.
        if let Some(coarse) = time.checked_sub(Duration::from_millis(2)) {
            sleep(coarse).await;
        }
        while now() < end {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        result = operation => Some(result.unwrap_or_else(|error| panic!("{error}"))),
        () = over => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "how long an operation takes is not the engine's matter")]
fn now() -> Instant {
    Instant::now()
}

/// All records of a group are of one commit, or none is there.
async fn groups_are_whole(store: &Location) {
    let mut groups = BTreeMap::<String, Vec<Bytes>>::new();
    let mut request = ScanRequest::new("g", 1_000);
    loop {
        let ScanResult::Page(page) = store.scan(request).await.expect("a page") else { panic!("a scan expired") };
        for item in page.items {
            let (group, _) = item.key.as_str().split_once('/').expect("a key of a group");
            groups.entry(group.to_owned()).or_default().push(item.value.bytes);
        }
        let Some(cursor) = page.next_cursor else { break };
        request = ScanRequest::new("g", 1_000).after(cursor);
    }
    for (group, values) in groups {
        assert!(values.len() == GROUP && values.iter().all(|value| *value == values[0]), "{group} is torn: {values:?}");
    }
}

fn key(number: u32, place: usize) -> Key {
    Key::new(format!("g{:02}/{place}", number % GROUPS)).expect("a legal key")
}

/// A commit of a whole group, by which its records can be told.
fn group(number: u32, commit: u32, retention: Option<Retention>) -> WriteRequest {
    let value = format!("{commit:04}").repeat(700);
    (0..GROUP).fold(WriteRequest::new(), |request, place| {
        let key = key(number, place);
        request.mutation(match retention {
            Some(retention) => Mutation::put_for(key, value.clone(), retention),
            None => Mutation::put(key, value.clone()),
        })
    })
}

fn without(number: u32) -> WriteRequest {
    (0..GROUP).fold(WriteRequest::new(), |request, place| request.mutation(Mutation::delete(key(number, place))))
}

fn old(number: u32) -> BlobReference {
    BlobReference::new(format!("old{}", number % BLOBS)).expect("a legal reference")
}

fn new(number: u32) -> BlobReference {
    BlobReference::new(format!("new{number}")).expect("a legal reference")
}

fn content(number: u32) -> Bytes {
    let mut bytes = vec![(number % 251) as u8; BLOB];
    bytes[BLOB - 1] ^= 1;
    bytes.into()
}

/// All that blobs may hold in one process is free: two that need it together get room together.
///
/// # Panics
/// If they do not.
pub async fn blobs_have_all_their_room(blobs: &RelocationStore) {
    // Each is asked for its bytes when it has room, and answers when both were.
    let both = Arc::new(Barrier::new(3));
    let retention = Retention::from_ms(1_000).expect("a legal retention");
    let puts = (0..2).map(|number| {
        let reference = BlobReference::new(format!("huge{number}")).expect("a legal reference");
        let source = Huge { both: Arc::clone(&both), asked: AtomicU32::new(0) };
        blobs.put(reference, Payload::Source(Arc::new(source)), retention)
    });
    tokio::select! {
        _ = join_all(puts) => panic!("they were put"),
        room = timeout(PATIENCE, both.wait()) => drop(room.expect("room for two blobs at once")),
    }
}

/// 64 MiB that are never handed over.
struct Huge {
    both: Arc<Barrier>,
    asked: AtomicU32,
}

impl PayloadSource for Huge {
    fn size(&self) -> usize {
        64 * 1_048_576
    }

    fn range(&self, _: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>> {
        async {
            if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
                self.both.wait().await;
            }
            std::future::pending().await
        }
        .boxed()
    }
}
