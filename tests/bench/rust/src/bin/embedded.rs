//! The embedded engine, in memory and in a folder: `cargo run -p zlink-bench --profile fast --bin embedded [-- FOLDER]`.
//!
//! The folder (a temporary one, if none is named) decides about the disk; how many syncs a second it can do is printed first.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use zlink_bench::{median, now};
use zlink_store::{
    BlobReference, Condition, Endpoint, Error, Key, LocationStore, Mutation, ReadResult, RelocationStore, Retention, ScanRequest,
    StoreOptions, WriteRequest, WriteResult,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LASTS: Duration = Duration::from_secs(2);
const KEYS: usize = 10_000;
const VALUE: [u8; 256] = [7; 256];

#[tokio::main]
async fn main() -> Outcome<()> {
    let temporary = tempfile::tempdir()?;
    let folder = std::env::args().nth(1).map_or(temporary.path().join("store"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    println!("{:<8}{:<28}{:>12.0} /s", "disk", "append 400 B, fdatasync", syncs(folder.parent().unwrap_or(&folder))?);
    for (name, endpoint) in [("memory", Endpoint::Memory(None)), ("file", Endpoint::File(folder))] {
        let options = StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::default() };
        let location = LocationStore::open(endpoint.clone(), options.clone())?;
        let relocation = RelocationStore::open(endpoint, options)?;
        fill(&location).await?;
        for flight in [1, 64] {
            report(name, "read, 256 B", flight, |which| location.read(key(which))).await?;
            report(name, "put, 256 B", flight, |which| location.write(put(which))).await?;
            report(name, "read, then CAS", flight, |which| cas(&location, which)).await?;
        }
        report(name, "scan page of 1,000", 1, |_| location.scan(ScanRequest::new("", 1_000))).await?;
        blobs(name, &relocation).await?;
        beside_blobs(name, &location, &relocation).await?;
        relocation.close().await;
        location.close().await;
    }
    Ok(())
}

fn key(which: usize) -> Key {
    let which = which.wrapping_mul(7_919) % KEYS;
    Key::new(format!("actor/{which:08}")).unwrap_or_else(|_| unreachable!("14 bytes"))
}

fn put(which: usize) -> WriteRequest {
    WriteRequest::new().mutation(Mutation::put(key(which), &VALUE[..]))
}

async fn fill(store: &LocationStore) -> Outcome<()> {
    for chunk in 0..KEYS / 1_000 {
        let puts = (0..1_000).map(|which| Mutation::put(key(chunk * 1_000 + which), &VALUE[..]));
        store.write(WriteRequest { conditions: Vec::new(), mutations: puts.collect() }).await?;
    }
    Ok(())
}

async fn cas(store: &LocationStore, which: usize) -> Result<WriteResult, Error> {
    match store.read(key(which)).await? {
        ReadResult::Found(found) => {
            store.write(put(which).condition(Condition::Version { key: key(which), expected: found.version })).await
        }
        ReadResult::Missing { .. } => Err(Error::internal("every key was filled")),
    }
}

/// Operations a second, `flight` at a time.
async fn report<T, F>(engine: &str, work: &str, flight: usize, operation: impl Fn(usize) -> F) -> Outcome<()>
where
    F: Future<Output = Result<T, Error>>,
{
    let began = now();
    let mut next = 0;
    while began.elapsed() < LASTS {
        for result in join_all((next..next + flight).map(&operation)).await {
            result?;
        }
        next += flight;
    }
    let rate = f64::from(u32::try_from(next)?) / began.elapsed().as_secs_f64();
    println!("{engine:<8}{work:<20}{flight:>3} waiting{rate:>12.0} /s");
    Ok(())
}

async fn blobs(engine: &str, store: &RelocationStore) -> Outcome<()> {
    for size in [16 << 10, 1 << 20, 64 << 20] {
        let payload = Bytes::from(vec![7; size]);
        let (mut put, mut read) = (Vec::new(), Vec::new());
        for round in 0..7 {
            let reference = BlobReference::new(format!("{size}/{round}"))?;
            let began = now();
            store.put(reference.clone(), payload.clone(), Retention::from_ms(600_000)?).await?;
            put.push(began.elapsed().as_secs_f64() * 1e3);
            let began = now();
            store.read(reference.clone()).await?;
            read.push(began.elapsed().as_secs_f64() * 1e3);
            store.delete(reference).await?;
        }
        let (put, read) = (median(put), median(read));
        println!("{engine:<8}blob of {:>6} KiB        put {put:>8.2} ms, read {read:>8.2} ms", size >> 10);
    }
    Ok(())
}

/// How long reads and puts wait, alone and beside a loop of 64 MiB puts.
async fn beside_blobs(engine: &str, location: &LocationStore, relocation: &RelocationStore) -> Outcome<()> {
    for busy in [false, true] {
        let puts = busy.then(|| tokio::spawn(keep_putting(relocation.clone())));
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let start = now();
        for which in 0.. {
            let began = now();
            location.read(key(which)).await?;
            reads.push(began.elapsed());
            let began = now();
            location.write(put(which)).await?;
            writes.push(began.elapsed());
            if start.elapsed() > LASTS {
                break;
            }
        }
        if let Some(puts) = puts {
            puts.abort();
        }
        let p99 = |mut waits: Vec<Duration>| {
            waits.sort_unstable();
            waits[waits.len() * 99 / 100]
        };
        let beside = if busy { "beside 64 MiB puts" } else { "alone" };
        println!("{engine:<8}p99 {beside:<20}  read {:>9.1?}, put {:>9.1?}", p99(reads), p99(writes));
    }
    Ok(())
}

async fn keep_putting(store: RelocationStore) -> Result<Infallible, Error> {
    let payload = Bytes::from(vec![7; 64 << 20]);
    loop {
        let reference = BlobReference::new("busy")?;
        store.put(reference.clone(), payload.clone(), Retention::from_ms(600_000)?).await?;
        store.delete(reference).await?;
    }
}

/// How often a second the disk syncs an append, with nothing else to do.
fn syncs(folder: &Path) -> Outcome<f64> {
    let path = folder.join("zlink-bench-syncs");
    let mut file: File = OpenOptions::new().create(true).append(true).open(&path)?;
    let began = now();
    let mut count = 0;
    while began.elapsed() < LASTS {
        file.write_all(&[7; 400])?;
        file.sync_data()?;
        count += 1;
    }
    std::fs::remove_file(path)?;
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}
