//! Reading a blob back.

use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::RedisRelocation;
use super::keys::Keys;
use super::manifest::{Manifest, SEGMENT};
use super::wire::First;
use crate::call::{BLOBS, Call};
use crate::contract::{BlobReadResult, Error, Outcome};

impl RedisRelocation {
    pub(super) async fn read_blob(&self, keys: &Keys, call: &Call) -> Result<BlobReadResult, Error> {
        let mut torn = None;
        loop {
            let room = BLOBS.room(SEGMENT).await?;
            let (look, first) = self.0.wire.open(keys, call).await?;
            let Some(manifest) = look.live else { return Ok(BlobReadResult::Missing { store_now: look.now }) };
            if torn == Some(manifest.upload) {
                let said = "a segment of a live blob is gone: was it evicted, or deleted by somebody else?";
                return Err(Error::internal(said).with_outcome(Outcome::NotApplied));
            }
            // Who waits for room must not hold some already, or all could wait for each other.
            drop(room);
            let mut more = pin!(BLOBS.room(manifest.size));
            let (_room, first) = match futures_util::poll!(more.as_mut()) {
                Poll::Ready(room) => (room?, first),
                Poll::Pending => {
                    drop(first);
                    (more.await?, First::Unread)
                }
            };
            match self.segments(keys, &manifest, first, call).await? {
                Some(bytes) => {
                    return Ok(BlobReadResult::Found { bytes, expires_at: manifest.expires, store_now: look.now });
                }
                // Deleted, or replaced by another upload: the manifest says. The same again is a fault.
                None => torn = Some(manifest.upload),
            }
        }
    }

    /// All segments in one buffer, or `None` if one is missing.
    async fn segments(&self, keys: &Keys, manifest: &Manifest, first: First, call: &Call) -> Result<Option<Bytes>, Error> {
        let wire = &self.0.wire;
        let count = manifest.segments();
        let right = |bytes: &Bytes, done: usize| bytes.len() == manifest.segment.min(manifest.size - done);
        let unread = match &first {
            First::Read(_) => None,
            First::Unread => Some(keys.first()),
        };
        let alone = unread.is_some();
        let mut buffer = Vec::new();
        match first {
            First::Read(Some(bytes)) if right(&bytes, 0) => {
                // One segment is the blob, as it came.
                if count == 1 {
                    return Ok(Some(bytes));
                }
                buffer.reserve_exact(manifest.size);
                buffer.extend_from_slice(&bytes);
            }
            First::Read(_) => return Ok(None),
            First::Unread => buffer.reserve_exact(manifest.size),
        }
        let names = unread.into_iter().chain(keys.others(manifest.upload, count));
        let mut arriving = stream::iter(names).map(|key| wire.segment(key, call)).buffered(wire.window());
        while let Some(segment) = arriving.try_next().await? {
            match segment {
                Some(bytes) if right(&bytes, buffer.len()) => buffer.extend_from_slice(&bytes),
                _ => return Ok(None),
            }
        }
        // The first segment bears no upload's name: read apart from the manifest, it may be another's.
        if alone && !self.is_still(keys, manifest, call).await? {
            return Ok(None);
        }
        Ok(Some(buffer.into()))
    }

    async fn is_still(&self, keys: &Keys, manifest: &Manifest, call: &Call) -> Result<bool, Error> {
        let look = self.0.wire.look(keys, call).await?;
        Ok(look.live.is_some_and(|now| now.upload == manifest.upload))
    }
}
