//! Answers that get lost: what is found again, what is unknown, and that nothing is done twice.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::engine::redis::project::leases::{ACQUIRE, RELEASE};
use crate::engine::redis::project::state::{DELETE, SET};
use zlink_test_servers::Action;

/// A process whose scripts the server knows, so that the next call of one is an EVALSHA.
async fn warm(rig: &Rig) -> Project {
    let project = rig.process();
    let state = state(&project);
    set(&state, "warm", "1").await;
    assert_eq!(state.delete("warm", None).await.unwrap(), StateDeleteResult::Deleted);
    let lease = take(&project.locks(), "warm").await;
    renew(&lease).await;
    release(&lease).await;
    rig.proxy.record();
    project
}

fn count(rig: &Rig, script: &'static Script) -> usize {
    rig.proxy.recorded().iter().filter(|request| calls(script)(request)).count()
}

#[tokio::test]
async fn a_set_finds_its_own_work() {
    let rig = Rig::start(&[]);
    let project = warm(&rig).await;
    let options = StateWriteOptions { ttl_seconds: Some(60), expected_version: Some(0) };
    for action in [Action::DropReply, Action::CutReply] {
        rig.proxy.once("EVALSHA", 0, action);
        let entry = stored(state(&project).set("k", r#"{"a":1}"#, options).await);
        assert_eq!((entry.version, entry.value.as_str()), (1, r#"{"a":1}"#));
        assert_eq!(state(&project).get("k").await.unwrap(), Some(entry));
        assert_eq!(count(&rig, &SET), 1, "never sent again");
        assert_eq!(state(&project).delete("k", Some(1)).await.unwrap(), StateDeleteResult::Deleted);
        rig.proxy.recorded();
    }
}

#[tokio::test]
async fn a_set_that_finds_no_mark_of_its_own_is_unknown() {
    let rig = Rig::start(&[]);
    let project = warm(&rig).await;
    set(&state(&project), "k", "0").await;
    for action in [Action::CutBefore, Action::CutInside] {
        rig.proxy.once("EVALSHA", 0, action);
        let error = state(&project).set("k", "1", StateWriteOptions::default()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown));
    }
    assert_eq!(count(&rig, &SET), 3);
    assert_eq!(state(&project).get("k").await.unwrap().unwrap().value.as_str(), "0");
}

/// † A delete that may have been done is never done again, and never a conflict.
#[tokio::test]
async fn a_delete_is_unknown_and_deletes_nothing_that_came_later() {
    let rig = Rig::start(&[]);
    let project = warm(&rig).await;
    for expected in [None, Some(1)] {
        set(&state(&project), "k", "0").await;
        rig.proxy.recorded();
        rig.proxy.once("EVALSHA", 0, Action::DropReply);
        let error = state(&project).delete("k", expected).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown));
        assert_eq!(count(&rig, &DELETE), 1);
        assert_eq!(state(&project).get("k").await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_acquire_finds_its_own_lease() {
    let rig = Rig::start(&[]);
    let project = warm(&rig).await;
    for action in [Action::DropReply, Action::CutAfter, Action::CutBefore] {
        rig.proxy.once("EVALSHA", 0, action);
        let lease = take(&project.locks(), "k").await;
        assert_eq!(rig.ask("GET", "t", &[]).number(), i64::try_from(lease.fencing_token()).unwrap(), "granted once");
        assert_eq!((rig.leases(), count(&rig, &ACQUIRE)), (1, 2));
        release(&lease).await;
        assert_eq!(rig.leases(), 0);
    }
}

#[tokio::test]
async fn a_waiter_finds_its_own_place_and_its_own_lease() {
    let rig = Rig::start(&[]);
    let project = warm(&rig).await;
    let holder = take(&project.locks(), "k").await;
    rig.proxy.once("EVALSHA", 0, Action::DropReply);
    let waiter = begin(project.locks().acquire("k", waiting(5_000)));
    until("it waits", || rig.waiters() > 0).await;
    assert_eq!((rig.waiters(), rig.ask("HLEN", "w", &[]).number()), (1, 1));
    // The answer that grants it is lost, too.
    let other = rig.process();
    rig.proxy.judge({
        let (released, dropped) = (AtomicBool::new(false), AtomicBool::new(false));
        move |request| {
            released.fetch_or(calls(&RELEASE)(request), Ordering::SeqCst);
            let grants = calls(&ACQUIRE)(request) && released.load(Ordering::SeqCst);
            if grants && !dropped.swap(true, Ordering::SeqCst) { Action::DropReply } else { Action::Pass }
        }
    });
    let attached = other.locks().attach(&holder.id()).await.unwrap().unwrap();
    release(&attached).await;
    waiter.await.unwrap().unwrap().expect("it is its turn");
    assert_eq!((rig.leases(), rig.waiters()), (1, 0));
}

#[tokio::test]
async fn a_release_and_a_renewal_are_made_sure_of() {
    let rig = Rig::start(&[]);
    let project = warm(&rig).await;
    for action in [Action::DropReply, Action::CutBefore] {
        let lease = take(&project.locks(), "k").await;
        rig.proxy.once("EVALSHA", 0, action.clone());
        renew(&lease).await;
        rig.proxy.recorded();
        rig.proxy.once("EVALSHA", 0, action);
        release(&lease).await;
        assert_eq!((count(&rig, &RELEASE), rig.leases()), (2, 0));
    }
    let lease = take(&project.locks(), "k").await;
    release(&project.locks().attach(&lease.id()).await.unwrap().unwrap()).await;
    assert_eq!(lease.release().await.unwrap(), ReleaseResult::Lost, "somebody else did that");
}

/// † Where replicas must acknowledge, nobody is told of what they do not have.
#[tokio::test]
async fn what_no_replica_has_is_unknown_and_an_acquire_is_taken_back() {
    let rig = Rig::start(&[]);
    let project = rig.process_for("&min_acked_replicas=1", 700);
    let error = state(&project).set("k", "1", StateWriteOptions::default()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
    let error = project.locks().acquire("k", LockOptions::default()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
    until("it is taken back", || rig.leases() == 0).await;

    let settings = zlink_test_servers::Settings { replica_of: Some(rig.server.port()), ..Default::default() };
    let replica = RedisServer::with(settings).unwrap();
    until("the replica is there", || rig.say(&["INFO", "replication"]).text().contains("state=online")).await;
    let project = rig.process_with("&min_acked_replicas=1");
    set(&state(&project), "k", "2").await;
    assert!(replica.say(&["GET", &format!("{TAG}:s:1:n:k")]).text().ends_with('2'));
    release(&take(&project.locks(), "warm").await).await;
    let lease = take(&project.locks(), "k").await;
    assert_eq!(held(&replica.say(&["HKEYS", &format!("{TAG}:l")])), 1);
    rig.proxy.once("EVALSHA", 0, Action::DropReply);
    release(&lease).await;
    assert_eq!(held(&replica.say(&["HKEYS", &format!("{TAG}:l")])), 0);
}
