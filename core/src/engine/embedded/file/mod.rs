//! The storage in a folder.
//!
//! ```text
//! folder/zlink-store.format   the format's number
//!        zlink-store.lock     locked as long as somebody has the folder open
//!        data/                fjall: records, manifests, small blobs, expiries
//!        blobs/               one file per blob of more than 256 KiB
//! ```

pub(super) mod blobs;
mod committer;
mod crowd;
mod database;
mod disk;
mod draft;
#[cfg(test)]
mod faults;
mod front;
mod job;
mod journal;
mod place;
mod readers;
mod reclaim;
mod shared;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use self::blobs::Blobs;
use self::database::FileView;
use self::front::Front;
use self::job::Task;
use self::place::Place;
use self::readers::Readers;
use self::shared::{Shared, snapshot_bound};
use super::core::Core;
use super::snapshots::{Limits, Snapshots};
use super::storage::{Draft, Storage};
use crate::ambient::Ambient;
use crate::background;
use crate::call::Call;
use crate::contract::{Error, StoreTime};

/// Larger blobs have a file of their own.
const LARGEST_IN_TABLE: usize = 256 * 1_024;
/// How long the last `close` waits for what may still go on in the background.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// The engine at `path`; the folder is claimed here, and opened in the background.
pub(super) fn open(path: &Path, ambient: Arc<dyn Ambient>) -> Result<Arc<Core<FileStorage>>, Error> {
    let mut registry = place::registry();
    let place = place::at(&mut registry, path)?;
    if let Some(core) = place.engine.lock().upgrade() {
        core.storage.stores.fetch_add(1, Ordering::SeqCst);
        return Ok(core);
    }
    let snapshots = Snapshots::new(Limits { bytes: snapshot_bound(0), keep_all: true });
    let shared = Arc::new(Shared::new(place.folder.clone(), Front::new(ambient), snapshots));
    let storage = FileStorage {
        shared: Arc::clone(&shared),
        readers: Readers::default(),
        place: Arc::downgrade(&place),
        stores: AtomicUsize::new(1),
    };
    let core = Core::new(storage);
    shared.start(Arc::clone(&place))?;
    *place.engine.lock() = Arc::downgrade(&core);
    core.keep_up();
    Ok(core)
}

pub(super) struct FileStorage {
    shared: Arc<Shared>,
    readers: Readers,
    place: Weak<Place>,
    /// Stores that have the folder open; counted under the registry's lock.
    stores: AtomicUsize,
}

#[cfg(test)]
impl FileStorage {
    pub(super) fn faults(&self) -> &faults::Faults {
        &self.shared.faults
    }
}

impl Storage for FileStorage {
    type View = Arc<FileView>;
    const INLINE: bool = false;
    const LARGEST_IN_TABLE: usize = LARGEST_IN_TABLE;

    fn ambient(&self) -> &dyn Ambient {
        self.shared.front.ambient()
    }

    fn identity(view: &Self::View) -> [u8; 16] {
        view.meta.identity
    }

    fn snapshots(&self) -> &Mutex<Snapshots<Self::View>> {
        &self.shared.snapshots
    }

    fn for_scan(view: &Self::View) -> Self::View {
        Arc::clone(view)
    }

    fn blobs(&self) -> Option<&Arc<Blobs>> {
        Some(&self.shared.blobs)
    }

    async fn observe<R, F>(&self, _call: Call, look: F) -> Result<R, Error>
    where
        F: FnOnce(&Self::View, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static,
    {
        let (view, now) = self.shared.front.moment().await?;
        self.readers.run(move || look(&view, now)).await
    }

    async fn commit<R, F>(&self, call: Call, change: F) -> Result<R, Error>
    where
        F: FnOnce(&mut dyn Draft, StoreTime) -> Result<R, Error> + Send + 'static,
        R: Send + 'static,
    {
        let (task, answer) = Task::new(call, change);
        self.shared.submit(task);
        answer.await.unwrap_or_else(|_| Err(Error::internal("a commit ended early")))
    }

    fn release(&self) -> Option<BoxFuture<'static, ()>> {
        let registry = place::registry();
        if self.stores.fetch_sub(1, Ordering::SeqCst) > 1 {
            return None;
        }
        // Whoever opens the folder from here on gets an engine of its own, which waits for this one to end.
        if let Some(place) = self.place.upgrade() {
            *place.engine.lock() = Weak::new();
        }
        drop(registry);
        self.shared.stop();
        let mut ended = self.shared.ended.subscribe();
        let closed = async move {
            let limited = {
                let _timers = background::handle().enter();
                tokio::time::timeout(CLOSE_PATIENCE, async move { ended.wait_for(|ended| *ended).await.map(drop) })
            };
            let _ = limited.await;
        };
        Some(closed.boxed())
    }
}
