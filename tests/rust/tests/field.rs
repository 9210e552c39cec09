//! Cases of tests/field-reports.md that no scenario can have, since they need a server or a link of their own; and that every
//! test which that table names is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, Code, Condition, Error, Key, LocationStore, LockOptions, Mutation, Project,
    ProjectId, ProjectOptions, ReleaseResult, RelocationStore, RenewResult, Retention, ScanRequest, ScanResult,
    StateWriteOptions, StoreOptions, Version, WriteRequest, WriteResult, limits,
};
use zlink_test_conformance::place::Place;
use zlink_test_servers::{Proxy, RedisServer};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."))
}

/// The words in backticks: first a file, then names of what it holds, then perhaps another file.
#[test]
fn every_test_that_the_table_names_is_there() {
    let table = fs::read_to_string(root().join("tests/field-reports.md")).unwrap();
    let mut cases = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| F")) {
        let case = row.trim_start_matches("| ").split(' ').next().unwrap_or_default();
        assert!(cases.insert(case.to_owned()), "{case} stands twice");
        let (mut file, mut text, mut named) = (String::new(), String::new(), 0);
        for word in row.split('|').nth(2).unwrap_or_default().split('`').skip(1).step_by(2) {
            if word.contains('/') && word.rsplit('/').next().is_some_and(|name| name.contains('.')) {
                file = word.to_owned();
                text = fs::read_to_string(root().join(word)).unwrap_or_else(|error| panic!("{case}: {word}: {error}"));
                continue;
            }
            let is_there = match file.rsplit('.').next() {
                Some("rs") => text.contains(&format!("fn {word}(")),
                Some("json") => text.contains(&format!("\"name\": \"{word}\"")),
                Some("java") => text.contains(&format!("void {word}(")),
                Some("py") => text.contains(&format!("def {word}(")),
                _ => text.contains(word),
            };
            assert!(is_there, "{case}: {file} has no {word}");
            named += 1;
        }
        assert!(named > 0, "{case} names no test");
    }
    let all: BTreeSet<String> = (1..=44).map(|number| format!("F{number:02}")).collect();
    assert_eq!(cases, all);
}

/// F30: a lease that comes in the last moment of a wait is had by the waiter, or by nobody.
async fn win_at_the_deadline(project: &Project) {
    let options = |wait_ms| LockOptions { wait_ms, ..LockOptions::default() };
    let mut had = 0;
    for round in 0..150_u64 {
        let holder = project.locks().acquire("k", options(0)).await.expect("an answer").expect("it is free");
        let wait_ms = 8;
        let waiting = tokio::spawn(project.locks().acquire("k", options(wait_ms)));
        // From a little before the end of the wait to a little behind it.
        tokio::time::sleep(Duration::from_micros(6_500 + 25 * round)).await;
        assert_eq!(holder.release().await.expect("an answer"), ReleaseResult::Released);
        if let Some(lease) = waiting.await.expect("it runs").expect("an answer") {
            had += 1;
            assert_eq!(lease.release().await.expect("an answer"), ReleaseResult::Released, "it is the waiter's");
        }
        let next = project.locks().acquire("k", options(limits::MAX_LOCK_WAIT_MS)).await.expect("an answer");
        let next = next.unwrap_or_else(|| panic!("round {round}: whoever was told that it has not got it has it"));
        assert_eq!(next.release().await.expect("an answer"), ReleaseResult::Released);
    }
    println!("{had} of 150 waiters had the lock");
}

fn project(url: &str) -> Project {
    let id = ProjectId::new("w", "p").expect("names");
    Project::open(url, id, ProjectOptions::default()).expect("a URL")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_ends_as_the_lock_is_freed_leaves_no_lease_behind() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(&[]).unwrap();
    for url in [Place::in_memory().url().clone(), format!("file:{}", folder.path().display()), server.url()] {
        win_at_the_deadline(&project(&url)).await;
    }
}

/// F01: neither a limit of a library nor one of ours cuts a long transfer short that its operation timeout allows.
#[tokio::test]
async fn the_largest_blob_goes_over_a_slow_line() {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::to(server.port()).unwrap();
    proxy.throttle(20_000_000);
    let options = StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::with_prefix("p").unwrap() };
    let store = RelocationStore::open(&proxy.url(), options).unwrap();
    let bytes: Bytes = (0..limits::MAX_BLOB).map(|place| u8::try_from(place % 251).unwrap_or_default()).collect();
    let name = BlobReference::new("b").unwrap();
    let put = store.put(name.clone(), bytes.clone(), Retention::from_ms(600_000).unwrap()).await.unwrap();
    assert!(matches!(put, BlobPutResult::Stored { .. }));
    let BlobReadResult::Found { bytes: read, .. } = store.read(name).await.unwrap() else { panic!("it is missing") };
    assert!(read == bytes, "other bytes");
}

/// What every part has, once it is filled.
struct Filled {
    server: RedisServer,
    records: LocationStore,
    blobs: RelocationStore,
    project: Project,
}

impl Filled {
    fn open(server: RedisServer) -> Self {
        let options = || StoreOptions::with_prefix("p").expect("a prefix");
        let records = LocationStore::open(&server.url(), options()).expect("a URL");
        let blobs = RelocationStore::open(&server.url(), options()).expect("a URL");
        let project = project(&server.url());
        Self { server, records, blobs, project }
    }
}

/// What may be said where a part is gone: that something is missing, or in so many words that it is damaged.
fn told<T>(what: &str, key: &str, result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(result) => Some(result),
        Err(error) => {
            let segment = key.contains(":bs:") || key.ends_with(":b0");
            let known = error.code() == Code::Incompatible || (segment && error.code() == Code::Internal);
            assert!(known, "{what} without {key}: {error}");
            None
        }
    }
}

/// F22: a server that evicts takes any of our keys away, by itself. What is left is never misread, and new data are taken.
#[tokio::test]
async fn whatever_key_is_taken_away_the_rest_is_clean() {
    let filled = Filled::open(RedisServer::start(&[]).unwrap());
    let Filled { server, records, blobs, project } = &filled;
    let (key, other) = (Key::new("k").unwrap(), Key::new("other").unwrap());
    let (blob, state) = (BlobReference::new("b").unwrap(), project.state().namespace("n").unwrap());
    let payload = Bytes::from(vec![7; 600_000]);
    let hour = Retention::from_ms(3_600_000).unwrap();
    let mut gone = 0;
    loop {
        server.say(&["FLUSHALL"]);
        let mut last: Option<Version> = None;
        for number in 0..40 {
            let put = Mutation::put_for(Key::new(format!("fill/{number:02}")).unwrap(), "v", hour);
            records.write(WriteRequest::new().mutation(put)).await.unwrap();
        }
        let page = records.scan(ScanRequest::new("fill/", 5)).await.unwrap();
        let ScanResult::Page(page) = page else { panic!("a first page is never expired") };
        for bytes in ["1", "2"] {
            let request = WriteRequest::new().mutation(Mutation::put(key.clone(), bytes));
            let written = records.write(request.mutation(Mutation::delete(Key::new("fill/20").unwrap()))).await.unwrap();
            let WriteResult::Applied { put_versions, .. } = written else { panic!("there was no condition") };
            last = put_versions.first().map(|put| put.version.clone());
        }
        blobs.put(blob.clone(), payload.clone(), hour).await.unwrap();
        drop(state.set("k", "1", StateWriteOptions::default()).await.unwrap());
        let lease = project.locks().acquire("k", LockOptions::default()).await.unwrap().expect("it is free");

        let mut keys: Vec<String> = server.say(&["KEYS", "*"]).items().iter().map(|key| key.text()).collect();
        keys.sort();
        let Some(victim) = keys.get(gone) else { break };
        server.say(&["DEL", victim]);

        told("a read", victim, records.read(key.clone()).await);
        let condition = Condition::Version { key: key.clone(), expected: last.expect("it was put") };
        told("a check", victim, records.write(WriteRequest::new().condition(condition)).await);
        if let Some(cursor) = page.next_cursor {
            told("a page", victim, records.scan(ScanRequest::new("fill/", 50).after(cursor)).await);
        }
        if let Some(BlobReadResult::Found { bytes, .. }) = told("a blob", victim, blobs.read(blob.clone()).await) {
            assert!(bytes == payload, "without {victim} the blob has other bytes");
        }
        told("an entry", victim, state.get("k").await);
        if let Some(RenewResult::Lost) = told("a renewal", victim, lease.renew(None).await) {
            assert_eq!(lease.release().await.unwrap(), ReleaseResult::Lost);
        }
        // Others go on.
        let put = WriteRequest::new().mutation(Mutation::put(other.clone(), "v"));
        told("a new record", victim, records.write(put).await);
        let set = state.set("other", "2", StateWriteOptions::default()).await;
        told("a new entry", victim, set);
        told("another lock", victim, project.locks().acquire("other", LockOptions::default()).await);
        gone += 1;
    }
    assert!(gone >= 50, "only {gone} keys");
}
