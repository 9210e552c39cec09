//! The folder: who may have it, and what is in it after a restart.

use std::fs::{self, File};
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::{Endpoint, Project, ProjectOptions, StoreOptions};

pub(super) fn open(folder: &Path) -> Result<LocationStore, Error> {
    LocationStore::open(Endpoint::File(folder.to_owned()), StoreOptions::default())
}

fn version(result: WriteResult) -> Version {
    match result {
        WriteResult::Applied { put_versions, .. } => put_versions[0].version.clone(),
        WriteResult::Conflict { .. } => panic!("a conflict"),
    }
}

/// Every file below `folder` with its length.
fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(listing(&entry.path()));
        } else {
            files.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    files.sort();
    files
}

/// What is wrong with a construction is found before the folder is touched.
#[test]
fn a_wrong_option_leaves_the_folder_alone() {
    let parent = TempDir::new().unwrap();
    let (missing, empty) = (parent.path().join("missing"), parent.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    for timeout_ms in [0, limits::MAX_OPERATION_TIMEOUT_MS + 1, u64::MAX] {
        let options = || StoreOptions { operation_timeout_ms: timeout_ms, ..StoreOptions::default() };
        let of_project = ProjectOptions { operation_timeout_ms: timeout_ms };
        for path in [&missing, &empty] {
            let id = ProjectId::new("w", "p").unwrap();
            for error in [
                LocationStore::open(Endpoint::File(path.clone()), options()).map(drop).unwrap_err(),
                RelocationStore::open(Endpoint::File(path.clone()), options()).map(drop).unwrap_err(),
                Project::open(Endpoint::File(path.clone()), id, of_project).map(drop).unwrap_err(),
            ] {
                assert_eq!((error.code(), error.argument_name()), (Code::InvalidArgument, Some("operationTimeout")));
            }
        }
        assert!(!missing.exists(), "made for {timeout_ms} ms");
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "made something for {timeout_ms} ms");
    }
}

#[tokio::test]
async fn a_restart_loses_nothing_and_issues_no_version_twice() {
    let folder = TempDir::new().unwrap();
    let mut versions = Vec::new();
    for life in 0..4 {
        let store = open(folder.path()).unwrap();
        for index in 0..3 {
            let name = format!("k{index}");
            let found = store.read(key(&name)).await.unwrap();
            match found {
                ReadResult::Found(found) => assert!(versions.contains(&found.version), "life {life}"),
                ReadResult::Missing { .. } => assert_eq!(life, 0),
            }
            let written = version(store.write(put(&name, "v")).await.unwrap());
            assert!(!versions.contains(&written));
            versions.push(written);
        }
        if life % 2 == 0 {
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_cursor_of_an_earlier_life_is_expired() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    store.write(put("a", "1").mutation(Mutation::put(key("b"), "2"))).await.unwrap();
    let cursor = page(store.scan(ScanRequest::new("", 1)).await.unwrap()).next_cursor.unwrap();
    store.close().await;
    let store = open(folder.path()).unwrap();
    assert_eq!(store.scan(ScanRequest::new("", 1).after(cursor)).await.unwrap(), ScanResult::Expired);
}

#[tokio::test]
async fn one_folder_is_one_engine_however_it_is_named() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("data");
    let clock = Set::at(1_000);
    let first = in_folder(&folder, &clock).unwrap();
    let dotted = in_folder(&outer.path().join("./data/../data"), &clock).unwrap();
    assert!(Arc::ptr_eq(&first, &dotted));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&folder, outer.path().join("link")).unwrap();
        let linked = in_folder(&outer.path().join("link"), &clock).unwrap();
        assert!(Arc::ptr_eq(&first, &linked));
    }
}

#[tokio::test]
async fn the_last_store_closes_the_folder() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (open(folder.path()).unwrap(), open(folder.path()).unwrap());
    one.write(put("a", "1")).await.unwrap();
    one.close().await;
    one.close().await;
    assert!(matches!(two.read(key("a")).await.unwrap(), ReadResult::Found(_)));
    two.close().await;
    let lock = File::open(folder.path().join("zlink-store.lock")).unwrap();
    lock.try_lock().expect("nobody has the folder");
}

#[tokio::test]
async fn a_folder_in_use_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    store.write(put("a", "1")).await.unwrap();
    store.close().await;
    // What another process or another copy of the library does.
    let lock = File::open(folder.path().join("zlink-store.lock")).unwrap();
    lock.lock().unwrap();
    let before = listing(folder.path());
    let error = open(folder.path()).unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied));
    assert!(error.message().contains("in use"), "{error}");
    assert_eq!(listing(folder.path()), before);
    lock.unlock().unwrap();
    assert!(matches!(open(folder.path()).unwrap().read(key("a")).await.unwrap(), ReadResult::Found(_)));
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let error = open(folder.path()).unwrap_err();
    assert_eq!(error.code(), Code::Incompatible, "{error}");
    assert_eq!(listing(folder.path()), [(folder.path().join("notes.txt"), 4)]);
    let error = open(&folder.path().join("notes.txt")).unwrap_err();
    assert_eq!(error.code(), Code::Incompatible, "{error}");
    let error = open(&folder.path().join("notes.txt/below")).unwrap_err();
    assert_eq!(error.code(), Code::Incompatible, "{error}");
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let folder = TempDir::new().unwrap();
    open(folder.path()).unwrap().close().await;
    for (format, said) in [("zlink-store 2\n", "format 2"), ("something else", "not ours"), ("", "not ours")] {
        fs::write(folder.path().join("zlink-store.format"), format).unwrap();
        let before = listing(folder.path());
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.code(), Code::Incompatible);
        assert!(error.message().contains(said), "{error}");
        assert_eq!(listing(folder.path()), before);
    }
}

#[tokio::test]
async fn a_creation_that_was_cut_off_is_begun_anew() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("lost+found")).unwrap();
    fs::write(folder.path().join("zlink-store.lock"), "").unwrap();
    fs::write(folder.path().join("zlink-store.format.new"), "zlin").unwrap();
    let store = open(folder.path()).unwrap();
    store.write(put("a", "1")).await.unwrap();
    store.close().await;
    fs::rename(folder.path().join("data"), folder.path().join("data.new")).unwrap();
    fs::remove_file(folder.path().join("data.new/version")).unwrap();
    let store = open(folder.path()).unwrap();
    assert!(matches!(store.read(key("a")).await.unwrap(), ReadResult::Missing { .. }));
    store.write(put("a", "1")).await.unwrap();
}

#[tokio::test]
async fn time_goes_on_where_it_was_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(50_000);
    let store = location(&in_folder(folder.path(), &clock).unwrap(), "");
    store.write(put_for("a", "1", 10)).await.unwrap();
    clock.set(50_010);
    assert!(matches!(store.read(key("a")).await.unwrap(), ReadResult::Missing { .. }));
    store.close().await;
    clock.set(7);
    let store = location(&in_folder(folder.path(), &clock).unwrap(), "");
    assert_eq!(store.ping().await.unwrap().unix_ms(), 50_010);
    let missing = ReadResult::Missing { store_now: StoreTime::from_unix_ms(50_010) };
    assert_eq!(store.read(key("a")).await.unwrap(), missing);
}

#[tokio::test]
async fn time_is_kept_with_each_commit() {
    let outer = TempDir::new().unwrap();
    let (folder, left) = (outer.path().join("store"), outer.path().join("left"));
    let clock = Set::at(50_000);
    let store = location(&in_folder(&folder, &clock).unwrap(), "");
    store.write(put_for("a", "1", 10)).await.unwrap();
    // What a kill would leave: nobody has closed it.
    for (file, _) in listing(&folder) {
        let to = left.join(file.strip_prefix(&folder).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
    let store = location(&in_folder(&left, &Set::at(7)).unwrap(), "");
    assert_eq!(store.ping().await.unwrap().unix_ms(), 50_000);
    let ReadResult::Found(found) = store.read(key("a")).await.unwrap() else { panic!("missing") };
    assert_eq!((found.store_now.unix_ms(), found.expires_at.unwrap().unix_ms()), (50_000, 50_010));
}

#[tokio::test]
async fn what_has_expired_leaves_the_folder() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000);
    let core = in_folder(folder.path(), &clock).unwrap();
    let (location, relocation) = (location(&core, "p"), relocation(&core, "p"));
    for index in 0..300 {
        location.write(put_for(&format!("dead{index}"), "x", 10)).await.unwrap();
    }
    location.write(put_for("renewed", "x", 10)).await.unwrap();
    location.write(put_for("renewed", "x", 1_000)).await.unwrap();
    relocation.put(reference("small"), vec![0; 100], ms(10)).await.unwrap();
    relocation.put(reference("large"), vec![0; 300_000], ms(10)).await.unwrap();
    clock.set(1_010);
    core.upkeep().await.unwrap();
    let count = |table| {
        core.storage.observe(crate::call::Call::reading(ambient::monotonic()), move |view, _| {
            let mut count = 0;
            view.walk(table, std::ops::Bound::Unbounded, &mut |_, _| {
                count += 1;
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
            Ok(count)
        })
    };
    assert_eq!(count(Table::Records).await.unwrap(), 1);
    assert_eq!(count(Table::Due).await.unwrap(), 1);
    assert_eq!(count(Table::Manifests).await.unwrap(), 0);
    assert_eq!(count(Table::Contents).await.unwrap(), 0);
    let blobs = folder.path().join("blobs");
    eventually(|| fs::read_dir(&blobs).unwrap().count() == 0).await;
}

/// The journal, with the batch boundaries that a life of three commits leaves.
async fn three_commits(folder: &TempDir) -> (PathBuf, Vec<u8>) {
    let store = open(folder.path()).unwrap();
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "the last value")] {
        store.write(put(name, value)).await.unwrap();
    }
    store.close().await;
    let journal = folder.path().join("data/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    (journal, bytes)
}

async fn found(folder: &TempDir) -> Vec<String> {
    let store = open(folder.path()).unwrap();
    let found = page(store.scan(ScanRequest::new("", 10)).await.unwrap());
    store.close().await;
    names(&found).into_iter().map(str::to_owned).collect()
}

fn place(journal: &[u8], value: &[u8]) -> usize {
    journal.windows(value.len()).position(|window| window == value).expect("the value is in the journal")
}

#[tokio::test]
async fn a_torn_last_commit_is_cut_off_wherever_it_is_torn() {
    let folder = TempDir::new().unwrap();
    let (journal, bytes) = three_commits(&folder).await;
    let last = place(&bytes, b"the last value");
    // The last commit is the value's batch; the time that is kept at the close may follow as a batch of its own.
    let end = last + place(&bytes[last..], b"FJL\x03") + 4;
    for torn in [last, last + 5, last + 13] {
        let mut bytes = bytes[..end].to_vec();
        bytes[torn] = 0;
        fs::write(&journal, &bytes).unwrap();
        assert_eq!(found(&folder).await, ["a", "b"], "torn at {torn}");
    }
    for cut in [last - 3, last + 1, end - 1] {
        let mut bytes = bytes[..cut].to_vec();
        bytes.resize(1 << 20, 0);
        fs::write(&journal, &bytes).unwrap();
        assert_eq!(found(&folder).await, ["a", "b"], "cut off at {cut}");
    }
    fs::write(&journal, &bytes[..end]).unwrap();
    assert_eq!(found(&folder).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_commit_that_is_damaged_later_is_no_torn_one() {
    let folder = TempDir::new().unwrap();
    let (journal, mut bytes) = three_commits(&folder).await;
    let second = place(&bytes, b"the last value") - 60;
    let damaged = second - bytes[..second].iter().rev().position(|byte| *byte == b'2').unwrap() - 1;
    bytes[damaged] = b'3';
    fs::write(&journal, &bytes).unwrap();
    let store = open(folder.path()).unwrap();
    let error = store.read(key("a")).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied), "{error}");
    let error = store.write(put("a", "4")).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
    drop(store);
    assert_eq!(fs::read(&journal).unwrap(), bytes);
}
