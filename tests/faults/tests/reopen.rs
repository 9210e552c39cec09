//! A folder opens again by its journal and the heads of its tables, however much lies in it: after a kill, too, nobody waits
//! for longer than that takes, and nobody is tempted to kill what repairs it.
//!
//! `ZLINK_REOPEN_MIB` is another size.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use zlink_store::{
    BlobReadResult, BlobReference, Endpoint, Key, LocationStore, LockOptions, Mutation, Project, ProjectId, ProjectOptions,
    ReadResult, RelocationStore, ScanRequest, ScanResult, StoreOptions, WriteRequest, WriteResult,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_folder-filler");
const MIB: u64 = 1 << 20;
/// Journals of 64 MiB, one of them being written out, and what is read to find the tables.
const READ_AT_MOST: u64 = 128 * MIB;

/// Bytes that this process has read so far.
fn read_so_far() -> u64 {
    let told = fs::read_to_string("/proc/self/io").expect("the kernel tells");
    let read = told.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
    read.expect("a number of bytes")
}

/// Fills the folder in a process that is killed then; gives back the last fencing token.
fn fill_and_kill(folder: &std::path::Path, mib: u64) -> u64 {
    let mut filler = Command::new(PROGRAM).arg(folder).arg(mib.to_string()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let told = BufReader::new(filler.stdout.take().expect("a pipe")).read_line(&mut line);
    filler.kill().expect("it is there to be killed");
    filler.wait().expect("it ends");
    told.expect("it tells");
    line.trim().strip_prefix("full ").and_then(|token| token.parse().ok()).expect("it was filled")
}

#[tokio::test]
async fn a_large_folder_opens_without_reading_its_data() {
    let mib = std::env::var("ZLINK_REOPEN_MIB").map_or(288, |mib| mib.parse().expect("a number"));
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("store");
    let token = fill_and_kill(&folder, mib);

    let read = read_so_far();
    let place = || Endpoint::File(folder.clone());
    // The default timeout is what callers have.
    let records = LocationStore::open(place(), StoreOptions::default()).expect("a store");
    let blobs = RelocationStore::open(place(), StoreOptions::default()).expect("a store");
    let project = Project::open(place(), ProjectId::new("w", "p").expect("names"), ProjectOptions::default()).expect("a project");
    let last = records.read(Key::new("last").expect("a key")).await.expect("the folder opens within the timeout");
    assert!(matches!(last, ReadResult::Found(_)), "{last:?}");
    let written = records.write(WriteRequest::new().mutation(Mutation::put(Key::new("new").expect("a key"), "v"))).await;
    assert!(matches!(written, Ok(WriteResult::Applied { .. })), "{written:?}");
    let entry = project.state().namespace("n").expect("a name").get("last").await.expect("an answer");
    assert_eq!(entry.expect("it is there").value.as_str(), "1");
    let lease = project.locks().acquire("other", LockOptions::default()).await.expect("an answer").expect("it is free");
    assert!(lease.fencing_token() > token, "a token comes again");
    let page = records.scan(ScanRequest::new("", 10)).await.expect("an answer");
    assert!(matches!(&page, ScanResult::Page(page) if page.items.len() == 10), "{page:?}");
    let read = read_so_far() - read;
    println!("{mib} MiB open, {} MiB read", read / MIB);
    assert!(mib * MIB > 2 * READ_AT_MOST, "too little to show anything");
    assert!(read <= READ_AT_MOST, "{} MiB were read to open {mib} MiB", read / MIB);

    // What is there is there to its end.
    let blob = BlobReference::new("b7").expect("a reference");
    let found = blobs.read(blob).await.expect("an answer");
    assert!(matches!(&found, BlobReadResult::Found { bytes, .. } if bytes.len() as u64 == MIB));
}
