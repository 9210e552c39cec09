//! What the committer and its callers share: the queue between them, and the database while it is open.

use std::collections::{HashSet, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::blobs::Blobs;
use super::database::{Change, FileView, Meta, Tables};
use super::disk;
use super::front::Front;
use super::job::Job;
use crate::contract::{Error, Outcome};
use crate::engine::embedded::record::Manifest;
use crate::engine::embedded::snapshots::Snapshots;
use crate::engine::embedded::storage::{Table, View};
use crate::{ambient, background};

/// How long a congested database is waited for before it is looked at again.
pub(super) const BEHIND: Duration = Duration::from_millis(2);

/// What the thread and its callers share.
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    pub(super) front: Front,
    pub(super) snapshots: Mutex<Snapshots<Arc<FileView>>>,
    pub(super) blobs: Arc<Blobs>,
    pub(super) queue: Mutex<Queue>,
    pub(super) wake: Condvar,
    pub(super) ended: watch::Sender<bool>,
    #[cfg(test)]
    pub(super) faults: super::faults::Faults,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) jobs: VecDeque<Box<dyn Job>>,
    /// The thread is woken when so many wait.
    pub(super) wake_at: usize,
    pub(super) stopping: bool,
}

impl Shared {
    pub(super) fn new(folder: PathBuf, front: Front, snapshots: Snapshots<Arc<FileView>>) -> Self {
        let blobs = Arc::new(Blobs::new(folder.join("blobs")));
        Self {
            folder,
            front,
            snapshots: Mutex::new(snapshots),
            blobs,
            queue: Mutex::default(),
            wake: Condvar::new(),
            ended: watch::Sender::new(false),
            #[cfg(test)]
            faults: super::faults::Faults::default(),
        }
    }

    pub(super) fn submit(&self, job: Box<dyn Job>) {
        let mut queue = self.queue.lock();
        if queue.stopping {
            drop(queue);
            return job.fail(Error::closed());
        }
        queue.jobs.push_back(job);
        let enough = queue.jobs.len() >= queue.wake_at;
        drop(queue);
        if enough {
            self.wake.notify_one();
        }
    }

    /// What waits is still committed; then the folder is closed.
    pub(super) fn stop(&self) {
        self.queue.lock().stopping = true;
        self.wake.notify_one();
    }
}

/// An open database, and the state after its last commit.
pub(super) struct Open {
    pub(super) tables: Arc<Tables>,
    pub(super) view: Arc<FileView>,
}

impl Shared {
    pub(super) fn next_job(&self) -> Option<Box<dyn Job>> {
        self.queue.lock().jobs.pop_front()
    }

    pub(super) fn open_tables(&self) -> Result<Open, Error> {
        self.blobs.create_folder().map_err(|error| disk::failed(&error, "making the folder of blobs"))?;
        let tables = Arc::new(Tables::open(&self.folder, self.front.ambient())?);
        let view = Arc::new(tables.view()?);
        Ok(Open { tables, view })
    }

    /// Writes and syncs; an error comes with what became of the batch.
    pub(super) fn write(
        &self,
        tables: &Tables,
        changes: impl Iterator<Item = Change>,
        meta: &Meta,
    ) -> Result<(), (Error, Outcome)> {
        #[cfg(test)]
        if let Some(error) = self.faults.before_write() {
            return Err((disk::failed(&error, "writing to the folder"), Outcome::Unknown));
        }
        match catch_unwind(AssertUnwindSafe(|| tables.commit(changes, meta))) {
            Ok(Ok(())) => Ok(()),
            // Refused before anything was written.
            Ok(Err(error @ fjall::Error::Poisoned)) => {
                Err((disk::database_failed(&error, "writing to the folder"), Outcome::NotApplied))
            }
            // The batch may come back when the folder is opened again.
            Ok(Err(error)) => Err((disk::database_failed(&error, "writing to the folder"), Outcome::Unknown)),
            Err(_) => Err((Error::internal("the storage failed while it wrote"), Outcome::Unknown)),
        }
    }

    /// Closes the database once nobody uses it any more; gives it back if that takes longer than `patience`.
    pub(super) fn let_go(&self, open: Open, patience: Option<Duration>) -> Option<Open> {
        self.snapshots.lock().clear();
        let Open { mut tables, view } = open;
        let meta = view.meta;
        drop(view);
        let give_up = patience.map(|patience| ambient::monotonic() + patience);
        loop {
            match Arc::try_unwrap(tables) {
                Ok(tables) => {
                    // After a panic of one of its threads fjall may panic here too.
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(tables)));
                    return None;
                }
                Err(shared) => tables = shared,
            }
            if give_up.is_some_and(|give_up| ambient::monotonic() >= give_up) {
                let view = Arc::new(tables.view_after(meta));
                return Some(Open { tables, view });
            }
            thread::sleep(BEHIND);
        }
    }
}

/// Removes the blob files that no manifest names: what was left by uploads and deletes that a crash cut off.
pub(super) fn sweep(shared: &Arc<Shared>, view: &Arc<FileView>) {
    let (blobs, view) = (Arc::clone(&shared.blobs), Arc::clone(view));
    background::handle().spawn_blocking(move || {
        let swept = blobs.settled().map_err(|error| disk::failed(&error, "looking into the folder of blobs"));
        let swept = swept.and_then(|found| {
            if found.is_empty() {
                return Ok(());
            }
            let mut left: HashSet<_> = found.into_iter().collect();
            view.walk(Table::Manifests, Bound::Unbounded, &mut |_, raw| {
                left.remove(&Manifest::decode(&raw)?.upload);
                Ok(ControlFlow::Continue(()))
            })?;
            blobs.remove(left.into_iter().collect());
            Ok(())
        });
        if let Err(error) = swept {
            tracing::warn!(%error, "left-over blob files could not be removed; it is tried again at the next opening");
        }
    });
}

/// Snapshots may keep a quarter of what is live, and 64 MiB anyway.
pub(super) fn snapshot_bound(live: u64) -> u64 {
    (live / 4).max(64 * 1_024 * 1_024)
}
