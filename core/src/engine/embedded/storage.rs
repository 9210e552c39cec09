//! The seam between the store logic and its two storages.

use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::file::blobs::{Blobs, Upload};
use super::record::UploadId;
use super::snapshots::Snapshots;
use crate::ambient::Ambient;
use crate::call::Call;
use crate::contract::{Error, StoreTime};

/// The tables of an engine: each an ordered map from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    /// Scope and key → [`Record`](super::record::Record).
    Records,
    /// Scope and reference → [`Manifest`](super::record::Manifest).
    Manifests,
    /// Upload id → the bytes of a blob that is not kept in a file of its own.
    Contents,
    /// Expiry, table and key → what has to be there still for the expiry to hold.
    Due,
    /// Project, namespace and key → a state entry.
    Entries,
    /// Project, namespace and key → the [`Lease`](super::project) of a lock.
    Locks,
    /// Project and lease id → the key of its lock.
    Leases,
    /// Project → what is kept of it as a whole.
    Projects,
}

impl Table {
    pub(super) const ALL: [Self; 8] =
        [Self::Records, Self::Manifests, Self::Contents, Self::Due, Self::Entries, Self::Locks, Self::Leases, Self::Projects];
}

/// Called with each entry of a walk.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&[u8], Bytes) -> Result<ControlFlow<()>, Error>;

/// The tables as they stood after one commit, whatever is committed since.
pub(super) trait View {
    /// The sequence of the last commit that put something.
    fn sequence(&self) -> u64;
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error>;
    /// Visits the entries from `from` on, in ascending order, until `visit` breaks.
    fn walk(&self, table: Table, from: Bound<&[u8]>, visit: Visit<'_>) -> Result<(), Error>;
}

/// What one operation changes. Nothing is changed if it ends with an error.
pub(super) trait Draft {
    /// The value as this operation's commit finds it.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error>;
    fn set(&mut self, table: Table, key: &[u8], value: Bytes);
    fn remove(&mut self, table: Table, key: &[u8]);
    /// The sequence of this commit, one more than that of the last commit that asked.
    fn next_sequence(&mut self) -> u64;
    /// The live data grow by so many bytes with this commit (or shrink).
    fn weigh(&mut self, bytes: i64);
    /// The upload belongs to this commit: it stays if the commit does.
    fn adopt(&mut self, upload: Upload);
    /// The file of an earlier upload goes once this commit is done.
    fn discard(&mut self, upload: UploadId);
}

/// Where the tables are kept: in memory, or in a folder.
pub(super) trait Storage: Send + Sync + 'static {
    type View: View + Clone + Send + Sync + 'static;
    /// Whether `observe` and `commit` are done at the first poll.
    const INLINE: bool;
    /// The largest blob that is kept in the tables; a larger one has a file of its own.
    const LARGEST_IN_TABLE: usize;

    fn ambient(&self) -> &dyn Ambient;

    /// Names the data, the same as long as they exist.
    fn identity(view: &Self::View) -> [u8; 16];

    fn snapshots(&self) -> &Mutex<Snapshots<Self::View>>;

    /// The part of `view` that a scan needs, so that its snapshot holds nothing else.
    fn for_scan(view: &Self::View) -> Self::View;

    /// Where the large blobs are, if any blob is too large for a table.
    fn blobs(&self) -> Option<&Arc<Blobs>>;

    /// Looks at the state and the clock of one instant.
    fn observe<R, F>(&self, call: Call, look: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&Self::View, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static;

    /// Makes one atomic commit at one instant of the clock.
    fn commit<R, F>(&self, call: Call, change: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&mut dyn Draft, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static;

    /// A store that had it open gives it up. The future, if there is one, is done when the storage is closed.
    fn release(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Time never runs backwards: the later of the machine's clock and the last time told.
#[derive(Debug)]
pub(super) struct Clock {
    last: StoreTime,
}

impl Clock {
    pub(super) fn new(last: StoreTime) -> Self {
        Self { last }
    }

    /// The last time told.
    pub(super) fn last(&self) -> StoreTime {
        self.last
    }

    pub(super) fn at_least(&mut self, time: StoreTime) {
        self.last = self.last.max(time);
    }

    pub(super) fn now(&mut self, ambient: &dyn Ambient) -> StoreTime {
        self.last = self.last.max(ambient.now());
        self.last
    }
}
