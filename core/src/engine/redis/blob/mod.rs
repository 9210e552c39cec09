//! The Relocation Store on Redis (spec: redis.md, Blobs).
//!
//! A blob is a manifest and segments of their own. Those of an upload bear its name; the manifest is written last, so a blob
//! is visible at once or not at all, and everything that was written before it expires by itself. The first segment of what
//! is visible has a fixed name, so that a reader gets it together with the manifest, and small blobs in one round trip.

mod keys;
mod manifest;
mod put;
mod read;
mod renew;
#[cfg(test)]
mod tests;
mod wire;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::manifest::fuzz;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::keys::Keys;
use self::wire::{DELETE, Wire};
use super::client::Client;
use crate::ambient::Ambient;
use crate::background::spawn_scoped;
use crate::call::{Call, EngineCounters};
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, KeyPrefix, Payload, Retention, StoreTime,
};
use crate::engine::{Engine, Pending, RelocationEngine};

/// A Relocation Store's engine on Redis. Clones share it.
#[derive(Clone)]
pub(crate) struct RedisRelocation(Arc<Inner>);

struct Inner {
    wire: Wire,
    prefix: KeyPrefix,
    ambient: Arc<dyn Ambient>,
}

impl RedisRelocation {
    pub(crate) fn new(client: Client, prefix: KeyPrefix, ambient: Arc<dyn Ambient>) -> Self {
        Self(Arc::new(Inner { wire: Wire::new(client), prefix, ambient }))
    }

    fn keys(&self, reference: &BlobReference) -> Keys {
        Keys::new(&self.0.prefix, reference)
    }
}

impl Engine for RedisRelocation {
    fn ping(&self, call: Call) -> Pending<StoreTime> {
        let store = self.clone();
        async move { store.0.wire.now(&call).await }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.0.wire.close();
        std::future::ready(()).boxed()
    }

    fn counters(&self) -> Option<&EngineCounters> {
        Some(self.0.wire.counters())
    }
}

impl RelocationEngine for RedisRelocation {
    fn put(&self, reference: BlobReference, payload: Payload, retention: Retention, call: Call) -> Pending<BlobPutResult> {
        let store = self.clone();
        spawn_scoped(async move { store.put_blob(&store.keys(&reference), payload, retention, &call).await }).boxed()
    }

    fn read(&self, reference: BlobReference, call: Call) -> Pending<BlobReadResult> {
        let store = self.clone();
        spawn_scoped(async move { store.read_blob(&store.keys(&reference), &call).await }).boxed()
    }

    fn renew(&self, reference: BlobReference, retention: Retention, call: Call) -> Pending<BlobRenewResult> {
        let store = self.clone();
        spawn_scoped(async move { store.renew_blob(&store.keys(&reference), retention, &call).await }).boxed()
    }

    fn delete(&self, reference: BlobReference, call: Call) -> Pending<()> {
        let store = self.clone();
        spawn_scoped(async move { store.delete_blob(&store.keys(&reference), &call).await }).boxed()
    }
}

impl RedisRelocation {
    /// Deletes what the first look finds, and nothing that is put after it, however often the script must be sent.
    async fn delete_blob(&self, keys: &Keys, call: &Call) -> Result<(), Error> {
        let wire = &self.0.wire;
        let Some(manifest) = wire.look(keys, call).await?.live else { return wire.confirm(keys, call).await };
        let mut names = vec![keys.manifest()];
        names.extend(keys.segments(manifest.upload, manifest.segments()));
        let args = [Bytes::copy_from_slice(&manifest.upload.0)];
        wire.change_surely(&DELETE, &names, &args, keys, call).await?;
        wire.hasten(names.split_off(2));
        Ok(())
    }
}
