//! Leases that nobody knows, tokens, and what a folder keeps.

use std::io;
use std::sync::mpsc;

use futures_util::future::{Either, select};
use tempfile::TempDir;

use super::*;

#[test]
fn what_need_not_wait_is_answered_at_the_first_poll_in_memory() {
    let project = project(&in_memory(&Set::at(1_000)), "p");
    let entries = project.state().namespace("n").unwrap();
    assert!(project.answers_inline());
    assert!(matches!(now(entries.set("k", "1", StateWriteOptions::default())).unwrap(), StateSetResult::Stored(_)));
    assert!(now(entries.get("k")).unwrap().is_some());
    assert_eq!(now(entries.delete("k", None)).unwrap(), StateDeleteResult::Deleted);
    let lease = now(project.locks().acquire("k", waiting(limits::MAX_LOCK_WAIT_MS))).unwrap().unwrap();
    assert!(now(project.locks().acquire("k", waiting(0))).unwrap().is_none());
    assert!(now(project.locks().attach(&lease.id())).unwrap().is_some());
    assert!(matches!(now(lease.renew(None)).unwrap(), RenewResult::Renewed { .. }));
    assert_eq!(now(lease.release()).unwrap(), ReleaseResult::Released);
}

/// Acquires that are dropped at any moment, beside some that go on, on a few locks.
async fn cancelled_at_random<S: Storage>(core: &Arc<Core<S>>, times: usize) -> Project {
    let project = project(core, "p");
    for round in 0..times {
        let key = format!("k{}", round % 4);
        let holder = project.locks().acquire(key.as_str(), waiting(0)).await.unwrap();
        let acquiring = project.locks().acquire(key.as_str(), waiting([0, limits::MAX_LOCK_WAIT_MS][random(2)]));
        let released = async {
            if let Some(holder) = &holder {
                free(holder).await;
            }
        };
        let after = async {
            for _ in 0..random(6) {
                tokio::task::yield_now().await;
            }
            if random(4) == 0 {
                tokio::time::sleep(Duration::from_micros(u64::try_from(random(800)).unwrap())).await;
            }
        };
        let racing = async {
            match select(acquiring, Box::pin(after)).await {
                Either::Left((lease, _)) => lease.unwrap(),
                Either::Right(_) => None,
            }
        };
        let ((), lease) = tokio::join!(released, racing);
        if let Some(lease) = lease {
            free(&lease).await;
        }
    }
    for key in 0..4 {
        until_free(&project, &format!("k{key}")).await;
    }
    project
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_cancelled_acquires_leave_no_lease_in_memory() {
    let core = in_memory(&Set::at(1_000));
    cancelled_at_random(&core, 1_000).await;
    let left = || core.storage.lengths()[Table::Locks as usize] + core.storage.lengths()[Table::Leases as usize];
    eventually(|| left() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_cancelled_acquires_leave_no_lease_in_a_folder() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    cancelled_at_random(&core, 1_000).await;
}

#[tokio::test]
async fn what_is_cancelled_before_the_closing_is_given_back_before_it() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000);
    for _ in 0..20 {
        let project = project(&in_folder(folder.path(), &clock).unwrap(), "p");
        project.ping().await.unwrap();
        let mut acquiring = project.locks().acquire("k", waiting([0, 100][random(2)]));
        // A quick disk may have answered already; then the lease is known.
        if let Poll::Ready(lease) = acquiring.poll_now() {
            free(&lease.unwrap().unwrap()).await;
        }
        for _ in 0..random(4) {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        drop(acquiring);
        project.close().await;
        let project = timed(&in_folder(folder.path(), &clock).unwrap(), "p", 5_000);
        free(&take(&project.locks(), "k").await).await;
        project.close().await;
    }
}

#[tokio::test]
async fn a_grant_of_an_unknown_outcome_is_given_back() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    let project = project(&core, "p");
    project.ping().await.unwrap();
    let mut batches = 0;
    core.storage.faults().set(move || {
        batches += 1;
        (batches == 1).then(|| io::ErrorKind::Other.into())
    });
    let error = project.locks().acquire("k", waiting(0)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown);
    let had = async {
        loop {
            match project.locks().acquire("k", waiting(0)).await {
                Ok(Some(lease)) => return lease,
                Ok(None) => {}
                Err(error) => assert!(error.retryable(), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, had).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_a_wait_is_bounded_by_the_operation_timeout() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    let project = timed(&core, "p", 2_000);
    while project.ping().await.is_err() {}
    let (go_on, may_go_on) = mpsc::channel::<()>();
    core.storage.faults().set(move || {
        // Once: nobody sends.
        let _ = may_go_on.recv();
        None
    });
    // Well before the wait is over, which would be answered with `None`.
    let error = project.locks().acquire("k", waiting(limits::MAX_LOCK_WAIT_MS)).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Timeout, Outcome::Unknown));
    drop(go_on);
    let given_back = async {
        while !matches!(project.locks().acquire("k", waiting(0)).await, Ok(Some(_))) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, given_back).await.unwrap();
}

#[tokio::test]
async fn tokens_grow_over_every_end_of_a_lease() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000_000);
    let mut last = 0;
    for life in 0..6 {
        // From its third life on the machine's clock is far behind.
        clock.set(if life < 3 { 1_000_000 } else { 1 });
        let core = in_folder(folder.path(), &clock).unwrap();
        let project = project(&core, "p");
        for _ in 0..3 {
            let lease = take(&project.locks(), "k").await;
            assert!(lease.fencing_token() > last && lease.fencing_token() <= limits::MAX_SAFE_INTEGER);
            last = lease.fencing_token();
            assert!(last >= 1_000_000_000, "the clock's µs");
            free(&lease).await;
        }
        let other = take(&project.locks(), "other").await;
        free(&other).await;
        project.close().await;
        drop(core);
    }
}

#[tokio::test]
async fn a_token_grows_over_its_leases_own_without_the_projects_count() {
    let clock = Set::at(1_000);
    let core = in_memory(&clock);
    let project = project(&core, "p");
    for _ in 0..10 {
        take(&project.locks(), "k").await;
        clock.set(clock.now().unix_ms() + limits::MAX_LEASE_MS);
    }
    let lease = take(&project.locks(), "k").await;
    let call = crate::call::Call::writing(ambient::monotonic() + PATIENCE);
    let forgotten = core.storage.commit(call, |draft, _| {
        let scope = [&[1][..], b"w", &[1], b"p"].concat();
        assert!(draft.get(Table::Projects, &scope)?.is_some());
        draft.remove(Table::Projects, &scope);
        Ok(())
    });
    forgotten.await.unwrap();
    clock.set(clock.now().unix_ms() + limits::MAX_LEASE_MS);
    assert!(take(&project.locks(), "k").await.fencing_token() > lease.fencing_token());
}

#[tokio::test]
async fn a_folder_keeps_leases_and_entries() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000);
    let first = project(&in_folder(folder.path(), &clock).unwrap(), "p");
    let (id, token) = {
        let lease = take(&first.locks(), "k").await;
        (lease.id(), lease.fencing_token())
    };
    let entries = first.state().namespace("n").unwrap();
    let StateSetResult::Stored(entry) = entries.set("k", "[1]", StateWriteOptions::default()).await.unwrap() else { panic!() };
    first.close().await;

    let second = project(&in_folder(folder.path(), &clock).unwrap(), "p");
    assert_eq!(second.state().namespace("n").unwrap().get("k").await.unwrap(), Some(entry));
    assert!(second.locks().acquire("k", waiting(0)).await.unwrap().is_none());
    let lease = second.locks().attach(&id).await.unwrap().unwrap();
    assert_eq!((lease.fencing_token(), lease.key()), (token, "k"));
    let waiter = queued(&second.locks(), "k");
    free(&lease).await;
    assert!(had(waiter).await.fencing_token() > token);
    second.close().await;
}

#[tokio::test]
async fn a_lease_that_expires_while_somebody_waits_is_taken() {
    let clock = Set::at(1_000);
    let project = project(&in_memory(&clock), "p");
    let held = take(&project.locks(), "k").await;
    let waiter = queued(&project.locks(), "k");
    clock.set(held.expires_at().unix_ms());
    assert!(had(waiter).await.fencing_token() > held.fencing_token());
    assert_eq!(held.release().await.unwrap(), ReleaseResult::Lost);
    assert_eq!(held.renew(None).await.unwrap(), RenewResult::Lost);
}
