//! What working processes told, and the check of a folder against it: everything acknowledged is there and whole, what was
//! begun is there whole or not at all, no version and no fencing token comes twice, and time does not run backwards.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use zlink_store::{
    BlobReadResult, BlobReference, Endpoint, LocationStore, LockOptions, Project, ReleaseResult, RelocationStore, ScanRequest,
    ScanResult, StoreOptions,
};

use crate::work::{self, GROUP, Orders};

/// Told by all processes so far.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    writers: BTreeMap<usize, Writer>,
    blobs: BTreeMap<u64, Blob>,
    versions: HashMap<String, (usize, u64)>,
    counted: Counted,
    locks: Locks,
    time: u64,
    /// Acknowledgements so far.
    pub acknowledged: usize,
}

#[derive(Clone, Debug, Default)]
struct Writer {
    next: u64,
    /// What is there, if none of `begun` was applied.
    done: Option<u64>,
    versions: Vec<String>,
    /// Begun since and not acknowledged.
    begun: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Blob {
    put: bool,
    delete_begun: bool,
    deleted: bool,
}

/// The entry that is counted in.
#[derive(Clone, Debug, Default)]
struct Counted {
    done: u64,
    begun: u64,
}

#[derive(Clone, Debug, Default)]
struct Locks {
    /// The highest that was told, or seen.
    token: u64,
    /// The lease that was granted last: id, token, expiry.
    held: Option<(String, u64, u64)>,
    release_begun: bool,
}

impl Ledger {
    /// Takes a line that a process told.
    pub fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("not a number in {line:?}"));
        match words[..] {
            ["begin", writer, commit] => {
                let writer = self.writer(writer);
                writer.begun.push(number(commit));
                writer.next = number(commit) + 1;
            }
            ["done", writer, commit, time, versions] => {
                self.acknowledged += 1;
                let (writer_number, commit, time) = (usize::try_from(number(writer)).unwrap_or(0), number(commit), number(time));
                self.time = self.time.max(time);
                let versions: Vec<_> = versions.split(',').filter(|version| !version.is_empty()).map(str::to_owned).collect();
                for version in &versions {
                    let before = self.versions.insert(version.clone(), (writer_number, commit));
                    assert!(before.is_none(), "{version} was issued twice: {before:?} and {line:?}");
                }
                let writer = self.writer(writer);
                writer.done = Some(commit);
                writer.versions = versions;
                writer.begun.clear();
            }
            ["begin-put", blob] => drop(self.blobs.insert(number(blob), Blob::default())),
            ["done-put", blob] => self.blob(number(blob)).put = true,
            ["begin-delete", blob] => self.blob(number(blob)).delete_begun = true,
            ["done-delete", blob] => self.blob(number(blob)).deleted = true,
            ["begin-set", version] => {
                let (version, Counted { done, begun }) = (number(version), &mut self.counted);
                // A process begins with what it finds.
                assert!(version == *done + 1 || version == *begun + 1, "{line:?}, after {done} and perhaps {begun}");
                (*done, *begun) = (version - 1, version);
            }
            ["done-set", version] => self.counted.done = number(version),
            ["granted", token, id, expires] => {
                let token = number(token);
                assert!(token > self.locks.token, "{line:?}, after the token {}", self.locks.token);
                self.locks = Locks { token, held: Some((id.to_owned(), token, number(expires))), release_begun: false };
            }
            ["begin-release", _] => self.locks.release_begun = true,
            ["done-release", _] => self.locks.held = None,
            _ => panic!("what is {line:?}?"),
        }
    }

    fn writer(&mut self, writer: &str) -> &mut Writer {
        self.writers.entry(writer.parse().unwrap_or_else(|_| panic!("which writer is {writer:?}?"))).or_default()
    }

    fn blob(&mut self, number: u64) -> &mut Blob {
        self.blobs.entry(number).or_default()
    }

    /// Orders for the next process: so many writers, which go on where they were.
    pub fn orders(&self, writers: usize, blobs: bool, largest: usize) -> Orders {
        let next = |writer| self.writers.get(&writer).map_or(0, |writer| writer.next);
        let blob = blobs.then(|| self.blobs.last_key_value().map_or(0, |(last, _)| last + 1));
        Orders { writers: (0..writers).map(next).collect(), blob, largest }
    }

    /// Opens the folder and checks it.
    pub async fn check(&mut self, folder: &Path) {
        let open = || Endpoint::File(folder.to_owned());
        let options = || StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::default() };
        let location = LocationStore::open(open(), options()).expect("the folder opens");
        let relocation = RelocationStore::open(open(), options()).expect("the folder opens");
        let now = location.ping().await.expect("the folder opens").unix_ms();
        assert!(now >= self.time, "time ran backwards: {now} after {}", self.time);
        for (writer, told) in &mut self.writers {
            check_group(&location, *writer, told, &mut self.versions).await;
        }
        let mut kept = HashSet::new();
        for (number, told) in &self.blobs {
            if check_blob(&relocation, *number, told).await && work::blob(*number).len() > 256 * 1_024 {
                kept.insert(*number);
            }
        }
        let blobs = folder.join("blobs");
        let files = || std::fs::read_dir(&blobs).map_or(0, Iterator::count);
        let swept = async {
            while files() > kept.len() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let swept = tokio::time::timeout(std::time::Duration::from_secs(60), swept).await;
        assert!(swept.is_ok() && files() == kept.len(), "{} blob files for {} blobs", files(), kept.len());
        let project = work::project(folder).expect("the folder opens");
        check_counted(&project, &mut self.counted).await;
        check_locks(&project, &mut self.locks).await;
        project.close().await;
        relocation.close().await;
        location.close().await;
    }
}

/// The entry has the last version that was acknowledged, or one that was begun after it.
async fn check_counted(project: &Project, told: &mut Counted) {
    let (namespace, key) = work::COUNTED;
    let entry = project.state().namespace(namespace).expect("a name").get(key).await.expect("an entry or none");
    let version = entry.as_ref().map_or(0, |entry| entry.version);
    assert!(version == told.done || version == told.begun, "version {version} is there: {told:?}");
    if let Some(entry) = entry {
        assert_eq!(entry.value.as_str(), version.to_string(), "a torn entry");
    }
    *told = Counted { done: version, begun: version };
}

/// A lease that was granted is there until it is released or expires; the next token is higher than all before it.
async fn check_locks(project: &Project, told: &mut Locks) {
    let locks = project.locks();
    if let Some((id, token, expires)) = told.held.take() {
        let found = locks.attach(&id).await.expect("a lease or none");
        let now = project.ping().await.expect("a time").unix_ms();
        assert!(found.is_some() || told.release_begun || now >= expires, "the lease {id} of token {token} is lost");
        if let Some(lease) = found {
            assert_eq!((lease.fencing_token(), lease.expires_at().unix_ms()), (token, expires));
            let again = locks.acquire(lease.key(), LockOptions::default()).await.expect("an answer");
            assert!(again.is_none(), "{} is held by two", lease.key());
        }
    }
    let lease = locks.acquire("check", LockOptions::default()).await.expect("an answer").expect("it is free");
    assert!(lease.fencing_token() > told.token, "the token {} after {}", lease.fencing_token(), told.token);
    *told = Locks { token: lease.fencing_token(), ..Locks::default() };
    assert_eq!(lease.release().await.expect("an answer"), ReleaseResult::Released);
}

/// All keys of a writer are from one commit: the last acknowledged one, or one that was begun after it.
async fn check_group(store: &LocationStore, writer: usize, told: &mut Writer, issued: &mut HashMap<String, (usize, u64)>) {
    let scan = store.scan(ScanRequest::new(work::group(writer), 100)).await.expect("a page");
    let ScanResult::Page(page) = scan else { panic!("a first page is never expired") };
    let may_be: Vec<_> = told.done.iter().chain(&told.begun).copied().collect();
    if page.items.is_empty() {
        let emptied = told.done.is_none() || may_be.iter().any(|commit| work::deletes(*commit));
        assert!(emptied, "writer {writer} lost everything: {told:?}");
        return;
    }
    let commits: HashSet<_> = page.items.iter().map(|item| work::commit_of(writer, &item.value.bytes)).collect();
    let found: Vec<_> = commits.into_iter().collect();
    let [Some(commit)] = found[..] else { panic!("a torn commit of writer {writer}: {told:?}, {found:?}") };
    assert_eq!(page.items.len(), GROUP, "a torn commit of writer {writer}: {told:?}, {found:?}");
    assert!(may_be.contains(&commit) && !work::deletes(commit), "writer {writer} has commit {commit}: {told:?}");
    let versions: Vec<_> = page.items.iter().map(|item| item.value.version.as_str().to_owned()).collect();
    if told.done == Some(commit) {
        assert_eq!(versions, told.versions, "writer {writer}, commit {commit}");
    }
    for version in &versions {
        let by = *issued.entry(version.clone()).or_insert((writer, commit));
        assert_eq!(by, (writer, commit), "{version} was issued twice");
    }
    // From here on nothing else may come back.
    *told = Writer { next: told.next, done: Some(commit), versions, begun: Vec::new() };
}

/// A blob is there whole or not at all; whether it is there is returned.
async fn check_blob(store: &RelocationStore, number: u64, told: &Blob) -> bool {
    let reference = BlobReference::new(work::reference(number)).expect("a reference");
    match store.read(reference).await.expect("a read") {
        BlobReadResult::Found { bytes, .. } => {
            assert!(bytes == work::blob(number), "blob {number} has other bytes: {told:?}");
            assert!(!told.deleted, "blob {number} came back: {told:?}");
            true
        }
        BlobReadResult::Missing { .. } => {
            assert!(!told.put || told.delete_begun, "blob {number} is lost: {told:?}");
            false
        }
    }
}
