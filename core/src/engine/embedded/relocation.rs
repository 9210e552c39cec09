//! The Relocation Store's logic, the same for both storages.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;

use super::core::{Core, Store};
use super::expiry::reschedule;
use super::file::blobs::Upload;
use super::record::{Due, Manifest, Place, Scope};
use super::snapshots::Kept;
use super::storage::{Draft, Storage, Table, View};
use crate::ambient;
use crate::call::Call;
use crate::contract::{BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, Payload, Retention, StoreTime};
use crate::engine::{Pending, RelocationEngine};

/// A payload that is handed over comes in ranges of this many bytes.
const RANGE: usize = 256 * 1_024;

impl<S: Storage> RelocationEngine for Store<S, Scope> {
    fn put(&self, reference: BlobReference, payload: Payload, retention: Retention, call: Call) -> Pending<BlobPutResult> {
        let core = self.held.get();
        let key = self.scope.key(reference.as_bytes());
        async move { Put { core: core?, key: key.into(), retention, call }.run(payload).await }.boxed()
    }

    fn read(&self, reference: BlobReference, call: Call) -> Pending<BlobReadResult> {
        let core = self.held.get();
        let key = self.scope.key(reference.as_bytes());
        async move { read(&*core?, key.into(), call).await }.boxed()
    }

    fn renew(&self, reference: BlobReference, retention: Retention, call: Call) -> Pending<BlobRenewResult> {
        let core = self.held.get();
        let key = self.scope.key(reference.as_bytes());
        async move { core?.storage.commit(call, move |draft, now| renew(draft, &key, retention, now)).await }.boxed()
    }

    fn delete(&self, reference: BlobReference, call: Call) -> Pending<()> {
        let core = self.held.get();
        let key = self.scope.key(reference.as_bytes());
        async move {
            let core = core?;
            let change = {
                let core = Arc::clone(&core);
                move |draft: &mut dyn Draft, _now| {
                    if let Some(raw) = draft.get(Table::Manifests, &key)? {
                        remove(draft, &key, &Manifest::decode(&raw)?, &mut *core.snapshots());
                    }
                    Ok(())
                }
            };
            core.storage.commit(call, change).await
        }
        .boxed()
    }
}

/// One put.
struct Put<S: Storage> {
    core: Arc<Core<S>>,
    key: Arc<[u8]>,
    retention: Retention,
    call: Call,
}

/// The bytes of a put, kept where they will stay but visible to nobody.
enum Staged {
    AtHand(Bytes),
    InFile(Upload),
}

impl<S: Storage> Put<S> {
    async fn run(self, payload: Payload) -> Result<BlobPutResult, Error> {
        let small = payload.size() <= S::LARGEST_IN_TABLE;
        let payload = if small { Payload::Bytes(gather(payload).await?) } else { payload };
        let mut staged = None;
        loop {
            if let (Some((found, content)), now) = look(&self.core, &self.key, self.call.clone()).await? {
                return self.compare(&payload, found, content, now).await;
            }
            let next = match (staged.take(), &payload, self.core.storage.blobs()) {
                (Some(staged), _, _) => staged,
                (None, Payload::Bytes(bytes), None) => Staged::AtHand(bytes.clone()),
                (None, Payload::Bytes(bytes), _) if small => Staged::AtHand(bytes.clone()),
                (None, payload, Some(blobs)) => {
                    let id = ambient::random(self.core.storage.ambient());
                    Staged::InFile(blobs.receive(id, payload.clone()).await?)
                }
                (None, Payload::Source(_), None) => return Err(Error::internal("a blob that fits nowhere")),
            };
            match self.store(next).await? {
                Ok(result) => {
                    self.core.keep_up();
                    return Ok(result);
                }
                // Another put came between the look and the commit: look again.
                Err(unused) => staged = Some(unused),
            }
        }
    }

    /// The answer if a live blob is there already: are its bytes the same?
    async fn compare(
        &self,
        payload: &Payload,
        found: Manifest,
        content: Option<Bytes>,
        now: StoreTime,
    ) -> Result<BlobPutResult, Error> {
        let same = found.size == length(payload.size())
            && match (content, payload, found.place) {
                (Some(content), Payload::Bytes(bytes), _) => content == *bytes,
                (_, payload, Place::File(digest)) => super::file::blobs::digest(payload.clone()).await? == digest,
                (_, _, Place::Table) => return Err(Error::internal("a blob of this size is not in the table")),
            };
        Ok(match same {
            true => BlobPutResult::AlreadyStored { expires_at: found.expires_at, store_now: now },
            false => BlobPutResult::Conflict { store_now: now },
        })
    }

    /// Makes the blob visible, unless a live one is there.
    async fn store(&self, staged: Staged) -> Result<Result<BlobPutResult, Staged>, Error> {
        let (core, key, retention) = (Arc::clone(&self.core), Arc::clone(&self.key), self.retention);
        let id = ambient::random(core.storage.ambient());
        let change = move |draft: &mut dyn Draft, now: StoreTime| {
            if let Some(raw) = draft.get(Table::Manifests, &key)? {
                let old = Manifest::decode(&raw)?;
                if old.is_live(now) {
                    return Ok(Err(staged));
                }
                remove(draft, &key, &old, &mut *core.snapshots());
            }
            let expires_at = now.plus(retention);
            let new = match staged {
                Staged::AtHand(bytes) => {
                    let size = length(bytes.len());
                    draft.set(Table::Contents, &id, bytes);
                    Manifest { upload: id, size, expires_at, place: Place::Table }
                }
                Staged::InFile(upload) => {
                    let (id, size, place) = (upload.id(), upload.size(), Place::File(upload.digest()));
                    draft.adopt(upload);
                    Manifest { upload: id, size, expires_at, place }
                }
            };
            reschedule(draft, None, Some(Due::of_manifest(&key, &new)));
            draft.weigh(weight(&key, &new));
            draft.set(Table::Manifests, &key, new.encode());
            Ok(Ok(BlobPutResult::Stored { expires_at, store_now: now }))
        };
        self.core.storage.commit(self.call.clone(), change).await
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What a blob takes in the tables.
fn weight(key: &[u8], manifest: &Manifest) -> i64 {
    let content = if manifest.place == Place::Table { manifest.size } else { 0 };
    i64::try_from(2 * length(key.len()) + 192 + content).unwrap_or(i64::MAX)
}

/// The whole payload at hand.
async fn gather(payload: Payload) -> Result<Bytes, Error> {
    let source = match payload {
        Payload::Bytes(bytes) => return Ok(bytes),
        Payload::Source(source) => source,
    };
    let mut whole = BytesMut::with_capacity(source.size());
    while whole.len() < source.size() {
        let range = whole.len()..source.size().min(whole.len() + RANGE);
        let wanted = range.len();
        let bytes = source.range(range).await?;
        if bytes.len() != wanted {
            return Err(Error::internal("a payload's owner handed over a range of another length"));
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

/// A live blob, with its bytes if they are in the table.
type Found = (Manifest, Option<Bytes>);

/// What there is, and the instant of the look.
async fn look<S: Storage>(core: &Core<S>, key: &Arc<[u8]>, call: Call) -> Result<(Option<Found>, StoreTime), Error> {
    let key = Arc::clone(key);
    let look = move |view: &S::View, now| {
        let Some(manifest) = live(view.get(Table::Manifests, &key)?, now)? else { return Ok((None, now)) };
        let content = match manifest.place {
            Place::Table => {
                let content = view.get(Table::Contents, &manifest.upload)?;
                Some(content.ok_or_else(|| Error::internal("the bytes of a blob are gone"))?)
            }
            Place::File(_) => None,
        };
        Ok((Some((manifest, content)), now))
    };
    core.storage.observe(call, look).await
}

async fn read<S: Storage>(core: &Core<S>, key: Arc<[u8]>, call: Call) -> Result<BlobReadResult, Error> {
    let mut without_file = None;
    loop {
        let (found, now) = look(core, &key, call.clone()).await?;
        let Some((manifest, content)) = found else { return Ok(BlobReadResult::Missing { store_now: now }) };
        let bytes = match (content, manifest.place, core.storage.blobs()) {
            (Some(content), _, _) => Some(content),
            (None, Place::File(digest), Some(blobs)) => blobs.read(manifest.upload, manifest.size, digest).await?,
            (None, _, _) => None,
        };
        if let Some(bytes) = bytes {
            return Ok(BlobReadResult::Found { bytes, expires_at: manifest.expires_at, store_now: now });
        }
        // A file goes after its manifest: the blob was deleted since the look, or the folder is damaged.
        if without_file.replace(manifest.upload) == Some(manifest.upload) {
            return Err(Error::internal("the file of a blob is gone"));
        }
    }
}

fn renew(draft: &mut dyn Draft, key: &[u8], retention: Retention, now: StoreTime) -> Result<BlobRenewResult, Error> {
    let Some(old) = live(draft.get(Table::Manifests, key)?, now)? else {
        return Ok(BlobRenewResult::Missing { store_now: now });
    };
    let new = Manifest { expires_at: now.plus(retention), ..old };
    reschedule(draft, Some(Due::of_manifest(key, &old)), Some(Due::of_manifest(key, &new)));
    draft.set(Table::Manifests, key, new.encode());
    Ok(BlobRenewResult::Renewed { expires_at: new.expires_at, store_now: now })
}

/// Removes a blob that is there, manifest and bytes.
pub(super) fn remove(draft: &mut dyn Draft, key: &[u8], old: &Manifest, kept: &mut dyn Kept) {
    reschedule(draft, Some(Due::of_manifest(key, old)), None);
    draft.weigh(-weight(key, old));
    draft.remove(Table::Manifests, key);
    match old.place {
        Place::Table => {
            kept.removed_content(old.size);
            draft.remove(Table::Contents, &old.upload);
        }
        Place::File(_) => draft.discard(old.upload),
    }
}

fn live(raw: Option<Bytes>, now: StoreTime) -> Result<Option<Manifest>, Error> {
    let manifest = raw.map(|raw| Manifest::decode(&raw)).transpose()?;
    Ok(manifest.filter(|manifest| manifest.is_live(now)))
}
