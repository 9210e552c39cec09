//! Putting a blob: up to 2 MiB in one round trip, more of it a few segments at a time.

use std::ops::Range;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, Shared, join_all, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::RedisRelocation;
use super::keys::{Keys, Mark, Upload};
use super::manifest::{Manifest, SEGMENT, segments};
use super::wire::{End, FINISH, Look};
use crate::call::Call;
use crate::contract::{BlobPutResult, Code, Error, Outcome, Payload, Retention, StoreTime};
use crate::engine::redis::transport::{Failure, Line};
use crate::engine::redis::words::Words;
use crate::{ambient, background};

/// How long a segment of an unfinished upload outlives the operation timeout.
const LEFTOVER_MS: u64 = 50_000;
/// Up to here a blob is sent whole, before anybody knows whether it is there already.
pub(super) const AT_ONCE: usize = 8 * SEGMENT;

/// Segments under way, until each of them is answered or lost; the first failure.
type Sent = Shared<BoxFuture<'static, Result<(), Error>>>;

/// What the script that finishes an upload is called with.
struct Finish {
    names: Vec<Bytes>,
    args: [Bytes; 6],
}

impl RedisRelocation {
    pub(super) async fn put_blob(
        &self,
        keys: &Keys,
        payload: Payload,
        retention: Retention,
        call: &Call,
    ) -> Result<BlobPutResult, Error> {
        let most = if self.0.wire.window() > 1 { AT_ONCE } else { SEGMENT };
        if payload.size() <= most
            && let Some(result) = self.put_at_once(keys, &payload, retention, call).await?
        {
            return Ok(result);
        }
        let look = self.0.wire.look(keys, call).await?;
        let Some(manifest) = &look.live else { return self.put_large(keys, &payload, retention, &look, call).await };
        let result = compare(manifest, look.now, &payload).await?;
        if matches!(result, BlobPutResult::AlreadyStored { .. }) {
            self.0.wire.confirm(keys, call).await?;
        }
        Ok(result)
    }

    /// The segments and the script that makes them visible go out together. `None`: a segment was lost on its way, and surely
    /// nothing was done.
    async fn put_at_once(
        &self,
        keys: &Keys,
        payload: &Payload,
        retention: Retention,
        call: &Call,
    ) -> Result<Option<BlobPutResult>, Error> {
        let wire = &self.0.wire;
        if payload.size() > SEGMENT {
            // What follows takes a while of a processor: not of the thread that made the call.
            tokio::task::yield_now().await;
        }
        let mut pieces = Vec::with_capacity(segments(payload.size(), SEGMENT));
        let mut hasher = blake3::Hasher::new();
        for range in ranges(payload.size()) {
            let bytes = piece(payload, range).await?;
            hasher.update(&bytes);
            pieces.push(bytes);
        }
        let upload = Upload::new(&*self.0.ambient);
        let uploaded: Vec<Bytes> = keys.uploaded(upload, pieces.len()).collect();
        let finish = self.finish(keys, upload, hasher.finalize(), payload.size(), retention);
        let unseen = Call::reading(call.deadline);
        let end = End::In(left_ms(call) + LEFTOVER_MS);
        let line = wire.finishing_line();
        // Never repeated: coming after the script, it could be finished a second time.
        let segments = uploaded.iter().cloned().zip(pieces).map(|(name, bytes)| {
            let (wire, unseen) = (wire.clone(), unseen.clone());
            async move { wire.upload(line, name, bytes, end, false, &unseen).await }
        });
        let sent: Sent = join_all(segments).map(|sent| sent.into_iter().collect()).boxed().shared();
        let script = pin!(wire.change(line, &FINISH, &finish.names, &finish.args, call));
        // The segments first. Their own answers matter only to a script that misses one.
        let finished = match select(sent.clone(), script).await {
            Either::Left((_, script)) => script.await,
            Either::Right((finished, _)) => finished,
        };
        let result = match finished {
            // It came before a segment, or a segment did not come at all.
            Ok(answer) if answer.word() == b"gone" => {
                call.unmark_sent();
                match sent.clone().await {
                    Ok(()) => wire.change_surely(&FINISH, &finish.names, &finish.args, keys, call).await,
                    Err(error) if error.code() == Code::Unavailable => {
                        wire.hasten(uploaded);
                        return Ok(None);
                    }
                    Err(error) => Err(error),
                }
            }
            Ok(answer) => Ok((answer, false)),
            Err(Failure::NotSent(error)) => Err(error),
            Err(Failure::Lost(error)) => {
                // What can still come is to be there before the script looks for it.
                let _ = sent.clone().await;
                wire.change_again(&FINISH, &finish.names, &finish.args, keys, call, error).await.map(|answer| (answer, true))
            }
        };
        self.ended(result, uploaded, Some(sent)).map(Some)
    }

    /// What became of an upload. What it left behind and nobody uses goes, once no segment can come any more.
    fn ended(
        &self,
        result: Result<(Words, bool), Error>,
        uploaded: Vec<Bytes>,
        sent: Option<Sent>,
    ) -> Result<BlobPutResult, Error> {
        let result = result.and_then(|(answer, lost)| verdict(&answer, lost));
        let unused = match &result {
            Ok(BlobPutResult::Stored { .. }) => false,
            Ok(_) => true,
            Err(error) => error.outcome() == Outcome::NotApplied,
        };
        if unused {
            let wire = self.0.wire.clone();
            match sent {
                Some(sent) => drop(background::handle().spawn(async move {
                    let _ = sent.await;
                    wire.hasten(uploaded);
                })),
                None => wire.hasten(uploaded),
            }
        }
        result
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
        let uploaded: Vec<Bytes> = keys.uploaded(upload, segments(payload.size(), SEGMENT)).collect();
        // In the server's time, so that a segment that was stuck on its way is not kept the longer for it.
        let end = End::At(look.now.unix_ms() + left_ms(call) + LEFTOVER_MS);
        // Until the upload is finished nothing is applied, whatever was sent: a call that "reads".
        let unseen = Call::reading(call.deadline);
        let digest = match self.upload(&uploaded, payload, end, &unseen).await {
            Ok(digest) => digest,
            Err(error) => {
                wire.hasten(uploaded);
                return Err(error.with_outcome(Outcome::NotApplied));
            }
        };
        let finish = self.finish(keys, upload, digest, payload.size(), retention);
        let result = wire.change_surely(&FINISH, &finish.names, &finish.args, keys, call).await;
        self.ended(result, uploaded, None)
    }

    fn finish(&self, keys: &Keys, upload: Upload, digest: blake3::Hash, size: usize, retention: Retention) -> Finish {
        let mut names = vec![keys.manifest(), keys.staged(upload)];
        names.extend(keys.segments(upload, segments(size, SEGMENT)));
        let args = [
            Bytes::copy_from_slice(&upload.0),
            Bytes::copy_from_slice(digest.as_bytes()),
            format!("{size:08}").into(),
            format!("{SEGMENT:08}").into(),
            Bytes::copy_from_slice(&Mark::new(&*self.0.ambient).0),
            retention.as_ms().to_string().into(),
        ];
        Finish { names, args }
    }

    /// Sends every segment, a few at a time, and hashes the bytes as they pass.
    async fn upload(&self, names: &[Bytes], payload: &Payload, end: End, call: &Call) -> Result<blake3::Hash, Error> {
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
                flying.push(wire.upload(Line::Blobs, name.clone(), bytes, end, true, call));
                // A future starts at its first poll: get this one going while the next piece is fetched.
                if let Poll::Ready(Some(done)) = futures_util::poll!(flying.next()) {
                    done?;
                }
            }
            Ok(hasher.finalize())
        };
        let mut fed = feed.await;
        // Also after a failure: what is under way would come after it was cleared away.
        while let Some(done) = flying.next().await {
            fed = fed.and_then(|digest| done.map(|()| digest));
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

/// What the script that finishes an upload says. `lost`: it may have run before, with an answer that nobody heard.
fn verdict(answer: &Words, lost: bool) -> Result<BlobPutResult, Error> {
    let ended = |outcome, said: &str| Err(Error::new(Code::Unavailable, outcome, said));
    match answer.word() {
        b"stored" => Ok(BlobPutResult::Stored { store_now: answer.time(1)?, expires_at: answer.time(2)? }),
        b"taken" if lost && answer.bytes(4) == b"0" => ended(
            Outcome::Unknown,
            "the answer was lost, and what is there was stored by others: before this blob, or after it was gone",
        ),
        b"taken" if answer.bytes(1) == b"1" => {
            Ok(BlobPutResult::AlreadyStored { expires_at: answer.time(2)?, store_now: answer.time(3)? })
        }
        b"taken" => Ok(BlobPutResult::Conflict { store_now: answer.time(3)? }),
        b"gone" if lost => {
            ended(Outcome::Unknown, "the answer was lost, and the blob is gone: deleted or expired since, or never stored")
        }
        b"gone" => {
            ended(Outcome::NotApplied, "the server lost segments while they were uploaded (a restart, a failover, or eviction)")
        }
        _ => Err(answer.strange()),
    }
}

/// What is left of the operation timeout.
fn left_ms(call: &Call) -> u64 {
    let left = call.deadline.saturating_duration_since(ambient::monotonic());
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX / 2)
}

async fn piece(payload: &Payload, range: Range<usize>) -> Result<Bytes, Error> {
    let length = range.len();
    if length == 0 {
        return Ok(Bytes::new());
    }
    let bytes = payload.range(range).await.map_err(|error| error.with_outcome(Outcome::NotApplied))?;
    if bytes.len() != length {
        return Err(Error::internal("a payload handed over another number of bytes than asked").with_outcome(Outcome::NotApplied));
    }
    Ok(bytes)
}

/// One for each segment, so one for an empty blob as well.
fn ranges(size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..size.max(1)).step_by(SEGMENT).map(move |start| start..(start + SEGMENT).min(size))
}
