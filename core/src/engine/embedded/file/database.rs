//! The tables in fjall: one keyspace, each key with its table's number in front.

use std::fs;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::{AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};

use super::disk;
use super::journal;
use crate::ambient::{self, Ambient};
use crate::contract::{Code, Error, Outcome, StoreTime};
use crate::engine::embedded::record::damaged;
use crate::engine::embedded::storage::{Table, View, Visit};

const DATA: &str = "data";
const DATA_BEING_MADE: &str = "data.new";
const KEYSPACE: &str = "tables";
const META: [u8; 1] = [u8::MAX];

/// Written into a table once it holds that much, which bounds what the journal and the memory hold.
const MEMTABLE: u64 = 16 * 1_024 * 1_024;
/// Journals over this make fjall write out what holds the oldest one back.
const JOURNALS: u64 = 64 * 1_024 * 1_024;
const CACHE: u64 = 32 * 1_024 * 1_024;
/// One of them stays free for what must not wait for a long merge.
const WORKERS: usize = 3;

/// What is kept about the data as a whole, written with every batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) identity: [u8; 16],
    pub(super) sequence: u64,
    /// The last time that was told and kept.
    pub(super) time: StoreTime,
    /// Bytes of live data, near enough.
    pub(super) live: u64,
}

impl Meta {
    fn encode(&self) -> Vec<u8> {
        let mut raw = self.identity.to_vec();
        raw.extend_from_slice(&self.sequence.to_be_bytes());
        raw.extend_from_slice(&self.time.unix_ms().to_be_bytes());
        raw.extend_from_slice(&self.live.to_be_bytes());
        raw
    }

    fn decode(raw: &[u8]) -> Result<Self, Error> {
        let parts = || {
            let (identity, rest) = raw.split_first_chunk()?;
            let (sequence, rest) = rest.split_first_chunk()?;
            let (time, rest) = rest.split_first_chunk()?;
            let live = rest.try_into().ok()?;
            let time = StoreTime::from_unix_ms(u64::from_be_bytes(*time));
            let (sequence, live) = (u64::from_be_bytes(*sequence), u64::from_be_bytes(live));
            Some(Self { identity: *identity, sequence, time, live })
        };
        parts().ok_or_else(|| damaged("head of the data"))
    }
}

/// An open database.
pub(super) struct Tables {
    database: Database,
    keyspace: Keyspace,
}

/// The tables as they stood after one commit.
pub(in crate::engine::embedded) struct FileView {
    pub(super) tables: Arc<Tables>,
    pub(super) meta: Meta,
    snapshot: fjall::Snapshot,
}

/// One change of a batch: a key with its table in front, and the new value, or none to remove it.
pub(super) type Change = (Vec<u8>, Option<Bytes>);

impl Tables {
    /// Opens the database in `folder`, or makes one that is there whole or not at all.
    pub(super) fn open(folder: &Path, ambient: &dyn Ambient) -> Result<Self, Error> {
        // What fjall finds damaged it may answer with a panic.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let data = Self::data(folder);
            if !data.try_exists()? {
                create(folder, ambient)?;
            }
            match open(&data) {
                Err(fjall::Error::JournalRecovery(_)) if journal::cut_off_torn_batch(&data)? => {
                    tracing::warn!("a commit that a power cut had torn, and that was never acknowledged, was cut off");
                    open(&data)
                }
                opened => opened,
            }
        }));
        match opened {
            Ok(opened) => opened.map_err(|error| disk::database_failed(&error, "opening the folder")),
            Err(_) => {
                let said = "opening the folder failed: a file is damaged";
                Err(Error::new(Code::Internal, Outcome::NotApplied, said))
            }
        }
    }

    /// Where fjall keeps its files.
    pub(super) fn data(folder: &Path) -> PathBuf {
        folder.join(DATA)
    }

    /// The state after the last finished commit. Nobody but the committer commits, and it asks between its commits.
    pub(super) fn view(self: &Arc<Self>) -> Result<FileView, Error> {
        let snapshot = self.database.snapshot();
        let raw = snapshot.get(&self.keyspace, META).map_err(|error| read_failed(&error))?;
        let meta = Meta::decode(&raw.ok_or_else(|| damaged("head of the data"))?)?;
        Ok(FileView { tables: Arc::clone(self), meta, snapshot })
    }

    /// The state after a commit that has just ended with `meta`.
    pub(super) fn view_after(self: &Arc<Self>, meta: Meta) -> FileView {
        FileView { tables: Arc::clone(self), meta, snapshot: self.database.snapshot() }
    }

    /// One atomic batch, synced to disk when it returns.
    pub(super) fn commit(&self, changes: impl IntoIterator<Item = Change>, meta: &Meta) -> fjall::Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, &value[..]),
                None => batch.remove(&self.keyspace, key),
            }
        }
        batch.insert(&self.keyspace, META, meta.encode());
        batch.commit()
    }

    /// Whether an earlier write failed, the ones of fjall's own threads included: nothing is accepted any more.
    pub(super) fn is_poisoned(&self) -> bool {
        self.database.persist(PersistMode::Buffer).is_err()
    }

    /// Whether so much waits to be written into tables that fjall would hold a commit up, which it does without end if the
    /// thread that writes has died. (Its own bounds are 4 and 20.)
    pub(super) fn is_behind(&self) -> bool {
        self.keyspace.tree.sealed_memtable_count() >= 2 || self.keyspace.tree.l0_run_count() >= 18
    }

    /// Bytes of the tables on disk, without the journal.
    pub(super) fn size(&self) -> u64 {
        self.keyspace.disk_space()
    }

    /// Merges everything into one level, so that what was deleted or replaced and is seen by no snapshot is gone.
    pub(super) fn compact(&self) -> fjall::Result<()> {
        self.keyspace.rotate_memtable()?;
        while self.keyspace.tree.sealed_memtable_count() > 0 && !self.is_poisoned() {
            sleep(Duration::from_millis(10));
        }
        self.keyspace.major_compact()
    }
}

fn create(folder: &Path, ambient: &dyn Ambient) -> fjall::Result<()> {
    let unfinished = folder.join(DATA_BEING_MADE);
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let tables = open(&unfinished)?;
    let meta = Meta { identity: ambient::random(ambient), sequence: 0, time: StoreTime::from_unix_ms(0), live: 0 };
    tables.commit([], &meta)?;
    drop(tables);
    // fjall does not sync the entries of the folders that it makes last.
    disk::sync_folders(&unfinished)?;
    fs::rename(unfinished, folder.join(DATA))?;
    Ok(disk::sync_folder(folder)?)
}

fn open(data: &Path) -> fjall::Result<Tables> {
    let database = Database::builder(data)
        .cache_size(CACHE)
        .max_journaling_size(JOURNALS)
        .journal_compression(CompressionType::None)
        .worker_threads(WORKERS)
        .open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE)
            .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(MEMTABLE)))
    };
    let keyspace = database.keyspace(KEYSPACE, options)?;
    Ok(Tables { database, keyspace })
}

/// A key of the keyspace.
pub(super) fn full_key(table: Table, key: &[u8]) -> Vec<u8> {
    let mut full = Vec::with_capacity(1 + key.len());
    full.push(table as u8);
    full.extend_from_slice(key);
    full
}

fn read_failed(error: &fjall::Error) -> Error {
    disk::database_failed(error, "reading from the folder")
}

impl FileView {
    fn walk_from(&self, table: Table, from: Bound<&[u8]>, visit: Visit<'_>) -> fjall::Result<Result<(), Error>> {
        let first = from.map(|from| full_key(table, from));
        let first = if first == Bound::Unbounded { Bound::Included(full_key(table, &[])) } else { first };
        for guard in self.snapshot.range(&self.tables.keyspace, (first, Bound::Excluded(vec![table as u8 + 1]))) {
            let (key, value) = guard.into_inner()?;
            match visit(key.get(1..).unwrap_or_default(), Bytes::copy_from_slice(&value)) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }
}

impl View for Arc<FileView> {
    fn sequence(&self) -> u64 {
        self.meta.sequence
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let value = self.snapshot.get(&self.tables.keyspace, full_key(table, key)).map_err(|error| read_failed(&error))?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }

    fn walk(&self, table: Table, from: Bound<&[u8]>, visit: Visit<'_>) -> Result<(), Error> {
        self.walk_from(table, from, visit).map_err(|error| read_failed(&error))?
    }
}
