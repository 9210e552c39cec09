//! The Relocation Store's logic, the same for both storages.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::core::{Core, Held};
use super::expiry::reschedule;
use super::record::{Due, Manifest, Scope};
use super::snapshots::Kept;
use super::storage::{Draft, Storage, Table, View};
use crate::ambient;
use crate::call::Call;
use crate::contract::{BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, Payload, Retention, StoreTime};
use crate::engine::{Engine, Pending, RelocationEngine};

/// A payload that is handed over comes in ranges of this many bytes.
const RANGE: usize = 256 * 1_024;

pub(super) struct Relocation<S: Storage> {
    held: Held<S>,
    scope: Scope,
}

impl<S: Storage> Relocation<S> {
    pub(super) fn new(core: Arc<Core<S>>, scope: Scope) -> Self {
        Self { held: Held::new(core), scope }
    }
}

impl<S: Storage> Engine for Relocation<S> {
    fn answers_inline(&self) -> bool {
        S::INLINE
    }

    fn ping(&self, call: Call) -> Pending<StoreTime> {
        let core = self.held.get();
        async move { core?.storage.observe(call, |_, now| Ok(now)).await }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        drop(self.held.release());
        ready(()).boxed()
    }
}

impl<S: Storage> RelocationEngine for Relocation<S> {
    fn put(&self, reference: BlobReference, payload: Payload, retention: Retention, call: Call) -> Pending<BlobPutResult> {
        let core = self.held.get();
        let key = self.scope.key(reference.as_bytes());
        async move { put(&core?, key, payload, retention, call).await }.boxed()
    }

    fn read(&self, reference: BlobReference, call: Call) -> Pending<BlobReadResult> {
        let core = self.held.get();
        let key = self.scope.key(reference.as_bytes());
        async move { core?.storage.observe(call, move |view, now| read(view, &key, now)).await }.boxed()
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
                        remove(draft, &key, &Manifest::decode(&raw)?, &mut *core.snapshots.lock());
                    }
                    Ok(())
                }
            };
            core.storage.commit(call, change).await
        }
        .boxed()
    }
}

async fn put<S: Storage>(
    core: &Arc<Core<S>>,
    key: Vec<u8>,
    payload: Payload,
    retention: Retention,
    call: Call,
) -> Result<BlobPutResult, Error> {
    let payload = gather(payload).await?;
    loop {
        let look = {
            let (key, payload) = (key.clone(), payload.clone());
            move |view: &S::View, now| compare(view, &key, &payload, now)
        };
        if let Some(result) = core.storage.observe(call.clone(), look).await? {
            return Ok(result);
        }
        let upload = ambient::random(core.storage.ambient());
        let change = {
            let (core, key, payload) = (Arc::clone(core), key.clone(), payload.clone());
            move |draft: &mut dyn Draft, now: StoreTime| {
                let new = Manifest {
                    upload,
                    size: size(payload.len()),
                    segment_size: size(S::SEGMENT),
                    expires_at: now.plus(retention),
                };
                store(draft, &key, &new, &payload, now, &mut *core.snapshots.lock())
            }
        };
        // Another put may have come between the look and the commit: then look again.
        if let Some(result) = core.storage.commit(call.clone(), change).await? {
            core.keep_up();
            return Ok(result);
        }
    }
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
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

/// The answer to a put if a live blob is there already: are its bytes the same?
fn compare(view: &impl View, key: &[u8], payload: &[u8], now: StoreTime) -> Result<Option<BlobPutResult>, Error> {
    let Some(manifest) = live(view.get(Table::Manifests, key)?, now)? else { return Ok(None) };
    let mut same = manifest.size == size(payload.len());
    let mut rest = payload;
    for key in manifest.segments() {
        if !same {
            break;
        }
        let stored = segment(view, &key)?;
        match rest.strip_prefix(&stored[..]) {
            Some(left) => rest = left,
            None => same = false,
        }
    }
    Ok(Some(match same {
        true => BlobPutResult::AlreadyStored { expires_at: manifest.expires_at, store_now: now },
        false => BlobPutResult::Conflict { store_now: now },
    }))
}

/// Makes the blob visible, unless a live one is there.
fn store(
    draft: &mut dyn Draft,
    key: &[u8],
    new: &Manifest,
    payload: &Bytes,
    now: StoreTime,
    kept: &mut dyn Kept,
) -> Result<Option<BlobPutResult>, Error> {
    if let Some(raw) = draft.get(Table::Manifests, key)? {
        let old = Manifest::decode(&raw)?;
        if old.is_live(now) {
            return Ok(None);
        }
        remove(draft, key, &old, kept);
    }
    let mut rest = payload.clone();
    for segment in new.segments() {
        let length = usize::try_from(new.segment_size).unwrap_or(usize::MAX).min(rest.len());
        draft.set(Table::Segments, &segment, rest.split_to(length));
    }
    reschedule(draft, None, Some(Due::of_manifest(key, new)));
    draft.set(Table::Manifests, key, new.encode());
    Ok(Some(BlobPutResult::Stored { expires_at: new.expires_at, store_now: now }))
}

/// Removes a blob that is there, manifest and segments.
pub(super) fn remove(draft: &mut dyn Draft, key: &[u8], old: &Manifest, kept: &mut dyn Kept) {
    kept.removed_blob(old.size);
    reschedule(draft, Some(Due::of_manifest(key, old)), None);
    draft.remove(Table::Manifests, key);
    for segment in old.segments() {
        draft.remove(Table::Segments, &segment);
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

fn read(view: &impl View, key: &[u8], now: StoreTime) -> Result<BlobReadResult, Error> {
    let Some(manifest) = live(view.get(Table::Manifests, key)?, now)? else {
        return Ok(BlobReadResult::Missing { store_now: now });
    };
    let mut segments = manifest.segments();
    let bytes = match (segments.next(), segments.next()) {
        (None, _) => Bytes::new(),
        // Nothing to join, nothing to copy.
        (Some(only), None) => segment(view, &only)?,
        (Some(_), Some(_)) => {
            let mut whole = BytesMut::with_capacity(usize::try_from(manifest.size).unwrap_or_default());
            for key in manifest.segments() {
                whole.extend_from_slice(&segment(view, &key)?);
            }
            whole.freeze()
        }
    };
    Ok(BlobReadResult::Found { bytes, expires_at: manifest.expires_at, store_now: now })
}

fn live(raw: Option<Bytes>, now: StoreTime) -> Result<Option<Manifest>, Error> {
    let manifest = raw.map(|raw| Manifest::decode(&raw)).transpose()?;
    Ok(manifest.filter(|manifest| manifest.is_live(now)))
}

fn segment(view: &impl View, key: &[u8]) -> Result<Bytes, Error> {
    view.get(Table::Segments, key)?.ok_or_else(|| Error::internal("a segment of a blob is gone"))
}
