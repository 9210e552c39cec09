//! Reading a blob back.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::RedisRelocation;
use super::keys::Keys;
use super::manifest::{HEADER, INLINE, Manifest};
use crate::call::{BLOBS, Call};
use crate::contract::{BlobReadResult, Error, Outcome};

impl RedisRelocation {
    pub(super) async fn read_blob(&self, keys: &Keys, call: &Call) -> Result<BlobReadResult, Error> {
        let mut torn = None;
        loop {
            let look = {
                let _room = BLOBS.room(HEADER + INLINE).await?;
                self.0.wire.open(keys, call).await?
            };
            let Some(manifest) = look.live else { return Ok(BlobReadResult::Missing { store_now: look.now }) };
            if torn == Some(manifest.upload) {
                let said = "a segment of a live blob is gone: was it evicted, or deleted by somebody else?";
                return Err(Error::internal(said).with_outcome(Outcome::NotApplied));
            }
            let bytes = if manifest.segment == 0 {
                Some(look.string.slice(HEADER..)).filter(|bytes| bytes.len() == manifest.size)
            } else {
                drop(look.string);
                self.read_segments(keys, &manifest, call).await?
            };
            match bytes {
                Some(bytes) => {
                    return Ok(BlobReadResult::Found { bytes, expires_at: manifest.expires, store_now: look.now });
                }
                // Deleted, or replaced by another upload: the manifest says. The same again is a fault.
                None => torn = Some(manifest.upload),
            }
        }
    }

    /// All segments in one buffer, or `None` if one is missing.
    async fn read_segments(&self, keys: &Keys, manifest: &Manifest, call: &Call) -> Result<Option<Bytes>, Error> {
        // Nothing else of the budget is held here: who waits holding some of it could wait for ever.
        let _room = BLOBS.room(manifest.size).await?;
        let wire = &self.0.wire;
        let mut buffer = Vec::with_capacity(manifest.size);
        let mut segments = stream::iter(keys.segments(manifest.upload, manifest.segments()))
            .map(|key| wire.segment(key, call))
            .buffered(wire.window());
        while let Some(segment) = segments.try_next().await? {
            let expected = manifest.segment.min(manifest.size - buffer.len());
            match segment {
                Some(bytes) if bytes.len() == expected => buffer.extend_from_slice(&bytes),
                _ => return Ok(None),
            }
        }
        Ok(Some(buffer.into()))
    }
}
