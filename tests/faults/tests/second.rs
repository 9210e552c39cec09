//! A folder is one process's: a second one is told so, however it names the folder, and changes nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use zlink_store::{Code, Endpoint, Key, LocationStore, Mutation, Outcome, ReadResult, StoreOptions, WriteRequest};
use zlink_test_faults::process::Worker;
use zlink_test_faults::work::Orders;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crash-writer");

fn orders() -> Orders {
    Orders { writers: vec![0; 2], blob: None, largest: 50 }
}

fn open(folder: &Path) -> Result<LocationStore, zlink_store::Error> {
    LocationStore::open(Endpoint::File(folder.to_owned()), StoreOptions::default())
}

/// By its own name, by a link and by a way that begins where the process stands.
fn names(folder: &Path) -> [PathBuf; 3] {
    let link = folder.with_extension("link");
    std::os::unix::fs::symlink(folder, &link).expect("a link");
    let here = std::env::current_dir().expect("a current folder");
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = up.join(folder.strip_prefix("/").expect("an absolute path"));
    assert!(relative.is_relative());
    [folder.to_owned(), link, relative]
}

/// Every file below `folder` with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.insert(path, bytes);
        }
    }
    found
}

/// Starts another process on each of the names; each must be told.
fn others_are_told(names: &[PathBuf]) {
    for name in names {
        let told = Command::new(PROGRAM).arg(name).args(orders().arguments()).output().expect("the process starts");
        let said = String::from_utf8_lossy(&told.stderr);
        assert!(
            !told.status.success() && !String::from_utf8_lossy(&told.stdout).contains("done "),
            "{}: it worked",
            name.display()
        );
        assert!(said.contains("in use by another process") && said.contains("notApplied"), "{}: {said}", name.display());
    }
}

#[tokio::test]
async fn another_process_is_told_that_the_folder_is_in_use_and_changes_nothing() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().canonicalize().expect("a folder").join("store");
    let store = open(&folder).expect("the folder opens");
    let names = names(&folder);
    let key = Key::new("a").expect("a legal key");
    store.write(WriteRequest::new().mutation(Mutation::put(key.clone(), "mine"))).await.expect("a write");
    others_are_told(&names);
    assert!(matches!(store.read(key).await, Ok(ReadResult::Found(_))));
    store.close().await;
    // Held, but with nobody at work: whatever changes would be the others' doing.
    let lock = File::open(folder.join("zlink-store.lock")).expect("the lock's file");
    lock.try_lock().expect("the folder is free");
    let before = files(&folder);
    others_are_told(&names);
    assert!(files(&folder) == before, "a file was changed");
}

#[tokio::test]
async fn a_folder_that_another_process_works_on_is_free_once_that_is_killed() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().canonicalize().expect("a folder").join("store");
    let worker = Worker::start(PROGRAM, &folder, &orders()).expect("the process starts");
    worker.wait_for(1);
    let names = names(&folder);
    for name in &names {
        let error = open(name).expect_err("the folder is in use");
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied), "{error}");
        assert!(error.message().contains("in use"), "{error}");
    }
    worker.wait_for(10);
    worker.kill();
    let stores: Vec<_> = names.iter().map(|name| open(name).expect("the folder opens")).collect();
    for store in stores {
        let read = store.read(Key::new("g000/0").expect("a legal key")).await.expect("a read");
        assert!(matches!(read, ReadResult::Found(_) | ReadResult::Missing { .. }));
    }
}
