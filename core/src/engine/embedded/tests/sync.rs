//! Nothing is shown before its sync, and what happens when the disk fails.

use std::io;
use std::sync::mpsc;

use tempfile::TempDir;

use super::*;

/// Holds the next batch up, between its evaluation and its write.
struct Gatekeeper {
    arrived: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Gatekeeper {
    /// The batch after the one that is held up fails with `then`.
    fn at(core: &Core<FileStorage>, then: Option<io::ErrorKind>) -> Self {
        let (arrive, arrived) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let mut batches = 0;
        core.storage.faults().set(move || {
            batches += 1;
            if batches == 1 {
                arrive.send(()).unwrap();
                may_go_on.recv().unwrap();
            }
            then.filter(|_| batches == 2).map(Into::into)
        });
        Self { arrived, go_on }
    }

    fn wait(&self) {
        self.arrived.recv_timeout(PATIENCE).expect("a batch is written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_stands_still_while_a_batch_is_synced() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000);
    let core = in_folder(folder.path(), &clock).unwrap();
    let store = location(&core, "");
    store.write(put_for("lease", "old", 50)).await.unwrap();
    store.write(put("other", "x")).await.unwrap();
    let found = ReadResult::Found(StoredValue {
        bytes: "old".into(),
        version: version(&store, "lease").await,
        expires_at: Some(StoreTime::from_unix_ms(1_050)),
        store_now: StoreTime::from_unix_ms(1_049),
    });

    let gatekeeper = Gatekeeper::at(&core, None);
    clock.set(1_049);
    let renewal =
        put_for("lease", "new", 50).condition(Condition::Version { key: key("lease"), expected: version(&store, "lease").await });
    let renewal = tokio::spawn(store.write(renewal));
    gatekeeper.wait();
    clock.set(1_051);
    // The batch has found the lease alive at 1,049; at 1,051 nobody may call it missing.
    assert_eq!(store.read(key("lease")).await.unwrap(), found);
    assert_eq!(store.ping().await.unwrap().unix_ms(), 1_049);
    let scan = page(store.scan(ScanRequest::new("", 1)).await.unwrap());
    assert_eq!((names(&scan), scan.store_now.unix_ms()), (vec!["lease"], 1_049));

    gatekeeper.go_on.send(()).unwrap();
    let WriteResult::Applied { store_now, .. } = renewal.await.unwrap().unwrap() else { panic!("a conflict") };
    assert_eq!(store_now.unix_ms(), 1_049);
    let ReadResult::Found(found) = store.read(key("lease")).await.unwrap() else { panic!("missing") };
    assert_eq!((found.store_now.unix_ms(), found.expires_at.unwrap().unix_ms()), (1_051, 1_099));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_reads_the_clock_once() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::ticking()).unwrap();
    let store = location(&core, "");
    store.write(put("seed", "x")).await.unwrap();
    let gatekeeper = Gatekeeper::at(&core, None);
    let seed = tokio::spawn(store.write(put("seed", "y")));
    gatekeeper.wait();
    // These wait together, so they come into one batch.
    let mut operations: Vec<_> = (0..5).map(|index| store.write(put_for(&format!("k{index}"), "v", 50_000))).collect();
    for operation in &mut operations {
        assert!(operation.poll_now().is_pending());
    }
    gatekeeper.go_on.send(()).unwrap();
    seed.await.unwrap().unwrap();
    let mut times = Vec::new();
    for operation in operations {
        let WriteResult::Applied { store_now, .. } = operation.await.unwrap() else { panic!("a conflict") };
        times.push(store_now);
    }
    assert!(times.iter().all(|time| *time == times[0]), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_goes_on_after_a_batch_that_failed_or_changed_nothing() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000);
    let core = in_folder(folder.path(), &clock).unwrap();
    let store = location(&core, "");
    store.write(put("a", "1")).await.unwrap();
    store.write(put("a", "2").condition(Condition::Missing { key: key("a") })).await.unwrap();
    clock.set(2_000);
    assert_eq!(store.ping().await.unwrap().unix_ms(), 2_000);
    let mut failed = false;
    core.storage.faults().set(move || (!std::mem::replace(&mut failed, true)).then(|| io::ErrorKind::Other.into()));
    store.write(put("a", "2")).await.unwrap_err();
    clock.set(3_000);
    assert_eq!(store.ping().await.unwrap().unix_ms(), 3_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_shown_before_its_sync() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    let store = location(&core, "");
    store.write(put("seed", "x")).await.unwrap();
    let gatekeeper = Gatekeeper::at(&core, None);
    let create = || put("a", "1").condition(Condition::Missing { key: key("a") });
    let (first, second) = (tokio::spawn(store.write(create())), tokio::spawn(store.write(create())));
    gatekeeper.wait();
    assert!(matches!(store.read(key("a")).await.unwrap(), ReadResult::Missing { .. }));
    assert!(!first.is_finished() && !second.is_finished(), "neither the value nor the conflict it causes");
    gatekeeper.go_on.send(()).unwrap();
    let applied = [first.await.unwrap().unwrap(), second.await.unwrap().unwrap()];
    assert_eq!(applied.iter().filter(|result| matches!(result, WriteResult::Applied { .. })).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_is_unknown_and_the_folder_is_opened_again() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    let store = location(&core, "");
    store.write(put("a", "1").mutation(Mutation::put(key("b"), "1"))).await.unwrap();
    let cursor = page(store.scan(ScanRequest::new("", 1)).await.unwrap()).next_cursor.unwrap();
    for (kind, code) in [(io::ErrorKind::StorageFull, Code::OutOfMemory), (io::ErrorKind::Other, Code::Unavailable)] {
        let mut failed = false;
        core.storage.faults().set(move || (!std::mem::replace(&mut failed, true)).then(|| kind.into()));
        let error = store.write(put("a", "2")).await.unwrap_err();
        assert_eq!((error.code(), error.outcome(), error.retryable()), (code, Outcome::Unknown, true), "{error}");
        assert!(matches!(store.read(key("a")).await.unwrap(), ReadResult::Found(_)), "reads go on");
        until_writable(&store).await;
    }
    assert!(matches!(store.read(key("a")).await.unwrap(), ReadResult::Found(_)));
    let after = store.scan(ScanRequest::new("", 1).after(cursor)).await.unwrap();
    assert_eq!(after, ScanResult::Expired, "a snapshot ends when the folder is opened again");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_changed_nothing_in_a_failed_batch_is_not_applied() {
    let folder = TempDir::new().unwrap();
    let core = in_folder(folder.path(), &Set::at(1_000)).unwrap();
    let store = location(&core, "");
    store.write(put("seed", "x")).await.unwrap();
    let gatekeeper = Gatekeeper::at(&core, Some(io::ErrorKind::Other));
    let seed = tokio::spawn(store.write(put("seed", "y")));
    gatekeeper.wait();
    // These two wait together, so they come into one batch: the second conflicts with the first.
    let create = || put("a", "1").condition(Condition::Missing { key: key("a") });
    let mut operations = [store.write(create()), store.write(create())];
    for operation in &mut operations {
        assert!(operation.poll_now().is_pending());
    }
    gatekeeper.go_on.send(()).unwrap();
    seed.await.unwrap().unwrap();
    let mut outcomes = Vec::new();
    for operation in operations {
        outcomes.push(operation.await.unwrap_err().outcome());
    }
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::NotApplied]);
}

async fn until_writable(store: &LocationStore) {
    let written = async {
        while let Err(error) = store.write(put("b", "2")).await {
            assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("the folder is opened again");
}

async fn version(store: &LocationStore, name: &str) -> Version {
    match store.read(key(name)).await.unwrap() {
        ReadResult::Found(found) => found.version,
        ReadResult::Missing { .. } => panic!("missing"),
    }
}
