//! State, locks and leases over a bridge.

use super::super::wire::Reader;
use super::*;
use crate::contract::ProjectId;
use crate::project::{Project, ProjectOptions};

pub(super) struct Projects {
    pub(super) fixture: Fixture,
    pub(super) project: u32,
    pub(super) locks: u32,
    pub(super) inline: bool,
}

fn projects() -> Projects {
    projects_at("memory:")
}

pub(super) fn projects_at(url: &str) -> Projects {
    let fixture = fixture();
    let id = ProjectId::new("workspace", "project").unwrap();
    let project = Project::open(url, id, ProjectOptions::default()).unwrap();
    let inline = project.answers_inline();
    let project = fixture.bridge.add(Store::Project(project));
    let locks = fixture.bridge.locks(project, None).unwrap();
    Projects { fixture, project, locks, inline }
}

pub(super) fn left_out() -> Vec<u8> {
    vec![0]
}

pub(super) fn number(number: f64) -> Vec<u8> {
    [&[1][..], &number.to_le_bytes()].concat()
}

fn set(expected: Vec<u8>, ttl: Vec<u8>, json: &str) -> Vec<u8> {
    [text("ns"), text("key"), expected, ttl, text(json)].concat()
}

pub(super) fn acquire(key: &str, wait: Vec<u8>) -> Vec<u8> {
    [vec![1], text("ns"), text(key), wait, left_out()].concat()
}

/// The argument of an error record.
fn argument(record: Vec<u8>) -> String {
    assert_eq!(word(&record, 0), tell::ERROR);
    let fields = Bytes::from(record).slice(HEADER..);
    let mut fields = Reader::new(&fields);
    assert_eq!(fields.string().unwrap(), b"INVALID_ARGUMENT");
    String::from_utf8(fields.string().unwrap().to_vec()).unwrap()
}

#[test]
fn entries_come_and_go() {
    let Projects { fixture, project, .. } = projects();
    let key = || [text("ns"), text("key")].concat();
    assert_eq!(word(&fixture.answer(ask::STATE_GET, project, key()), 0), tell::ABSENT);
    let stored = fixture.answer(ask::STATE_SET, project, set(number(0.0), number(60.0), "{ \"a\": 1 }"));
    assert_eq!(word(&stored, 0), tell::ENTRY);
    assert!(stored.ends_with(b"{\"a\":1}"));
    let numbers = |record: &[u8]| [0, 1, 2, 3].map(|at| f64::from_le_bytes(*record[HEADER + at * 8..].first_chunk().unwrap()));
    let [version, created, updated, expires] = numbers(&stored);
    assert_eq!((version, created, expires), (1.0, updated, updated + 60_000.0));
    assert_eq!(word(&fixture.answer(ask::STATE_SET, project, set(number(0.0), left_out(), "1")), 0), tell::VERSION_CONFLICT);
    let stored = fixture.answer(ask::STATE_SET, project, set(number(1.0), left_out(), "1"));
    assert!(numbers(&stored)[0] == 2.0 && numbers(&stored)[3].is_nan());
    assert_eq!(fixture.answer(ask::STATE_GET, project, key()), stored);
    let delete = |expected| fixture.answer(ask::STATE_DELETE, project, [key(), expected].concat());
    assert_eq!(word(&delete(number(1.0)), 0), tell::VERSION_CONFLICT);
    assert_eq!(word(&delete(number(2.0)), 0), tell::DONE);
    assert_eq!(word(&delete(left_out()), 0), tell::ABSENT);
}

#[test]
fn wrong_numbers_and_names_name_the_argument() {
    let Projects { fixture, project, locks, .. } = projects();
    for wrong in [-1.0, 0.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_992.0] {
        assert_eq!(argument(fixture.answer(ask::STATE_SET, project, set(number(wrong), left_out(), "1"))), "expectedVersion");
        assert_eq!(argument(fixture.answer(ask::STATE_SET, project, set(left_out(), number(wrong), "1"))), "ttlSeconds");
        assert_eq!(argument(fixture.answer(ask::LOCK_ACQUIRE, locks, acquire("k", number(wrong)))), "waitMs");
    }
    assert_eq!(argument(fixture.answer(ask::STATE_SET, project, set(left_out(), left_out(), "nul"))), "value");
    assert_eq!(argument(fixture.answer(ask::STATE_GET, project, [text(""), text("k")].concat())), "namespace");
    assert_eq!(argument(fixture.answer(ask::STATE_GET, project, [text("ns"), text("k\n")].concat())), "key");
    assert_eq!(argument(fixture.answer(ask::STATE_GET, project, [text("ns"), vec![1, 0, 0, 0, 0xff]].concat())), "key");
}

#[test]
fn a_lease_is_addressed_by_its_number() {
    let Projects { fixture, locks, .. } = projects();
    let lease = fixture.answer(ask::LOCK_ACQUIRE, locks, acquire("k", left_out()));
    assert_eq!(word(&lease, 0), tell::LEASE);
    let number_of = word(&lease, 2);
    assert_eq!(word(&fixture.answer(ask::LOCK_ACQUIRE, locks, acquire("k", left_out())), 0), tell::ABSENT);
    let fields = Bytes::from(lease).slice(HEADER + 16..);
    let id = String::from_utf8(Reader::new(&fields).string().unwrap().to_vec()).unwrap();
    let attached = fixture.answer(ask::LOCK_ATTACH, locks, text(&id));
    assert_eq!(word(&attached, 0), tell::LEASE);
    let renewed = fixture.answer(ask::LOCK_RENEW, number_of, number(5_000.0));
    assert_eq!((word(&renewed, 0), renewed.len()), (tell::RENEWED, HEADER + 8));
    assert_eq!(argument(fixture.answer(ask::LOCK_RENEW, number_of, number(4_999.0))), "leaseMs");
    for _ in 0..2 {
        assert_eq!(word(&fixture.answer(ask::LOCK_RELEASE, number_of, vec![]), 0), tell::DONE);
    }
    assert_eq!(word(&fixture.answer(ask::LOCK_RELEASE, word(&attached, 2), vec![]), 0), tell::LOST);
    assert_eq!(word(&fixture.answer(ask::LOCK_ATTACH, locks, text(&id)), 0), tell::ABSENT);
}

#[tokio::test]
async fn a_wait_does_not_hold_up_others_and_can_be_cancelled() {
    let Projects { fixture, locks, .. } = projects();
    let lease = fixture.answer(ask::LOCK_ACQUIRE, locks, acquire("k", left_out()));
    let waiting = fixture.submit(ask::LOCK_ACQUIRE, locks, acquire("k", number(10_000.0)), vec![]);
    assert!(matches!(waiting, Taken::UnderWay));
    assert_eq!(word(&fixture.answer(ask::LOCK_ACQUIRE, locks, acquire("other", left_out())), 0), tell::LEASE);
    fixture.bridge.cancel(7);
    assert_eq!(word(&fixture.collect().await, 0), tell::CANCELLED);
    let waiting = fixture.submit(ask::LOCK_ACQUIRE, locks, acquire("k", number(10_000.0)), vec![]);
    assert!(matches!(waiting, Taken::UnderWay));
    assert_eq!(word(&fixture.answer(ask::LOCK_RELEASE, word(&lease, 2), vec![]), 0), tell::DONE);
    assert_eq!(word(&fixture.collect().await, 0), tell::LEASE);
}
