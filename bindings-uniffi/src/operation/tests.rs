use std::time::Duration;

use tokio::sync::oneshot;

use super::*;
use crate::drive::finish;

fn project(name: &str) -> zlink_store::Project {
    let id = zlink_store::ProjectId::new("w", "p").unwrap();
    zlink_store::Project::open(format!("memory:{name}").as_str(), id, Default::default()).unwrap()
}

fn in_folder(folder: &tempfile::TempDir) -> zlink_store::Project {
    let id = zlink_store::ProjectId::new("w", "p").unwrap();
    zlink_store::Project::open(format!("file:{}", folder.path().display()).as_str(), id, Default::default()).unwrap()
}

fn acquire(project: &zlink_store::Project, wait_ms: u64) -> Running<Option<zlink_store::LockLease>> {
    let options = zlink_store::LockOptions { wait_ms, ..Default::default() };
    Running::new(project.locks().acquire("k", options), crate::locks::GIVE_BACK).unwrap()
}

/// What was given back is free again soon.
async fn becomes_free(project: &zlink_store::Project) {
    let lease = acquire(project, 10_000);
    lease.wait().await;
    assert!(lease.take().unwrap().is_some());
}

#[tokio::test]
async fn a_lease_that_nobody_took_is_released() {
    let project = project("operation-dropped");
    let got = acquire(&project, 0);
    assert!(got.start());
    drop(got);
    becomes_free(&project).await;
}

#[tokio::test]
async fn a_lease_that_came_before_the_cancellation_is_released_and_not_given_out() {
    let project = project("operation-cancelled");
    let got = acquire(&project, 0);
    assert!(got.start());
    got.cancel();
    assert_eq!(got.take().unwrap_err().code(), "CANCELLED");
    becomes_free(&project).await;
}

#[tokio::test]
async fn cancelling_ends_the_wait_and_the_operation() {
    let project = project("operation-waiting");
    let held = acquire(&project, 0);
    held.wait().await;
    let held = held.take().unwrap().unwrap();
    let waiting = Arc::new(acquire(&project, 10_000));
    let (ended, end) = oneshot::channel();
    let waiter = Arc::clone(&waiting);
    tokio::spawn(async move {
        waiter.wait().await;
        ended.send(waiter.take()).ok();
    });
    tokio::task::yield_now().await;
    waiting.cancel();
    assert_eq!(end.await.unwrap().unwrap_err().code(), "CANCELLED");
    // Cancelling again, and after the result was taken, does nothing.
    waiting.cancel();
    // It left the queue, and its place, within the call: nobody stands before the next one.
    let _ = held.release().await.unwrap();
    becomes_free(&project).await;
}

#[tokio::test]
async fn a_result_is_there_once_and_not_early() {
    let project = project("operation-once");
    let held = acquire(&project, 0);
    assert_eq!(held.take().unwrap_err().code(), "INTERNAL");
    assert!(held.start() && held.start());
    let lease = held.take().unwrap().unwrap();
    assert_eq!(held.take().unwrap_err().code(), "INTERNAL");
    let waiting = acquire(&project, 10_000);
    assert!(!waiting.start());
    assert_eq!(waiting.take().unwrap_err().code(), "INTERNAL");
    let _ = lease.release().await.unwrap();
    waiting.wait().await;
    assert!(waiting.take().unwrap().is_some());
}

#[tokio::test]
async fn cancelled_before_the_start_nothing_happens() {
    let project = project("operation-unstarted");
    let early = acquire(&project, 0);
    early.cancel();
    assert!(early.start());
    early.wait().await;
    let error = early.take().unwrap_err();
    assert_eq!((error.code().as_str(), error.result_outcome()), ("CANCELLED", crate::Outcome::NotApplied));
    drop(acquire(&project, 0));
    assert_eq!(project.stats().operations.iter().map(|(_, count)| count).sum::<u64>(), 0);
}

#[tokio::test]
async fn closing_waits_for_what_was_started() {
    let store = zlink_store::LocationStore::open("memory:operation-closing", Default::default()).unwrap();
    let key = zlink_store::Key::new("k").unwrap();
    let read = Running::new(store.read(key), Unwanted::Drop).unwrap();
    read.start();
    finish(async move { store.close().await }).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), read.wait()).await.unwrap();
    assert!(read.take().is_ok());
}

/// A lease whose acquire has ended, and which nobody took, leaves its lock to others whatever comes first: the cancellation or the
/// closing.
#[tokio::test]
async fn a_lease_that_nobody_took_is_given_back_before_its_project_is_closed() {
    for cancelled_first in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let project = in_folder(&folder);
        let got = acquire(&project, 0);
        got.wait().await;
        if cancelled_first {
            got.cancel();
        }
        let mut closing = Box::pin(project.close());
        if !cancelled_first {
            assert!(futures_util::poll!(closing.as_mut()).is_pending());
            got.cancel();
        }
        closing.await;
        let again = in_folder(&folder);
        becomes_free(&again).await;
        again.close().await;
    }
}

#[tokio::test]
async fn a_closing_waits_until_a_lease_is_taken() {
    let project = project("operation-taken");
    let got = acquire(&project, 0);
    assert!(got.start());
    let mut closing = Box::pin(project.close());
    assert!(futures_util::poll!(closing.as_mut()).is_pending());
    assert!(got.take().unwrap().is_some());
    tokio::time::timeout(Duration::from_secs(4), closing).await.unwrap();
}

/// An answer that holds nothing keeps nobody waiting, whoever comes for it late.
#[tokio::test]
async fn a_closing_waits_for_no_answer_that_holds_nothing() {
    let project = project("operation-nothing");
    let held = acquire(&project, 0);
    held.wait().await;
    let held = held.take().unwrap().unwrap();
    let (busy, waiting) = (acquire(&project, 0), acquire(&project, 10_000));
    busy.wait().await;
    assert!(!waiting.start());
    tokio::time::timeout(Duration::from_secs(4), project.close()).await.unwrap();
    assert!(busy.take().unwrap().is_none());
    waiting.wait().await;
    assert_eq!(waiting.take().unwrap_err().code(), "CLOSED");
    drop(held);
}

#[tokio::test]
async fn the_place_of_an_acquire_is_free_once_it_is_cancelled() {
    let project = project("operation-places");
    let locks = project.locks();
    let acquire = |key: String| Running::new(locks.acquire(key, zlink_store::LockOptions::default()), crate::locks::GIVE_BACK);
    for started in [false, true] {
        let all: Vec<_> = (0..16).map(|at| acquire(format!("{started}-{at}")).unwrap()).collect();
        assert!(acquire("one-more".to_owned()).is_err());
        if started {
            assert!(all.iter().all(Running::start));
        }
        all.iter().for_each(Running::cancel);
        drop(acquire("one-more".to_owned()).unwrap());
        drop(all);
    }
}

#[tokio::test]
async fn a_release_that_has_begun_goes_on_when_nobody_waits_for_it() {
    for forgotten in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let project = in_folder(&folder);
        let held = acquire(&project, 0);
        held.wait().await;
        let held = held.take().unwrap().unwrap();
        let release = Running::new(held.release(), Unwanted::Finish).unwrap();
        release.start();
        if forgotten {
            drop(release);
        } else {
            release.cancel();
            assert_eq!(release.take().unwrap_err().code(), "CANCELLED");
        }
        becomes_free(&project).await;
    }
}

fn panicking(when_polled: u32) -> Running<()> {
    let mut polled = 0;
    let work = std::future::poll_fn(move |context| {
        polled += 1;
        assert!(polled < when_polled, "told by the test");
        context.waker().wake_by_ref();
        Poll::Pending
    });
    Running::new(Operation::of(work), Unwanted::Drop).unwrap()
}

#[tokio::test]
async fn a_panic_is_the_end_of_one_operation_and_hangs_no_other() {
    let project = project("operation-panics");
    let held = acquire(&project, 0);
    held.wait().await;
    let held = held.take().unwrap().unwrap();
    // Driven beside those that panic.
    let waiting = acquire(&project, 10_000);
    assert!(!waiting.start());
    for when_polled in [1, 2, 3] {
        let panicking = panicking(when_polled);
        panicking.wait().await;
        let error = panicking.take().unwrap_err();
        assert_eq!((error.code().as_str(), error.result_outcome()), ("INTERNAL", crate::Outcome::Unknown));
        assert!(!error.text().contains("told by the test"), "{}", error.text());
    }
    let _ = held.release().await.unwrap();
    waiting.wait().await;
    assert!(waiting.take().unwrap().is_some());
}

#[tokio::test]
async fn a_panic_in_what_runs_to_its_end_is_an_error_of_its_own() {
    let error = finish(async { panic!("told by the test") }).await.unwrap_err();
    assert_eq!(error.code(), zlink_store::Code::Internal);
}

#[tokio::test]
async fn who_is_told_of_an_end_is_told_once_also_of_a_cancellation() {
    let project = project("operation-told");
    let ended = EndedOperations::new().unwrap();
    let held = acquire(&project, 0);
    // The answer is there at once: nobody need be told.
    assert!(held.start_into(Arc::clone(&ended), 1));
    let held = held.take().unwrap().unwrap();
    let (first, second) = (acquire(&project, 10_000), acquire(&project, 10_000));
    assert!(!first.start_into(Arc::clone(&ended), 2) && !second.start_into(Arc::clone(&ended), 3));
    assert!(ended.take().is_empty());
    first.cancel();
    first.cancel();
    assert_eq!(ended.take(), [2]);
    let _ = held.release().await.unwrap();
    second.wait().await;
    ended.block(60_000);
    assert_eq!(ended.take(), [3]);
    assert!(second.take().unwrap().is_some());
}
