//! Large blobs: each lies in a file of its own, written and synced in segments before the commit that makes it visible, and
//! removed after the commit that makes it invisible. So 64 MiB never stand in the way of small commits, and what a delete
//! frees is free at once.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::disk;
use crate::background;
use crate::contract::{Error, Payload};
use crate::engine::embedded::record::UploadId;

#[cfg(test)]
mod tests;

/// Bytes that are asked of a payload, hashed and written in one go.
const SEGMENT: usize = 1_024 * 1_024;
/// Bytes after which they are synced, so that the last sync is no longer than the others.
const SYNC_EVERY: usize = 8 * SEGMENT;
/// Blob files that are written to or read from at once.
const AT_ONCE: usize = 2;

/// The folder of blob files.
pub(in crate::engine::embedded) struct Blobs {
    folder: PathBuf,
    /// Uploads that no commit has decided about yet.
    active: Mutex<HashSet<UploadId>>,
    turns: Semaphore,
}

impl Blobs {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, active: Mutex::default(), turns: Semaphore::new(AT_ONCE) }
    }

    pub(super) fn create_folder(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)
    }

    /// Writes `payload` into a file that nobody sees yet. Dropping the result removes it.
    pub(in crate::engine::embedded) async fn receive(self: &Arc<Self>, id: UploadId, payload: Payload) -> Result<Upload, Error> {
        let size = payload.size();
        disk::check_space(&self.folder, u64::try_from(size).unwrap_or(u64::MAX))?;
        let (blobs, path) = (Arc::clone(self), self.path(&id));
        // Whoever waits for this may go while it is under way: the file belongs to its upload from the moment it is made.
        let make = move || {
            blobs.active.lock().insert(id);
            let upload = Upload { blobs, id, size, digest: [0; 32], fate: Fate::Removed };
            Ok((OpenOptions::new().write(true).create_new(true).open(path)?, upload))
        };
        let (mut file, mut upload) = self.blocking(make).await?;
        let mut hasher = Box::new(blake3::Hasher::new());
        let mut at = 0;
        while at < size {
            let segment = segment(&payload, at).await?;
            at += segment.len();
            let sync = at % SYNC_EVERY < SEGMENT;
            (file, hasher) = self
                .blocking(move || {
                    hasher.update(&segment);
                    file.write_all(&segment)?;
                    if sync {
                        file.sync_data()?;
                    }
                    Ok((file, hasher))
                })
                .await?;
        }
        let folder = self.folder.clone();
        self.blocking(move || file.sync_all().and_then(|()| disk::sync_folder(&folder))).await?;
        upload.digest = *hasher.finalize().as_bytes();
        Ok(upload)
    }

    /// The bytes of an upload; `None` if its file is gone.
    pub(in crate::engine::embedded) async fn read(
        &self,
        id: UploadId,
        size: u64,
        digest: [u8; 32],
    ) -> Result<Option<Bytes>, Error> {
        let path = self.path(&id);
        let read = self
            .blocking(move || match File::open(path) {
                Ok(mut file) => {
                    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
                    file.read_to_end(&mut bytes)?;
                    let whole = *blake3::hash(&bytes).as_bytes() == digest;
                    Ok(Some((Bytes::from(bytes), whole)))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            })
            .await?;
        match read {
            Some((_, false)) => Err(Error::internal("the file of a blob is damaged")),
            Some((bytes, true)) => Ok(Some(bytes)),
            None => Ok(None),
        }
    }

    /// Removes the files of uploads that no manifest names any more.
    pub(super) fn remove(&self, ids: Vec<UploadId>) {
        let paths: Vec<_> = ids.iter().map(|id| self.path(id)).collect();
        background::handle().spawn_blocking(move || paths.iter().for_each(|path| remove(path)));
    }

    /// The uploads that have a file, other than those that are under way.
    pub(super) fn settled(&self) -> io::Result<Vec<UploadId>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            ids.extend(entry?.file_name().to_str().and_then(parse));
        }
        let active = self.active.lock();
        ids.retain(|id| !active.contains(id));
        Ok(ids)
    }

    fn path(&self, id: &UploadId) -> PathBuf {
        self.folder.join(name(id))
    }

    async fn blocking<R, F>(&self, work: F) -> Result<R, Error>
    where
        F: FnOnce() -> io::Result<R> + Send + 'static,
        R: Send + 'static,
    {
        let _turn = self.turns.acquire().await.map_err(|_| Error::internal("the folder of blobs is closed"))?;
        match background::handle().spawn_blocking(work).await {
            Ok(result) => result.map_err(|error| disk::failed(&error, "writing or reading a blob")),
            Err(error) => Err(Error::internal(format!("work on a blob ended early: {error}"))),
        }
    }
}

/// The digest by which a blob in a file is compared.
pub(in crate::engine::embedded) async fn digest(payload: Payload) -> Result<[u8; 32], Error> {
    let mut hasher = Box::new(blake3::Hasher::new());
    let mut at = 0;
    while at < payload.size() {
        let segment = segment(&payload, at).await?;
        at += segment.len();
        let hashed = background::handle().spawn_blocking(move || {
            hasher.update(&segment);
            hasher
        });
        hasher = hashed.await.map_err(|error| Error::internal(format!("work on a blob ended early: {error}")))?;
    }
    Ok(*hasher.finalize().as_bytes())
}

async fn segment(payload: &Payload, at: usize) -> Result<Bytes, Error> {
    let range = at..payload.size().min(at + SEGMENT);
    let wanted = range.len();
    let segment = payload.range(range).await?;
    if segment.len() != wanted {
        return Err(Error::internal("a payload's owner handed over a range of another length"));
    }
    Ok(segment)
}

fn name(id: &UploadId) -> String {
    id.iter().fold(String::with_capacity(32), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

fn parse(name: &str) -> Option<UploadId> {
    let id = u128::from_str_radix(name, 16).ok()?.to_be_bytes();
    (self::name(&id) == name).then_some(id)
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the file of a blob could not be removed; it goes when the folder is opened next");
    }
}

/// A file that was written and that no commit has named yet.
pub(in crate::engine::embedded) struct Upload {
    blobs: Arc<Blobs>,
    id: UploadId,
    size: usize,
    digest: [u8; 32],
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Left,
}

impl Upload {
    pub(in crate::engine::embedded) fn id(&self) -> UploadId {
        self.id
    }

    pub(in crate::engine::embedded) fn size(&self) -> u64 {
        u64::try_from(self.size).unwrap_or(u64::MAX)
    }

    pub(in crate::engine::embedded) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// A commit names it, or may: the file stays. If none does after all, it goes when the folder is opened next.
    pub(super) fn leave(mut self) {
        self.fate = Fate::Left;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.fate == Fate::Removed {
            self.blobs.remove(vec![self.id]);
        }
        self.blobs.active.lock().remove(&self.id);
    }
}
