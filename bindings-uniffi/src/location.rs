//! The Location Store.

use std::sync::Arc;

use bytes::Bytes;
use zlink_store::{Cursor, Error, Key, Retention, ScanRequest, StoreTime, Version, WriteRequest, limits};

use crate::error::StoreError;
use crate::operation::{Running, Unwanted, operation};
use crate::options::{StoreOptions, whole};
use crate::store::store;
use crate::time::{ms, retention};

/// A live record as one observation saw it: all fields belong to the same instant of the engine's clock.
#[derive(Clone, Debug, uniffi::Record)]
pub struct StoredValue {
    /// The bytes that were put.
    pub bytes: Bytes,
    /// The version that the put got.
    pub version: String,
    /// When the record expires, in Unix milliseconds; absent for a durable one.
    pub expires_at_ms: Option<i64>,
    /// The instant of the observation, in Unix milliseconds.
    pub store_now_ms: i64,
}

/// The answer to a read.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum ReadResult {
    /// There is no live record under the key (never put, deleted or expired).
    Missing {
        /// The instant of the observation, in Unix milliseconds.
        store_now_ms: i64,
    },
    /// The live record.
    Found {
        /// The record.
        value: StoredValue,
    },
}

/// What must hold before a write applies.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Condition {
    /// The key has no live record.
    Missing {
        /// The key.
        key: String,
    },
    /// The key's live record has exactly this version.
    Version {
        /// The key.
        key: String,
        /// The expected version.
        expected: String,
    },
}

/// What a write changes.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Mutation {
    /// Puts a record.
    Put {
        /// The key.
        key: String,
        /// The value, at most 1 MiB.
        bytes: Bytes,
        /// How long it lives from the commit on, in milliseconds; without it, it is durable.
        retention_ms: Option<i64>,
    },
    /// Deletes a record; deleting a missing one is fine.
    Delete {
        /// The key.
        key: String,
    },
}

/// The version that one put got.
#[derive(Clone, Debug, uniffi::Record)]
pub struct PutVersion {
    /// The key that was put.
    pub key: String,
    /// Its new version.
    pub version: String,
}

/// The answer to a write.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum WriteResult {
    /// All conditions held and all mutations are in.
    Applied {
        /// The versions of the puts, in the order of the puts.
        put_versions: Vec<PutVersion>,
        /// The commit's instant, in Unix milliseconds.
        store_now_ms: i64,
    },
    /// A condition did not hold; nothing changed.
    Conflict {
        /// The instant of the check, in Unix milliseconds.
        store_now_ms: i64,
    },
}

/// One record of a page.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ScanItem {
    /// The key.
    pub key: String,
    /// The record as it stood at the snapshot's instant. Its `store_now_ms` is the page's.
    pub value: StoredValue,
}

/// The answer to a scan.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum ScanResult {
    /// A page of the snapshot, in ascending key byte order.
    Page {
        /// The records; empty only when the whole scan is.
        items: Vec<ScanItem>,
        /// There exactly when another item is known to follow.
        next_cursor: Option<String>,
        /// The snapshot's instant on the first page; the engine's time of the page on a later one. Unix milliseconds.
        store_now_ms: i64,
    },
    /// The snapshot is gone, or the cursor is none of this scan's: drop what was read and start again.
    Expired,
}

operation! {
    /// A read.
    ReadOperation: zlink_store::ReadResult => [ReadResult], ReadResult::from
}
operation! {
    /// A write.
    WriteOperation: zlink_store::WriteResult => [WriteResult], WriteResult::from
}
operation! {
    /// A scan's page.
    ScanOperation: zlink_store::ScanResult => [ScanResult], ScanResult::from
}
operation! {
    /// A ping. Its result is the engine's clock, in Unix milliseconds.
    PingOperation: StoreTime => [i64], ms
}

/// Small records under opaque keys, with conditional atomic batches, snapshot scans and the engine's clock.
///
/// Nothing connects before the first operation. Stores with the same connection settings share one connection.
#[derive(uniffi::Object)]
pub struct LocationStore(zlink_store::LocationStore);

#[uniffi::export]
impl LocationStore {
    /// Makes a store at the URL, without I/O: `memory:`, `memory:name`, `file:/path`, `redis://…` and its kin.
    #[uniffi::constructor]
    pub fn open(url: &str, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self(zlink_store::LocationStore::open(url, options.into_core()?)?)))
    }

    /// Reads one key: one observation of value, version, expiry and clock.
    pub fn read(&self, key: &str) -> Result<Arc<ReadOperation>, StoreError> {
        let read = self.0.read(Key::new(key)?);
        Ok(Arc::new(ReadOperation(Running::new(read, Unwanted::Drop)?)))
    }

    /// Checks all conditions and, if all hold, applies all mutations as one atomic commit. A key at most once in each list.
    pub fn write(&self, conditions: Vec<Condition>, mutations: Vec<Mutation>) -> Result<Arc<WriteOperation>, StoreError> {
        let write = self.0.write(request(conditions, mutations)?);
        Ok(Arc::new(WriteOperation(Running::new(write, Unwanted::Drop)?)))
    }

    /// Reads one page of a snapshot scan: keys that start with `prefix`, at most `limit` (1..=1,000) items. Without a cursor it
    /// is the first page, which fixes the snapshot; then the cursor is the page before's `next_cursor`.
    pub fn scan(&self, prefix: String, cursor: Option<String>, limit: i64) -> Result<Arc<ScanOperation>, StoreError> {
        let within = format_args!("1..={}", limits::MAX_SCAN_LIMIT);
        // More than 32 bits hold is over the limit in any case.
        let limit = u32::try_from(whole("limit", limit, within)?).unwrap_or(u32::MAX);
        let mut request = ScanRequest::new(prefix, limit);
        request.cursor = cursor.map(Cursor::new).transpose()?;
        let scan = self.0.scan(request);
        Ok(Arc::new(ScanOperation(Running::new(scan, Unwanted::Drop)?)))
    }
}

store! { LocationStore }

fn request(conditions: Vec<Condition>, mutations: Vec<Mutation>) -> Result<WriteRequest, Error> {
    let mut request = WriteRequest::new();
    for (index, condition) in conditions.into_iter().enumerate() {
        let condition = condition.into_core().map_err(|error| error.inside(&format!("conditions[{index}]")))?;
        request.conditions.push(condition);
    }
    for (index, mutation) in mutations.into_iter().enumerate() {
        let mutation = mutation.into_core().map_err(|error| error.inside(&format!("mutations[{index}]")))?;
        request.mutations.push(mutation);
    }
    Ok(request)
}

impl Condition {
    fn into_core(self) -> Result<zlink_store::Condition, Error> {
        Ok(match self {
            Self::Missing { key } => zlink_store::Condition::Missing { key: Key::new(key)? },
            Self::Version { key, expected } => {
                zlink_store::Condition::Version { key: Key::new(key)?, expected: Version::new(expected)? }
            }
        })
    }
}

impl Mutation {
    fn into_core(self) -> Result<zlink_store::Mutation, Error> {
        Ok(match self {
            Self::Put { key, bytes, retention_ms } => {
                let key = Key::new(key)?;
                let retention: Option<Retention> = retention_ms.map(retention).transpose()?;
                zlink_store::Mutation::Put { key, bytes, retention }
            }
            Self::Delete { key } => zlink_store::Mutation::Delete { key: Key::new(key)? },
        })
    }
}

impl From<zlink_store::StoredValue> for StoredValue {
    fn from(value: zlink_store::StoredValue) -> Self {
        Self {
            bytes: value.bytes,
            version: value.version.to_string(),
            expires_at_ms: value.expires_at.map(ms),
            store_now_ms: ms(value.store_now),
        }
    }
}

impl From<zlink_store::ReadResult> for ReadResult {
    fn from(result: zlink_store::ReadResult) -> Self {
        match result {
            zlink_store::ReadResult::Missing { store_now } => Self::Missing { store_now_ms: ms(store_now) },
            zlink_store::ReadResult::Found(value) => Self::Found { value: value.into() },
        }
    }
}

impl From<zlink_store::WriteResult> for WriteResult {
    fn from(result: zlink_store::WriteResult) -> Self {
        match result {
            zlink_store::WriteResult::Applied { put_versions, store_now } => {
                let version =
                    |put: zlink_store::PutVersion| PutVersion { key: put.key.to_string(), version: put.version.to_string() };
                Self::Applied { put_versions: put_versions.into_iter().map(version).collect(), store_now_ms: ms(store_now) }
            }
            zlink_store::WriteResult::Conflict { store_now } => Self::Conflict { store_now_ms: ms(store_now) },
        }
    }
}

impl From<zlink_store::ScanResult> for ScanResult {
    fn from(result: zlink_store::ScanResult) -> Self {
        match result {
            zlink_store::ScanResult::Page(page) => {
                let item = |item: zlink_store::ScanItem| ScanItem { key: item.key.to_string(), value: item.value.into() };
                Self::Page {
                    items: page.items.into_iter().map(item).collect(),
                    next_cursor: page.next_cursor.map(|cursor| cursor.to_string()),
                    store_now_ms: ms(page.store_now),
                }
            }
            zlink_store::ScanResult::Expired => Self::Expired,
        }
    }
}
