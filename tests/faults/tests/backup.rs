//! A copy of a folder that was closed is a backup: it opens with all that was there, and goes its own way from then on.

use std::fs;
use std::path::Path;

use zlink_store::{
    BlobReadResult, BlobReference, Condition, Endpoint, Key, LocationStore, Mutation, ReadResult, RelocationStore, Retention,
    ScanRequest, ScanResult, StoreOptions, StoredValue, WriteRequest, WriteResult,
};

fn open(folder: &Path) -> (LocationStore, RelocationStore) {
    let place = || Endpoint::File(folder.to_owned());
    let location = LocationStore::open(place(), StoreOptions::default()).expect("the folder opens");
    (location, RelocationStore::open(place(), StoreOptions::default()).expect("the folder opens"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

fn key() -> Key {
    Key::new("k").expect("a legal key")
}

async fn found(store: &LocationStore) -> StoredValue {
    match store.read(key()).await.expect("a read") {
        ReadResult::Found(found) => found,
        ReadResult::Missing { .. } => panic!("missing"),
    }
}

#[tokio::test]
async fn a_copy_of_a_closed_folder_holds_everything() {
    let outer = tempfile::tempdir().expect("a folder");
    let (folder, backup) = (outer.path().join("store"), outer.path().join("backup"));
    let retention = Retention::from_ms(3_600_000).expect("a legal retention");
    let blobs = [("small", vec![1; 1_000]), ("large", vec![2; 3_000_000])];
    let reference = |name: &str| BlobReference::new(name).expect("a legal reference");
    let (location, relocation) = open(&folder);
    let mut many = WriteRequest::new();
    for number in 0..1_000 {
        many = many.mutation(Mutation::put(Key::new(format!("m{number}")).expect("a legal key"), vec![3; 500]));
    }
    location.write(many).await.expect("a write");
    location.write(WriteRequest::new().mutation(Mutation::put_for(key(), "then", retention))).await.expect("a write");
    for (name, bytes) in &blobs {
        relocation.put(reference(name), bytes.clone(), retention).await.expect("a put");
    }
    let before = found(&location).await;
    relocation.close().await;
    location.close().await;
    copy(&folder, &backup);
    // The store goes on, and forgets what the backup has.
    let (location, relocation) = open(&folder);
    location.write(WriteRequest::new().mutation(Mutation::put(key(), "later"))).await.expect("a write");
    relocation.delete(reference("large")).await.expect("a delete");

    let (restored, restored_blobs) = open(&backup);
    let after = found(&restored).await;
    assert_eq!((&after.bytes, &after.version, after.expires_at), (&before.bytes, &before.version, before.expires_at));
    assert!(after.store_now >= before.store_now, "time runs backwards");
    let scanned = restored.scan(ScanRequest::new("m", 1_000)).await.expect("a page");
    assert!(matches!(scanned, ScanResult::Page(page) if page.items.len() == 1_000));
    for (name, bytes) in &blobs {
        let read = restored_blobs.read(reference(name)).await.expect("a read");
        assert!(matches!(read, BlobReadResult::Found { bytes: read, .. } if read == *bytes), "{name}");
    }
    // Versions of before the copy hold in it, and the two share none that are issued after it.
    let request = WriteRequest::new().condition(Condition::Version { key: key(), expected: before.version });
    let written = restored.write(request.mutation(Mutation::put(key(), "otherwise"))).await.expect("a write");
    assert!(matches!(written, WriteResult::Applied { .. }), "{written:?}");
    assert_ne!(found(&restored).await.version, found(&location).await.version);
    assert_eq!(found(&location).await.bytes, "later");
}
