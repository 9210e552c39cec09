//! The folder grows at most to twice its live data, what snapshots may keep (a quarter of the live data, at least 64 MiB) and
//! 256 MiB, also under overwrites beside a scan that nobody goes on with; and what was deleted gives its room back.

use std::path::Path;
use std::time::Duration;

use zlink_store::{
    BlobReference, Endpoint, Key, LocationStore, Mutation, RelocationStore, Retention, ScanRequest, ScanResult, StoreOptions,
    WriteRequest,
};

const MIB: u64 = 1 << 20;
const KEYS: usize = 1_000;
const VALUE: usize = 4_096;
const OVERWRITES: usize = 100;
const BLOBS: usize = 20;
const BLOB: usize = 16 << 20;

/// What the folder may take for so many bytes of live data.
fn bound(live: u64) -> u64 {
    2 * live + (live / 4).max(64 * MIB) + 256 * MIB
}

/// Bytes that a folder takes on the disk: a file may be longer than what of it was ever written.
fn taken(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let size = |entry: &std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => taken(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        // It went meanwhile.
        Err(_) => 0,
    };
    entries.iter().map(size).sum()
}

fn overwrite(round: usize, chunk: usize) -> WriteRequest {
    let mut rng = fastrand::Rng::with_seed((round * KEYS + chunk) as u64);
    let mut request = WriteRequest::new();
    for which in chunk * 100..(chunk + 1) * 100 {
        let mut value = vec![0; VALUE];
        rng.fill(&mut value);
        let key = Key::new(format!("k{which:05}")).expect("a key");
        request = request.mutation(Mutation::put(key, value));
    }
    request
}

async fn first_page(store: &LocationStore) -> ScanRequest {
    match store.scan(ScanRequest::new("", 10)).await.expect("a page") {
        ScanResult::Page(page) => ScanRequest::new("", 10).after(page.next_cursor.expect("more follows")),
        ScanResult::Expired => panic!("a first page is never expired"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_grows_no_further_than_was_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let options = || StoreOptions { operation_timeout_ms: 120_000, ..StoreOptions::default() };
    let location = LocationStore::open(Endpoint::File(store.clone()), options()).expect("a store");
    let relocation = RelocationStore::open(Endpoint::File(store.clone()), options()).expect("a store");
    let mut most = 0;
    let mut abandoned = None;
    for round in 0..OVERWRITES {
        for chunk in 0..KEYS / 100 {
            location.write(overwrite(round, chunk)).await.expect("a write");
        }
        if round == 0 {
            abandoned = Some(first_page(&location).await);
        }
        most = most.max(taken(&store));
        if round % 20 == 19 {
            eprintln!(
                "round {round}: {} MiB, of them tables {}",
                taken(&store) / MIB,
                taken(&store.join("data/keyspaces")) / MIB
            );
        }
    }
    let live = (KEYS * (VALUE + 100)) as u64;
    eprintln!("{} MiB written for {} MiB live: {} MiB at most", (OVERWRITES * KEYS * VALUE) >> 20, live / MIB, most / MIB);
    assert!(most <= bound(live), "{} MiB", most / MIB);
    // The scan was bounded too: by bytes it is still alive, so its snapshot shows the first round.
    if let Some(abandoned) = abandoned {
        location.scan(abandoned).await.expect("a page, or expired");
    }

    for number in 0..BLOBS {
        let reference = BlobReference::new("blob").expect("a reference");
        let payload = vec![u8::try_from(number).unwrap_or(0); BLOB];
        relocation.put(reference.clone(), payload, Retention::from_ms(60_000).expect("a retention")).await.expect("a put");
        relocation.delete(reference).await.expect("a delete");
        most = most.max(taken(&store));
    }
    eprintln!("{} MiB of blobs put and deleted: {} MiB at most", (BLOBS * BLOB) >> 20, most / MIB);
    assert!(most <= bound(live + BLOB as u64), "{} MiB", most / MIB);
    let emptied = async {
        while std::fs::read_dir(store.join("blobs")).expect("a folder").count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), emptied).await.expect("what a delete left goes within a minute");

    relocation.close().await;
    location.close().await;
    let location = LocationStore::open(Endpoint::File(store.clone()), options()).expect("a store");
    location.ping().await.expect("the folder opens");
    eprintln!("opened again: {} MiB", taken(&store) / MIB);
    assert!(taken(&store) <= bound(live));
}
