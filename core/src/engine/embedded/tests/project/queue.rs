//! Who waits for a lock: in order, and nobody held up by who is gone.

use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;

/// The key of the lock `k` of project `p` in the namespace `default`.
fn default_lock() -> Vec<u8> {
    [&[1][..], b"w", &[1], b"p", &[7], b"default", b"k"].concat()
}

async fn in_order<S: Storage>(core: &Arc<Core<S>>) {
    let project = project(core, "p");
    let mut held = take(&project.locks(), "k").await;
    let mut waiters: Vec<Acquiring> = (0..20).map(|_| queued(&project.locks(), "k")).collect();
    while !waiters.is_empty() {
        let first = waiters.remove(0);
        assert_eq!(project.locks().acquire("k", waiting(0)).await.unwrap().map(|lease| lease.id()), None, "nobody pushes in");
        free(&held).await;
        // It is free, or the first one's already.
        assert_eq!(project.locks().acquire("k", waiting(0)).await.unwrap().map(|lease| lease.id()), None, "nobody overtakes");
        let next = had(first).await;
        assert!(next.fencing_token() > held.fencing_token());
        assert!(waiters.iter_mut().all(is_pending));
        held = next;
    }
    free(&held).await;
    take(&project.locks(), "k").await;
}

#[tokio::test]
async fn waiters_are_served_in_order_in_memory() {
    in_order(&in_memory(&Set::at(1_000))).await;
}

#[tokio::test]
async fn waiters_are_served_in_order_in_a_folder() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    in_order(&core).await;
}

#[tokio::test]
async fn who_is_dropped_holds_nobody_up() {
    let core = in_memory(&Set::at(1_000));
    let project = project(&core, "p");
    let held = take(&project.locks(), "k").await;
    let mut waiters: Vec<Acquiring> = (0..10).map(|_| queued(&project.locks(), "k")).collect();
    // The first, one in the middle, the last; then those who stay, in their order.
    drop((waiters.remove(0), waiters.remove(3), waiters.pop()));
    free(&held).await;
    for waiter in waiters {
        free(&had(waiter).await).await;
    }
    let held = take(&project.locks(), "k").await;
    drop((queued(&project.locks(), "k"), queued(&project.locks(), "k")));
    assert!(core.waiting.is_nobody(&default_lock()));
    free(&held).await;
    until_free(&project, "k").await;
}

#[tokio::test]
async fn a_lock_that_comes_to_who_is_dropped_goes_on_to_the_next() {
    let core = in_memory(&Set::at(1_000));
    let project = project(&core, "p");
    for _ in 0..50 {
        let held = take(&project.locks(), "k").await;
        let (first, second) = (queued(&project.locks(), "k"), queued(&project.locks(), "k"));
        free(&held).await;
        // It may have the lock by now, and nobody has heard of it.
        if random(2) == 0 {
            tokio::task::yield_now().await;
        }
        drop(first);
        free(&had(second).await).await;
        until_free(&project, "k").await;
    }
    eventually(|| core.storage.lengths()[Table::Locks as usize] == 0).await;
}

#[tokio::test]
async fn who_does_not_poll_leaves_the_queue_in_time() {
    let core = in_memory(&Set::at(1_000));
    let project = project(&core, "p");
    let held = take(&project.locks(), "k").await;
    let mut asleep = project.locks().acquire("k", waiting(20));
    assert!(is_pending(&mut asleep));
    assert!(!core.waiting.is_nobody(&default_lock()));
    eventually(|| core.waiting.is_nobody(&default_lock())).await;
    let behind = queued(&project.locks(), "k");
    free(&held).await;
    free(&had(behind).await).await;
    assert!(asleep.await.unwrap().is_none());
}

#[tokio::test]
async fn closing_ends_every_wait_at_once() {
    let core = in_memory(&Set::at(1_000));
    let (ours, theirs) = (project(&core, "p"), project(&core, "p"));
    let held = take(&theirs.locks(), "k").await;
    let waiters: Vec<_> = (0..5).map(|_| tokio::spawn(queued(&ours.locks(), "k"))).collect();
    let stays = queued(&theirs.locks(), "k");
    ours.close().await;
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap_err().code(), Code::Closed);
    }
    free(&held).await;
    free(&had(stays).await).await;
    assert_eq!(ours.locks().acquire("k", waiting(1)).await.unwrap_err().code(), Code::Closed);
}

async fn never_two<S: Storage>(core: &Arc<Core<S>>) {
    let project = project(core, "p");
    let (taken, token) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut workers = Vec::new();
    for _ in 0..8 {
        let (project, taken, token) = (project.clone(), Arc::clone(&taken), Arc::clone(&token));
        workers.push(tokio::spawn(async move {
            for _ in 0..25 {
                let lease = had(project.locks().acquire("k", waiting(limits::MAX_LOCK_WAIT_MS))).await;
                assert!(!taken.swap(true, Ordering::SeqCst), "two have it");
                assert!(token.swap(lease.fencing_token(), Ordering::SeqCst) < lease.fencing_token());
                tokio::task::yield_now().await;
                taken.store(false, Ordering::SeqCst);
                free(&lease).await;
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn never_two_holders_in_memory() {
    never_two(&in_memory(&Set::at(1_000))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn never_two_holders_in_a_folder() {
    let folder = TempDir::new().unwrap();
    never_two(&in_folder(folder.path(), &Set::at(1_000)).unwrap()).await;
}
