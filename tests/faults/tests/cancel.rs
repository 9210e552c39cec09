//! Operations on the file engine are dropped at random moments, many of each kind.

use std::fs;
use std::time::Duration;

use zlink_store::{Endpoint, LocationStore, RelocationStore, ScanRequest, ScanResult, StoreOptions};
use zlink_test_faults::drops::{blobs_have_all_their_room, drop_each_kind};
use zlink_test_faults::party::{Location, Relocation};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_of_each_kind_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Endpoint::File(folder.path().join("store"));
    let options = || StoreOptions { operation_timeout_ms: 20_000, ..StoreOptions::default() };
    let store = LocationStore::open(open(), options()).expect("the folder opens");
    let blobs = RelocationStore::open(open(), options()).expect("the folder opens");

    drop_each_kind(&Location::Core(store.clone()), &Relocation::Core(blobs.clone())).await;

    blobs_have_all_their_room(&blobs).await;
    let files = || fs::read_dir(folder.path().join("store/blobs")).expect("the folder of blobs").count();
    let removed = async {
        while files() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let removed = tokio::time::timeout(Duration::from_secs(30), removed).await;
    assert!(removed.is_ok(), "{} files of blobs that nobody put or kept", files());
    blobs.close().await;
    store.close().await;
    // Nothing that was dropped comes back.
    let store = LocationStore::open(open(), options()).expect("the folder opens");
    let ScanResult::Page(page) = store.scan(ScanRequest::new("", 10)).await.expect("a page") else { panic!("a scan expired") };
    assert!(page.items.is_empty(), "{:?}", page.items);
}
