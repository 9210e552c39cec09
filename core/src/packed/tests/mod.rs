#![allow(clippy::unwrap_used)]

mod acquires;
mod project;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::sync::Notify;

use super::wire::{HEADER, Rows, ask, place, tell};
use super::{Bridge, Dialect, Request, Store, Taken};
use crate::engine::StoreOptions;
use crate::location::LocationStore;
use crate::relocation::RelocationStore;

const DIALECT: Dialect = Dialect { keep_from: 100, largest_record: 1_000, retention: "retentionMs" };

struct Fixture {
    bridge: Bridge,
    rung: Arc<Notify>,
    location: u32,
    relocation: u32,
}

fn fixture() -> Fixture {
    let rung = Arc::<Notify>::default();
    let bell = Arc::clone(&rung);
    let bridge = Bridge::new(DIALECT, move || bell.notify_one());
    let location = bridge.add(Store::Location(LocationStore::open("memory:", StoreOptions::default()).unwrap()));
    let relocation = bridge.add(Store::Relocation(RelocationStore::open("memory:", StoreOptions::default()).unwrap()));
    Fixture { bridge, rung, location, relocation }
}

impl Fixture {
    fn submit(&self, kind: u32, store: u32, fields: Vec<u8>, beside: Vec<Bytes>) -> Taken {
        self.bridge.submit(Request { kind, ticket: 7, store, fields: &Bytes::from(fields) }, beside, false)
    }

    fn answer(&self, kind: u32, store: u32, fields: Vec<u8>) -> Vec<u8> {
        match self.submit(kind, store, fields, Vec::new()) {
            Taken::Answered(record) => record,
            Taken::UnderWay => panic!("not answered inline"),
        }
    }

    /// The records that come, once some have.
    async fn collect(&self) -> Vec<u8> {
        let mut records = Vec::new();
        while records.is_empty() {
            tokio::time::timeout(Duration::from_secs(10), self.rung.notified()).await.unwrap();
            self.bridge.collect(&mut records);
        }
        records
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut out = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out
}

/// One put, of a value in the request.
fn put(key: &str, value: &str) -> Vec<u8> {
    [&[0, 0, 0, 0, 1, 0, 0, 0, 1][..], &text(key), &[place::HERE], &text(value)].concat()
}

fn word(record: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(*record[index * 4..].first_chunk().unwrap())
}

/// A put of a blob whose bytes are in the request.
fn small_blob() -> Vec<u8> {
    [&text("ref")[..], &60_000_f64.to_le_bytes(), &[place::HERE], &text("payload")].concat()
}

fn blob(size: u32) -> Vec<u8> {
    [&text("ref")[..], &60_000_f64.to_le_bytes(), &[place::ELSEWHERE], &size.to_le_bytes()].concat()
}

#[test]
fn what_is_answered_from_memory_is_answered_at_once() {
    let fixture = fixture();
    let applied = fixture.answer(ask::WRITE, fixture.location, put("k", "value"));
    assert_eq!((word(&applied, 0), word(&applied, 1), word(&applied, 2)), (tell::APPLIED, 7, 1));
    let found = fixture.answer(ask::READ, fixture.location, text("k"));
    assert_eq!(word(&found, 0), tell::FOUND);
    assert_eq!(word(&found, 3) as usize, found.len());
    assert!(found.ends_with(b"value"));
    let missing = fixture.answer(ask::READ, fixture.location, text("other"));
    assert_eq!((word(&missing, 0), missing.len()), (tell::MISSING, HEADER + 8));
}

#[test]
fn large_values_and_large_records_are_kept() {
    let fixture = fixture();
    let large = "x".repeat(DIALECT.keep_from);
    fixture.answer(ask::WRITE, fixture.location, put("large", &large));
    let found = fixture.answer(ask::READ, fixture.location, text("large"));
    assert_eq!(word(&found, 0), tell::FOUND_LARGE);
    let number = u32::from_le_bytes(*found.last_chunk().unwrap());
    assert_eq!(fixture.bridge.take(number).unwrap(), large.as_bytes());
    assert_eq!(fixture.bridge.take(number), None);

    for index in 0..20 {
        fixture.answer(ask::WRITE, fixture.location, put(&format!("k{index}"), "some value"));
    }
    let scan = [&text("k")[..], &100_f64.to_le_bytes(), &[0]].concat();
    let big = fixture.answer(ask::SCAN, fixture.location, scan);
    assert_eq!((word(&big, 0), word(&big, 1), big.len()), (tell::BIG, 7, HEADER));
    let page = fixture.bridge.take(word(&big, 2)).unwrap();
    assert_eq!((word(&page, 0), word(&page, 2)), (tell::PAGE, 20));
}

#[test]
fn argument_errors_come_first_also_when_the_store_is_gone() {
    let fixture = fixture();
    let said = |record: &[u8]| String::from_utf8_lossy(record).into_owned();
    let long = "k".repeat(1_025);
    for store in [fixture.location, u32::MAX] {
        assert!(said(&fixture.answer(ask::READ, store, text(&long))).contains("key must be 1..=1024 bytes"));
        let twice = [&[0, 0, 0, 0, 2, 0, 0, 0, 0][..], &text("k"), &[0], &text("k")].concat();
        assert!(said(&fixture.answer(ask::WRITE, store, twice)).contains("mutations[1].key is in the mutations twice"));
    }
    for store in [fixture.relocation, u32::MAX] {
        let retention = [&text("ref")[..], &0_f64.to_le_bytes()].concat();
        assert!(said(&fixture.answer(ask::RENEW, store, retention)).contains("retentionMs must be"));
        assert!(said(&fixture.answer(ask::PUT, store, blob(u32::MAX))).contains("payload must be"));
    }
    assert!(said(&fixture.answer(ask::READ, u32::MAX, text("k"))).contains("CLOSED"));
}

#[tokio::test]
async fn a_payload_is_asked_for_in_parts() {
    let fixture = fixture();
    // In memory the operation begins inline and cannot end there: it goes on with the driver.
    assert!(matches!(fixture.submit(ask::PUT, fixture.relocation, blob(4), Vec::new()), Taken::UnderWay));
    let mut answer = fixture.collect().await;
    while word(&answer, 0) == tell::SEGMENT {
        let part = |index: usize| f64::from_le_bytes(*answer[HEADER + index * 8..].first_chunk().unwrap());
        assert!(part(1) <= 4.0);
        let bytes = if part(0) == 0.0 && part(1) == 4.0 { "blob" } else { "" };
        fixture.bridge.segment(word(&answer, 2), Some(Bytes::from_static(bytes.as_bytes())));
        answer = fixture.collect().await;
    }
    assert_eq!((word(&answer, 0), word(&answer, 1)), (tell::STORED, 7));
    assert!(fixture.answer(ask::BLOB_READ, fixture.relocation, text("ref")).ends_with(b"blob"));
}

#[tokio::test]
async fn what_is_cancelled_is_answered_all_the_same() {
    let fixture = fixture();
    assert!(matches!(fixture.submit(ask::PUT, fixture.relocation, blob(4), Vec::new()), Taken::UnderWay));
    assert_eq!(word(&fixture.collect().await, 0), tell::SEGMENT);
    fixture.bridge.cancel(7);
    let answer = fixture.collect().await;
    assert_eq!((word(&answer, 0), word(&answer, 1)), (tell::CANCELLED, 7));
    // Nobody waits for the part any more.
    fixture.bridge.segment(word(&answer, 2), Some(Bytes::new()));
    assert_eq!(word(&fixture.answer(ask::BLOB_READ, fixture.relocation, text("ref")), 0), tell::MISSING);
}

#[tokio::test]
async fn an_answer_comes_to_whoever_waits_for_it_or_lies_in_the_mailbox_and_is_never_lost() {
    let fixture = fixture();
    for round in 0..100 {
        assert!(matches!(fixture.submit(ask::PUT, fixture.relocation, blob(4), Vec::new()), Taken::UnderWay));
        assert_eq!(word(&fixture.collect().await, 0), tell::SEGMENT);
        let direct = std::thread::scope(|scope| {
            // Sometimes the answer is faster than the waiter, which then waits for nothing.
            let waiter = scope.spawn(|| fixture.bridge.wait_for(7, Duration::from_millis(round % 10)));
            fixture.bridge.cancel(7);
            waiter.join().unwrap()
        });
        let answer = match direct {
            Some(record) => record,
            None => fixture.collect().await,
        };
        assert_eq!((word(&answer, 0), word(&answer, 1)), (tell::CANCELLED, 7));
    }
    fixture.bridge.put_back(vec![1, 2, 3]);
    assert_eq!(fixture.collect().await, [1, 2, 3]);
}

#[tokio::test]
async fn closing_is_answered_and_afterwards_all_is_closed() {
    let fixture = fixture();
    // In memory nothing has to be waited for.
    assert_eq!(word(&fixture.answer(ask::CLOSE, fixture.location, Vec::new()), 0), tell::DONE);
    assert!(String::from_utf8_lossy(&fixture.answer(ask::READ, fixture.location, text("k"))).contains("CLOSED"));
    fixture.bridge.forget(fixture.location);
    assert!(fixture.bridge.stats(fixture.location).is_none());
    assert_eq!(word(&fixture.answer(ask::CLOSE, fixture.location, Vec::new()), 0), tell::DONE);
}

/// One record of a row of requests.
fn row(kind: u32, ticket: u32, store: u32, fields: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + fields.len()).unwrap();
    let header = [kind, ticket, store, length].map(u32::to_le_bytes).concat();
    [&header, fields].concat()
}

fn tickets(records: &[u8]) -> Vec<(u32, u32)> {
    Rows(records).map(|row| (row.kind, row.ticket)).collect()
}

#[test]
fn a_row_of_requests_is_answered_in_order_and_wakes_nobody() {
    let fixture = fixture();
    let requests = [
        row(ask::WRITE, 1, fixture.location, &put("k", "value")),
        row(ask::NOTHING, 2, fixture.location, b"taken back"),
        row(ask::OWN, 3, 0, b"the binding's own"),
        row(ask::READ, 4, fixture.location, &text("k")),
        row(ask::READ, 5, u32::MAX, &text("k")),
        row(ask::PUT, 6, fixture.relocation, &[&text("ref")[..], &1e4_f64.to_le_bytes(), &[place::BESIDE]].concat()),
    ];
    fixture.bridge.submit_all(&requests.concat(), vec![Bytes::from_static(b"blob")]);
    let mut records = Vec::new();
    fixture.bridge.collect(&mut records);
    assert_eq!(tickets(&records), [(tell::APPLIED, 1), (tell::FOUND, 4), (tell::ERROR, 5), (tell::STORED, 6)]);
    let rung = fixture.rung.notified();
    assert!(futures_util::FutureExt::now_or_never(rung).is_none());
    assert!(fixture.answer(ask::BLOB_READ, fixture.relocation, text("ref")).ends_with(b"blob"));
}

#[tokio::test]
async fn a_row_for_a_store_that_must_wait_is_answered_by_the_driver() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture();
    let url = format!("file:{}", folder.path().display());
    let store = fixture.bridge.add(Store::Location(LocationStore::open(&url, StoreOptions::default()).unwrap()));
    let requests = [row(ask::WRITE, 1, store, &put("k", "value")), row(ask::READ, 2, store, &text(""))];
    fixture.bridge.submit_all(&requests.concat(), Vec::new());
    let mut answers = Vec::new();
    while answers.len() < 2 {
        answers.extend(tickets(&fixture.collect().await));
    }
    answers.sort_unstable();
    assert_eq!(answers, [(tell::APPLIED, 1), (tell::ERROR, 2)]);
}

/// A store that answers from elsewhere.
fn waiting_store(fixture: &Fixture, folder: &tempfile::TempDir) -> u32 {
    let url = format!("file:{}", folder.path().display());
    fixture.bridge.add(Store::Location(LocationStore::open(&url, StoreOptions::default()).unwrap()))
}

fn ask_for(fixture: &Fixture, store: u32, ticket: u32, hold: bool) {
    let request = Request { kind: ask::READ, ticket, store, fields: &Bytes::from(text("k")) };
    assert!(matches!(fixture.bridge.submit(request, Vec::new(), hold), Taken::UnderWay));
}

async fn answered(fixture: &Fixture, count: usize) -> Vec<(u32, u32)> {
    let mut answers = Vec::new();
    while answers.len() < count {
        answers.extend(tickets(&fixture.collect().await));
    }
    answers.sort_unstable();
    answers
}

#[tokio::test]
async fn what_is_held_begins_when_it_is_told_to_or_with_the_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture();
    let store = waiting_store(&fixture, &folder);
    ask_for(&fixture, store, 1, true);
    assert!(fixture.bridge.stats(store).unwrap().operations.iter().all(|(_, count)| *count == 0));
    fixture.bridge.go_on();
    assert_eq!(answered(&fixture, 1).await, [(tell::MISSING, 1)]);
    fixture.bridge.go_on();
    ask_for(&fixture, store, 2, true);
    ask_for(&fixture, store, 3, false);
    assert_eq!(answered(&fixture, 2).await, [(tell::MISSING, 2), (tell::MISSING, 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_many_threads_at_once_are_all_answered() {
    const THREADS: u32 = 4;
    const EACH: u32 = 500;
    let folder = tempfile::tempdir().unwrap();
    let fixture = Arc::new(fixture());
    let store = waiting_store(&fixture, &folder);
    let submitting = (0..THREADS).map(|thread| {
        let fixture = Arc::clone(&fixture);
        std::thread::spawn(move || {
            for ticket in thread * EACH..(thread + 1) * EACH {
                ask_for(&fixture, store, ticket, ticket % 3 > 0);
            }
            fixture.bridge.go_on();
        })
    });
    for thread in submitting.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    let all: Vec<_> = (0..THREADS * EACH).map(|ticket| (tell::MISSING, ticket)).collect();
    assert_eq!(answered(&fixture, all.len()).await, all);
}

#[tokio::test]
async fn who_comes_back_is_not_woken_and_who_does_not_is() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture();
    let store = waiting_store(&fixture, &folder);
    let mut records = Vec::new();
    fixture.bridge.collect_and_come_back(&mut records);
    ask_for(&fixture, store, 1, false);
    while records.is_empty() {
        tokio::task::yield_now().await;
        fixture.bridge.collect_and_come_back(&mut records);
    }
    assert_eq!(tickets(&records), [(tell::MISSING, 1)]);
    ask_for(&fixture, store, 2, false);
    while !fixture.bridge.has_records() {
        tokio::task::yield_now().await;
    }
    assert!(futures_util::FutureExt::now_or_never(fixture.rung.notified()).is_none());
    fixture.bridge.left();
    assert_eq!(answered(&fixture, 1).await, [(tell::MISSING, 2)]);
}

#[test]
fn a_check_finds_argument_errors_and_does_nothing() {
    let fixture = fixture();
    let check = |fields: Vec<u8>| {
        let request = Request { kind: ask::WRITE, ticket: 1, store: fixture.location, fields: &Bytes::from(fields) };
        fixture.bridge.check(request)
    };
    assert_eq!(check(put("", "value")).unwrap_err().argument_name(), Some("mutations[0].key"));
    check(put("k", "value")).unwrap();
    assert_eq!(word(&fixture.answer(ask::READ, fixture.location, text("k")), 0), tell::MISSING);
}

proptest! {
    #[test]
    fn no_row_makes_it_panic(batch: Vec<u8>, kind in 0_u32..12, fields: Vec<u8>) {
        let fixture = fixture();
        fixture.bridge.submit_all(&batch, Vec::new());
        fixture.bridge.submit_all(&[row(kind, 1, fixture.location, &fields), batch].concat(), vec![Bytes::new()]);
    }

    #[test]
    fn no_request_makes_it_panic(kind in 0_u32..12, fields: Vec<u8>, beside in proptest::collection::vec(any::<u8>(), 0..3), which: bool) {
        let fixture = fixture();
        let store = if which { fixture.location } else { fixture.relocation };
        let beside = beside.into_iter().map(|byte| Bytes::from(vec![byte])).collect();
        // A payload that is asked for never comes: everything else is answered at once.
        let _ = fixture.submit(kind, store, fields, beside);
    }
}

#[tokio::test]
async fn a_store_that_is_closed_waits_for_what_was_asked_before() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().display());
    let fixture = fixture();
    for _ in 0..20 {
        let store = fixture.bridge.add(Store::Relocation(RelocationStore::open(&url, StoreOptions::default()).unwrap()));
        // What is driven beside the others (a put, a blob's read) and what is not.
        let asked = [(ask::PUT, small_blob()), (ask::BLOB_READ, text("ref")), (ask::DELETE, text("ref")), (ask::CLOSE, vec![])];
        let mut batch = Vec::new();
        for (ticket, (kind, fields)) in asked.iter().enumerate() {
            let length = u32::try_from(HEADER + fields.len()).unwrap();
            for word in [*kind, u32::try_from(ticket).unwrap(), store, length] {
                batch.extend_from_slice(&word.to_le_bytes());
            }
            batch.extend_from_slice(fields);
        }
        fixture.bridge.submit_all(&batch, Vec::new());
        let mut answered = 0;
        while answered < asked.len() {
            for row in Rows(&fixture.collect().await) {
                assert_ne!(row.kind, tell::ERROR, "{:?}", Bytes::copy_from_slice(row.fields));
                answered += 1;
            }
        }
    }
}

#[tokio::test]
async fn log_events_come_until_they_are_not_wanted_any_more() {
    let fixture = fixture();
    fixture.bridge.log(Some("debug"));
    tracing::debug!(target: "zlink_store::test", number = 7, "said");
    let heard = fixture.collect().await;
    let row = Rows(&heard).find(|row| String::from_utf8_lossy(row.fields).contains("said")).unwrap();
    assert_eq!(row.kind, tell::LOG);
    assert!(String::from_utf8_lossy(row.fields).contains("number=7"));
    fixture.bridge.log(None);
    tracing::debug!(target: "zlink_store::test", "unheard");
    assert!(!fixture.bridge.has_records());
}
