//! The work of a process that will be killed: writers that each commit to a group of keys, one that puts and deletes blobs,
//! one that counts in an entry of state, and one that takes and releases locks. Everything written follows from who wrote it
//! and when, so that a checker knows what must be there.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use zlink_store::{
    BlobReference, Condition, Endpoint, Error, Key, LocationStore, LockOptions, Mutation, Project, ProjectId, ProjectOptions,
    ReleaseResult, RelocationStore, Retention, StateSetResult, StateWriteOptions, StoreOptions, WriteRequest, WriteResult,
};

/// Keys of one writer, all changed by each of its commits.
pub const GROUP: usize = 7;
/// Every so many commits of a writer, one deletes its keys.
const DELETES_EVERY: u64 = 6;
/// Every so many commits, one is conditional on the commit before.
const CONDITION_EVERY: u64 = 2;

/// What a working process is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The writers' first commits.
    pub writers: Vec<u64>,
    /// The first blob.
    pub blob: Option<u64>,
    /// Largest value.
    pub largest: usize,
}

impl Orders {
    /// As command-line arguments.
    pub fn arguments(&self) -> Vec<String> {
        let writers: Vec<_> = self.writers.iter().map(u64::to_string).collect();
        let blob = self.blob.map_or("-".to_owned(), |blob| blob.to_string());
        vec![writers.join(","), blob, self.largest.to_string()]
    }

    /// From command-line arguments.
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let [writers, blob, largest] = arguments else { return None };
        let writers = writers.split(',').map(|first| first.parse().ok()).collect::<Option<_>>()?;
        Some(Self { writers, blob: blob.parse().ok(), largest: largest.parse().ok()? })
    }
}

/// Whether the writers' commit of this number deletes.
pub fn deletes(commit: u64) -> bool {
    commit % DELETES_EVERY == DELETES_EVERY - 1
}

/// A key of a writer.
pub fn key(writer: usize, place: usize) -> String {
    format!("{}{place}", group(writer))
}

/// What the keys of a writer begin with.
pub fn group(writer: usize) -> String {
    format!("g{writer:03}/")
}

/// What a commit of a writer puts under each of its keys; it names the commit.
pub fn value(writer: usize, commit: u64, largest: usize) -> String {
    let mut value = format!("w{writer}n{commit};");
    let length = fastrand::Rng::with_seed(commit.wrapping_mul(977) + writer as u64).usize(0..=largest);
    while value.len() < length {
        value.push('.');
    }
    value
}

/// The commit that a value names.
pub fn commit_of(writer: usize, value: &[u8]) -> Option<u64> {
    let (commit, _) = std::str::from_utf8(value).ok()?.strip_prefix(&format!("w{writer}n"))?.split_once(';')?;
    commit.parse().ok()
}

/// The bytes of a blob: some small enough for a table, some with a file of their own.
pub fn blob(number: u64) -> Bytes {
    let size = [900, 300_000, 40_000, 2_500_000][(number % 4) as usize];
    let mut rng = fastrand::Rng::with_seed(number);
    let mut bytes = vec![0; size];
    rng.fill(&mut bytes);
    bytes.into()
}

/// The reference of a blob.
pub fn reference(number: u64) -> String {
    format!("b{number}")
}

/// Works until it is killed; tells on standard output what it begins and what was acknowledged, a line by one write.
///
/// # Errors
/// If an operation fails, which none should.
pub async fn work(folder: &Path, orders: Orders) -> Result<(), Error> {
    let open = || Endpoint::File(folder.to_owned());
    let options = || StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::default() };
    let location = LocationStore::open(open(), options())?;
    let relocation = RelocationStore::open(open(), options())?;
    let mut tasks = tokio::task::JoinSet::new();
    for (writer, first) in orders.writers.into_iter().enumerate() {
        tasks.spawn(write(location.clone(), writer, first, orders.largest));
    }
    if let Some(first) = orders.blob {
        tasks.spawn(move_blobs(relocation, first));
    }
    let project = project(folder)?;
    tasks.spawn(count(project.clone()));
    tasks.spawn(take_turns(project));
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    }
    Ok(())
}

async fn write(store: LocationStore, writer: usize, first: u64, largest: usize) -> Result<(), Error> {
    let mut before = None;
    for commit in first.. {
        let mut request = WriteRequest::new();
        for place in 0..GROUP {
            let key = Key::new(key(writer, place))?;
            request = request.mutation(match deletes(commit) {
                true => Mutation::delete(key),
                false => Mutation::put(key, value(writer, commit, largest)),
            });
        }
        if let Some(expected) = before.take_if(|_| commit % CONDITION_EVERY == 0) {
            request = request.condition(Condition::Version { key: Key::new(key(writer, 0))?, expected });
        }
        tell(&format!("begin {writer} {commit}"));
        let result = store.write(request).await?;
        let WriteResult::Applied { put_versions, store_now } = result else {
            return Err(Error::internal(format!("commit {commit} of writer {writer} conflicts with nobody")));
        };
        let versions: Vec<_> = put_versions.iter().map(|put| put.version.as_str()).collect();
        tell(&format!("done {writer} {commit} {} {}", store_now.unix_ms(), versions.join(",")));
        before = put_versions.into_iter().next().map(|put| put.version);
    }
    Ok(())
}

async fn move_blobs(store: RelocationStore, first: u64) -> Result<(), Error> {
    let retention = Retention::from_ms(86_400_000)?;
    for number in first.. {
        tell(&format!("begin-put {number}"));
        store.put(BlobReference::new(reference(number))?, blob(number), retention).await?;
        tell(&format!("done-put {number}"));
        if let Some(old) = number.checked_sub(5).filter(|old| *old >= first) {
            tell(&format!("begin-delete {old}"));
            store.delete(BlobReference::new(reference(old))?).await?;
            tell(&format!("done-delete {old}"));
        }
    }
    Ok(())
}

/// The project of that work, in the same folder.
///
/// # Errors
/// If the folder cannot be opened.
pub fn project(folder: &Path) -> Result<Project, Error> {
    let options = ProjectOptions::default().with_operation_timeout_ms(60_000);
    Project::open(Endpoint::File(folder.to_owned()), ProjectId::new("w", "p")?, options)
}

/// The entry that is counted in: its value is its version.
pub const COUNTED: (&str, &str) = ("n", "counted");

async fn count(project: Project) -> Result<(), Error> {
    let entries = project.state().namespace(COUNTED.0)?;
    let mut version = entries.get(COUNTED.1).await?.map_or(0, |entry| entry.version);
    loop {
        let expected = StateWriteOptions { expected_version: Some(version), ttl_seconds: None };
        version += 1;
        tell(&format!("begin-set {version}"));
        match entries.set(COUNTED.1, version.to_string(), expected).await? {
            StateSetResult::Stored(entry) if entry.version == version => tell(&format!("done-set {version}")),
            other => return Err(Error::internal(format!("{version} was set by nobody else: {other:?}"))),
        }
    }
}

async fn take_turns(project: Project) -> Result<(), Error> {
    for number in 0.. {
        // What an earlier process has not released is held for a minute.
        let options = LockOptions { lease_ms: 60_000, ..LockOptions::default() };
        let lock = format!("{}/{}", std::process::id(), number % 5);
        let Some(lease) = project.locks().acquire(lock, options).await? else {
            return Err(Error::internal("a lock that nobody else wants is held"));
        };
        tell(&format!("granted {} {} {}", lease.fencing_token(), lease.id(), lease.expires_at().unix_ms()));
        tell(&format!("begin-release {}", lease.id()));
        if lease.release().await? != ReleaseResult::Released {
            return Err(Error::internal("a lease that nobody else knows is lost"));
        }
        tell(&format!("done-release {}", lease.id()));
    }
    Ok(())
}

fn tell(line: &str) {
    // Nobody listens any more: whoever did will end this process.
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}
