//! Putting a blob: small ones in one call, large ones segment by segment.

use std::ops::Range;
use std::task::Poll;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::RedisRelocation;
use super::keys::{Keys, Mark, Upload};
use super::manifest::{INLINE, Manifest, SEGMENT};
use super::wire::{Answer, FINISH, Look, PUT_SMALL};
use crate::ambient;
use crate::call::Call;
use crate::contract::{BlobPutResult, Code, Error, Outcome, Payload, Retention, StoreTime};
use crate::engine::redis::transport::Failure;

/// How long a segment of an unfinished upload outlives the operation timeout.
const LEFTOVER_MS: u64 = 50_000;

impl RedisRelocation {
    pub(super) async fn put_blob(
        &self,
        keys: &Keys,
        payload: Payload,
        retention: Retention,
        call: &Call,
    ) -> Result<BlobPutResult, Error> {
        if payload.size() <= INLINE {
            return self.put_small(keys, &payload, retention, call).await;
        }
        let look = self.0.wire.look(keys, call).await?;
        match &look.live {
            Some(manifest) => compare(manifest, look.now, &payload).await,
            None => self.put_large(keys, &payload, retention, &look, call).await,
        }
    }

    async fn put_small(&self, keys: &Keys, payload: &Payload, retention: Retention, call: &Call) -> Result<BlobPutResult, Error> {
        let wire = &self.0.wire;
        let bytes = piece(payload, 0..payload.size()).await?;
        let upload = Upload::new(&*self.0.ambient);
        let args = [
            Bytes::copy_from_slice(&upload.0),
            Bytes::copy_from_slice(blake3::hash(&bytes).as_bytes()),
            format!("{:08}", bytes.len()).into(),
            Bytes::copy_from_slice(&Mark::new(&*self.0.ambient).0),
            retention.as_ms().to_string().into(),
            bytes,
        ];
        match wire.change(&PUT_SMALL, &[keys.manifest()], &args, call).await {
            Ok(answer) => verdict(&answer)?.ok_or_else(|| answer.strange()),
            Err(Failure::NotSent(error)) => Err(error.with_outcome(Outcome::NotApplied)),
            Err(Failure::Lost(error)) => match wire.look(keys, call).await {
                // Only what is there proves anything: the bytes may still be under way.
                Ok(Look { live: Some(manifest), .. }) if manifest.upload == upload => {
                    Ok(BlobPutResult::Stored { expires_at: manifest.expires, store_now: manifest.committed })
                }
                _ => Err(error.with_outcome(Outcome::Unknown)),
            },
        }
    }

    async fn put_large(
        &self,
        keys: &Keys,
        payload: &Payload,
        retention: Retention,
        look: &Look,
        call: &Call,
    ) -> Result<BlobPutResult, Error> {
        let wire = &self.0.wire;
        let upload = Upload::new(&*self.0.ambient);
        let count = payload.size().div_ceil(SEGMENT);
        // In the server's time, so that a segment that was stuck on its way is not kept the longer for it.
        let left = call.deadline.saturating_duration_since(ambient::monotonic());
        let end = look.now.unix_ms() + u64::try_from(left.as_millis()).unwrap_or(u64::MAX / 2) + LEFTOVER_MS;
        let mut uploaded = vec![keys.staged(upload)];
        uploaded.extend(keys.segments(upload, count).skip(1));

        // Until the upload is finished nothing is applied, whatever was sent: a call that "reads".
        let unseen = Call::reading(call.deadline);
        let digest = match self.upload(&uploaded, payload, end, &unseen).await {
            Ok(digest) => digest,
            Err(error) => {
                wire.hasten(uploaded);
                return Err(error.with_outcome(Outcome::NotApplied));
            }
        };

        let mut names = vec![keys.manifest(), keys.staged(upload)];
        names.extend(keys.segments(upload, count));
        let args = [
            Bytes::copy_from_slice(&upload.0),
            Bytes::copy_from_slice(digest.as_bytes()),
            format!("{:08}", payload.size()).into(),
            format!("{SEGMENT:08}").into(),
            Bytes::copy_from_slice(&Mark::new(&*self.0.ambient).0),
            retention.as_ms().to_string().into(),
        ];
        // It finds what it did itself, and does it once only.
        let (answer, lost) = match wire.change_surely(&FINISH, &names, &args, call).await {
            Ok(answered) => answered,
            Err(error) => {
                if error.outcome() == Outcome::NotApplied {
                    wire.hasten(uploaded);
                }
                return Err(error);
            }
        };
        match verdict(&answer)? {
            Some(stored @ BlobPutResult::Stored { .. }) => Ok(stored),
            Some(other) => {
                wire.hasten(uploaded);
                Ok(other)
            }
            None if answer.word() != b"gone" => Err(answer.strange()),
            None if lost => {
                let said = "the answer was lost, and the blob is gone; it was deleted or expired since, or was never stored";
                Err(Error::new(Code::Unavailable, Outcome::Unknown, said))
            }
            None => {
                wire.hasten(uploaded);
                let said = "the server lost segments while they were uploaded (a restart, a failover, or eviction)";
                Err(Error::new(Code::Unavailable, Outcome::NotApplied, said))
            }
        }
    }

    /// Sends every segment, a few at a time, and hashes the bytes as they pass.
    async fn upload(&self, names: &[Bytes], payload: &Payload, end: u64, call: &Call) -> Result<blake3::Hash, Error> {
        let wire = &self.0.wire;
        let mut flying = FuturesUnordered::new();
        let feed = async {
            let mut hasher = blake3::Hasher::new();
            for (name, range) in names.iter().zip(ranges(payload.size())) {
                let bytes = piece(payload, range).await?;
                hasher.update(&bytes);
                while flying.len() >= wire.window() {
                    flying.next().await.transpose()?;
                }
                flying.push(wire.upload(name.clone(), bytes, end, call));
                // A future starts at its first poll: get this one going while the next piece is fetched.
                if let Poll::Ready(Some(done)) = futures_util::poll!(flying.next()) {
                    done?;
                }
            }
            Ok(hasher.finalize())
        };
        let fed = feed.await;
        // Also after a failure: what is under way would come after it was cleared away.
        while let Some(done) = flying.next().await {
            if fed.is_ok() {
                done?;
            }
        }
        fed
    }
}

/// Compares a payload with the blob that is there. The observation of the manifest stands for the answer.
async fn compare(manifest: &Manifest, store_now: StoreTime, payload: &Payload) -> Result<BlobPutResult, Error> {
    if manifest.size != payload.size() {
        return Ok(BlobPutResult::Conflict { store_now });
    }
    let mut hasher = blake3::Hasher::new();
    for range in ranges(payload.size()) {
        hasher.update(&piece(payload, range).await?);
        tokio::task::yield_now().await;
    }
    Ok(if hasher.finalize() == manifest.digest {
        BlobPutResult::AlreadyStored { expires_at: manifest.expires, store_now }
    } else {
        BlobPutResult::Conflict { store_now }
    })
}

/// What a put's script says; `None` for a word that is no verdict.
fn verdict(answer: &Answer) -> Result<Option<BlobPutResult>, Error> {
    Ok(match answer.word() {
        b"stored" => Some(BlobPutResult::Stored { store_now: answer.time(1)?, expires_at: answer.time(2)? }),
        b"taken" if answer.text(1) == b"1" => {
            Some(BlobPutResult::AlreadyStored { expires_at: answer.time(2)?, store_now: answer.time(3)? })
        }
        b"taken" => Some(BlobPutResult::Conflict { store_now: answer.time(3)? }),
        _ => None,
    })
}

async fn piece(payload: &Payload, range: Range<usize>) -> Result<Bytes, Error> {
    let length = range.len();
    let bytes = payload.range(range).await.map_err(|error| error.with_outcome(Outcome::NotApplied))?;
    if bytes.len() != length {
        return Err(Error::internal("a payload handed over another number of bytes than asked").with_outcome(Outcome::NotApplied));
    }
    Ok(bytes)
}

fn ranges(size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..size).step_by(SEGMENT).map(move |start| start..(start + SEGMENT).min(size))
}
