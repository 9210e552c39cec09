//! The upkeep may have much to do; nobody waits for all of it.

use std::sync::atomic::AtomicUsize;

use tempfile::TempDir;

use super::*;

const TIMEOUT_MS: u64 = 2_000;
/// Commits of the upkeep, each of which takes so long that all of them take longer than the operation timeout.
const STEPS: usize = 60;
const STEP: Duration = Duration::from_millis(40);
/// What has expired when it begins: 256 go in a commit.
const DEAD: usize = STEPS * 256;

fn dead(from: usize) -> WriteRequest {
    let mut request = WriteRequest::new();
    for number in from..from + limits::MAX_WRITE_KEYS {
        request = request.mutation(Mutation::put_for(key(&format!("dead{number}")), "x", ms(10_000)));
    }
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upkeep_that_is_longer_than_the_operation_timeout_holds_up_no_operation() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000);
    let core = in_folder(folder.path(), &clock).unwrap();
    let filling = location(&core, "");
    for from in (0..DEAD).step_by(limits::MAX_WRITE_KEYS) {
        filling.write(dead(from)).await.unwrap();
    }
    let store = timed_location(&core, "", TIMEOUT_MS);
    let batches = Arc::new(AtomicUsize::new(0));
    core.storage.faults().set({
        let batches = Arc::clone(&batches);
        move || {
            batches.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(STEP);
            None
        }
    });

    clock.set(11_000);
    let began = ambient::monotonic();
    let upkeep = tokio::spawn({
        let core = Arc::clone(&core);
        async move { core.upkeep().await }
    });
    let mut own = 0;
    while !upkeep.is_finished() {
        store.write(put("k", "v")).await.unwrap();
        store.write(WriteRequest::new().mutation(Mutation::delete(key("k")))).await.unwrap();
        assert!(matches!(store.read(key("dead7")).await.unwrap(), ReadResult::Missing { .. }));
        assert!(names(&page(store.scan(ScanRequest::new("", 10)).await.unwrap())).is_empty());
        own += 2;
    }
    upkeep.await.unwrap().unwrap();
    assert!(began.elapsed() > Duration::from_millis(TIMEOUT_MS), "it was no longer than the timeout");
    // In small steps (two upkeeps at once may share one), and each of ours found its place among them.
    let batches = batches.load(Ordering::SeqCst);
    assert!(batches >= STEPS / 2 && own >= 10, "{batches} batches, {own} writes of ours");
    let left = core.storage.observe(crate::call::Call::reading(ambient::monotonic() + PATIENCE), |view, _| {
        let mut left = 0;
        view.walk(Table::Due, std::ops::Bound::Unbounded, &mut |_, _| {
            left += 1;
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(left)
    });
    assert_eq!(left.await.unwrap(), 0);
}
