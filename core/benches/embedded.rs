//! Figures of the embedded engine: `cargo bench -p zlink-store --bench embedded [-- FOLDER]`. Not a timed test.
//!
//! The folder (a temporary one by default) is where the file engine is measured: name one on the disk that matters.

use std::env;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempfile::TempDir;
use zlink_store::{
    BlobReference, Condition, Endpoint, Key, LocationStore, Mutation, RelocationStore, Retention, ScanRequest, StoreOptions,
    WriteRequest, WriteResult,
};

const LASTS: Duration = Duration::from_secs(2);
const KEYS: usize = 10_000;
const VALUE: [u8; 256] = [7; 256];

fn main() {
    let temporary = TempDir::new().expect("a temporary folder");
    let folder = env::args().skip(1).find(|arg| !arg.starts_with('-')).map_or(temporary.path().join("store"), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for (name, endpoint) in [("memory", Endpoint::Memory(None)), ("file", Endpoint::File(folder))] {
            let location = LocationStore::open(endpoint.clone(), StoreOptions::default()).expect("a store");
            let relocation = RelocationStore::open(endpoint, StoreOptions::default()).expect("a store");
            fill(&location).await;
            for at_once in [1, 64] {
                report(name, "read 256 B", at_once, |index| location.read(key(index))).await;
                report(name, "put 256 B", at_once, |index| location.write(put(index))).await;
                report(name, "read + compare-and-set", at_once, |index| cas(&location, index)).await;
            }
            report(name, "scan page of 1,000", 1, |_| location.scan(ScanRequest::new("", 1_000))).await;
            blobs(name, &relocation).await;
            relocation.close().await;
            location.close().await;
        }
    });
}

fn key(index: usize) -> Key {
    Key::new(format!("actor/{:08}", index.wrapping_mul(2_654_435_761) % KEYS)).expect("a key")
}

fn put(index: usize) -> WriteRequest {
    WriteRequest::new().mutation(Mutation::put(key(index), VALUE.to_vec()))
}

async fn fill(store: &LocationStore) {
    for chunk in 0..KEYS / 1_000 {
        let mut request = WriteRequest::new();
        for index in chunk * 1_000..(chunk + 1) * 1_000 {
            let key = Key::new(format!("actor/{index:08}")).expect("a key");
            request = request.mutation(Mutation::put(key, VALUE.to_vec()));
        }
        store.write(request).await.expect("a write");
    }
}

async fn cas(store: &LocationStore, index: usize) -> Result<WriteResult, zlink_store::Error> {
    let zlink_store::ReadResult::Found(found) = store.read(key(index)).await? else { unreachable!("every key was filled") };
    store.write(put(index).condition(Condition::Version { key: key(index), expected: found.version })).await
}

async fn report<T, F>(engine: &str, work: &str, at_once: usize, operation: impl Fn(usize) -> F)
where
    F: Future<Output = Result<T, zlink_store::Error>>,
{
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < LASTS {
        for result in join_all((done..done + at_once).map(&operation)).await {
            result.expect("an operation");
        }
        done += at_once;
    }
    let rate = done as f64 / began.elapsed().as_secs_f64();
    println!("{engine:8} {work:24} {at_once:3} in flight: {rate:>10.0} /s");
}

async fn blobs(engine: &str, store: &RelocationStore) {
    for size in [1 << 20, 64 << 20] {
        let payload = bytes::Bytes::from(vec![7; size]);
        let (mut put, mut read) = (Duration::MAX, Duration::MAX);
        for round in 0..5 {
            let reference = BlobReference::new(format!("{size}/{round}")).expect("a reference");
            let retention = Retention::from_ms(600_000).expect("a retention");
            let began = Instant::now();
            store.put(reference.clone(), payload.clone(), retention).await.expect("a put");
            put = put.min(began.elapsed());
            let began = Instant::now();
            store.read(reference.clone()).await.expect("a read");
            read = read.min(began.elapsed());
            store.delete(reference).await.expect("a delete");
        }
        println!("{engine:8} blob of {:2} MiB           put {put:>9.1?}, read {read:>9.1?} (best of 5)", size >> 20);
    }
}
