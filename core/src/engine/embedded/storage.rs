//! The seam between the store logic and its two storages.

use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

use super::snapshots::Limits;
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
    /// Upload id and place → a piece of a blob.
    Segments,
    /// Expiry, table and key → what has to be there still for the expiry to hold.
    Due,
}

impl Table {
    pub(super) const ALL: [Self; 4] = [Self::Records, Self::Manifests, Self::Segments, Self::Due];
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
}

/// Where the tables are kept: in memory, or in a folder.
pub(super) trait Storage: Send + Sync + 'static {
    type View: View + Clone + Send + Sync + 'static;
    /// Whether `observe` and `commit` are done at the first poll.
    const INLINE: bool;
    /// Blobs are kept in pieces of this many bytes.
    const SEGMENT: usize;

    fn ambient(&self) -> &dyn Ambient;

    /// Names the data, the same as long as it exists.
    fn identity(&self) -> [u8; 16];

    /// How much live snapshots may keep from being freed.
    fn snapshot_limits(&self) -> Limits;

    /// The part of `view` that a scan needs, so that its snapshot holds nothing else.
    fn for_scan(view: &Self::View) -> Self::View;

    /// Looks at the state and the clock of one instant.
    fn observe<R, F>(self: &Arc<Self>, call: Call, look: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&Self::View, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static;

    /// Makes one atomic commit at one instant of the clock.
    fn commit<R, F>(self: &Arc<Self>, call: Call, change: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&mut dyn Draft, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static;
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

    pub(super) fn now(&mut self, ambient: &dyn Ambient) -> StoreTime {
        self.last = self.last.max(ambient.now());
        self.last
    }
}
