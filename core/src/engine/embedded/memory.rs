//! The storage in memory: persistent ordered maps, so that a view is a clone.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, LazyLock, Weak};

use bytes::Bytes;
use imbl::OrdMap;
use parking_lot::Mutex;

use super::core::Core;
use super::file::blobs::{Blobs, Upload};
use super::name::Name;
use super::record::UploadId;
use super::snapshots::{Limits, Snapshots};
use super::storage::{Clock, Draft, Storage, Table, View, Visit};
use crate::ambient::{self, Ambient};
use crate::call::Call;
use crate::contract::{Error, StoreTime, limits};

/// Most bytes of replaced records that snapshots keep.
const SNAPSHOT_BYTES: u64 = limits::SNAPSHOT_BYTES as u64;

/// `memory:name` is one and the same for the whole process, as long as somebody has it open.
static NAMED: LazyLock<Mutex<HashMap<String, Weak<Core<Memory>>>>> = LazyLock::new(Mutex::default);

/// The engine of that name, or a private one.
pub(super) fn open(name: Option<&str>) -> Arc<Core<Memory>> {
    let Some(name) = name else { return Core::new(Memory::new(ambient::system())) };
    let mut named = NAMED.lock();
    if let Some(core) = named.get(name).and_then(Weak::upgrade) {
        return core;
    }
    named.retain(|_, core| core.strong_count() > 0);
    let core = Core::new(Memory::new(ambient::system()));
    named.insert(name.to_owned(), Arc::downgrade(&core));
    core
}

#[derive(Debug)]
pub(super) struct Memory {
    ambient: Arc<dyn Ambient>,
    state: Mutex<State>,
    snapshots: Mutex<Snapshots<Arc<Tables>>>,
}

#[derive(Debug)]
struct State {
    tables: Arc<Tables>,
    clock: Clock,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    identity: [u8; 16],
    maps: [OrdMap<Name, Bytes>; Table::ALL.len()],
    sequence: u64,
}

impl Memory {
    pub(super) fn new(ambient: Arc<dyn Ambient>) -> Self {
        let tables = Tables { identity: ambient::random(&*ambient), ..Tables::default() };
        let state = Mutex::new(State { tables: Arc::new(tables), clock: Clock::new(StoreTime::from_unix_ms(0)) });
        // A snapshot holds the records alone (see `for_scan`).
        let snapshots = Snapshots::new(Limits { bytes: SNAPSHOT_BYTES, keep_all: false });
        Self { ambient, state, snapshots: Mutex::new(snapshots) }
    }
}

#[cfg(test)]
impl Memory {
    /// How many entries each table has.
    pub(super) fn lengths(&self) -> [usize; Table::ALL.len()] {
        Table::ALL.map(|table| self.state.lock().tables.maps[table as usize].len())
    }
}

impl Storage for Memory {
    type View = Arc<Tables>;
    const INLINE: bool = true;
    const LARGEST_IN_TABLE: usize = limits::MAX_BLOB;

    fn ambient(&self) -> &dyn Ambient {
        &*self.ambient
    }

    fn identity(view: &Self::View) -> [u8; 16] {
        view.identity
    }

    fn snapshots(&self) -> &Mutex<Snapshots<Self::View>> {
        &self.snapshots
    }

    fn for_scan(view: &Self::View) -> Self::View {
        let mut tables = Tables { identity: view.identity, sequence: view.sequence, ..Tables::default() };
        tables.maps[Table::Records as usize] = view.maps[Table::Records as usize].clone();
        Arc::new(tables)
    }

    fn blobs(&self) -> Option<&Arc<Blobs>> {
        None
    }

    fn observe<R, F>(&self, _call: Call, look: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&Self::View, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static,
    {
        let (view, now) = {
            let mut state = self.state.lock();
            (Arc::clone(&state.tables), state.clock.now(&*self.ambient))
        };
        ready(look(&view, now))
    }

    fn commit<R, F>(&self, _call: Call, change: F) -> impl Future<Output = Result<R, Error>> + Send
    where
        F: FnOnce(&mut dyn Draft, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static,
    {
        let mut state = self.state.lock();
        let now = state.clock.now(&*self.ambient);
        let tables: &mut Tables = Arc::make_mut(&mut state.tables);
        ready(change(tables, now))
    }
}

impl View for Arc<Tables> {
    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(self.maps[table as usize].get(key).cloned())
    }

    fn walk(&self, table: Table, from: Bound<&[u8]>, visit: Visit<'_>) -> Result<(), Error> {
        let rest: (Bound<&[u8]>, Bound<&[u8]>) = (from, Bound::Unbounded);
        for (key, value) in self.maps[table as usize].range::<_, [u8]>(rest) {
            if let ControlFlow::Break(()) = visit(key, value.clone())? {
                break;
            }
        }
        Ok(())
    }
}

/// Reads never fail here, so an operation fails before its first change or not at all.
impl Draft for Tables {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(self.maps[table as usize].get(key).cloned())
    }

    fn set(&mut self, table: Table, key: &[u8], value: Bytes) {
        self.maps[table as usize].insert(Name::from(key), value);
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        self.maps[table as usize].remove(key);
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
    fn weigh(&mut self, _bytes: i64) {}

    fn adopt(&mut self, upload: Upload) {
        // Every blob fits into a table here.
        drop(upload);
    }

    fn discard(&mut self, _upload: UploadId) {}
}
