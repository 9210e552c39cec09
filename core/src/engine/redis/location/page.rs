//! One page of a snapshot: the records as they are now, and for those that changed since, what the snapshot's epoch and the
//! later ones saved. Every step sees whether the snapshot still stands, and is worth nothing if not.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::Inner;
use super::answer::Fields;
use super::asks::{Ask, ask};
use super::layout::SnapshotId;
use super::record::Record;
use super::scan::{CHUNK, Range, VERSION, names};
use super::snapshots::{Entry, entries};
use crate::ambient::random;
use crate::call::Call;
use crate::contract::{Error, Key, ScanRequest, StoreTime, limits};
use crate::engine::redis::client::Client;
use crate::engine::redis::transport::Reply;

/// About how many bytes of records one step asks for.
const STEP_BYTES: u64 = 1_048_576;
/// Most saved records that were moved, whose sizes nobody knows, of one reply.
const MOVED: usize = 16;

/// What a page found.
pub(super) struct Found {
    pub(super) items: Vec<(Key, Record)>,
    /// Whether another item follows.
    pub(super) more: bool,
    /// The instant of the last step.
    pub(super) now: StoreTime,
}

/// What a saved record is: its bytes, or, if it was moved, what its header said.
enum Saved {
    Here(Record),
    Moved { sequence: u64, expires: u64, epoch: SnapshotId },
}

/// What one step found.
struct Step {
    now: StoreTime,
    records: Vec<(Key, Record)>,
    /// How many bytes the next records take.
    sizes: Vec<u64>,
}

/// One snapshot as one step saw it.
struct Seen {
    now: StoreTime,
    start: StoreTime,
    /// The epochs that may have saved what it shows: its own and all later ones, if they saved anything.
    epochs: Vec<SnapshotId>,
}

impl Inner {
    /// Reads the page behind `after`. `None`: the snapshot is gone or overdue.
    pub(super) async fn page(
        &self,
        client: &Client,
        id: SnapshotId,
        sequence: u64,
        after: Option<&Key>,
        request: &ScanRequest,
        call: &Call,
    ) -> Result<Option<Found>, Error> {
        let limit = request.limit as usize;
        let mut last = after.cloned();
        let mut items: Vec<(Key, Record)> = Vec::new();
        let mut size = 0;
        // Steps in a row that found only names of dead records.
        let mut barren = 0_u32;
        loop {
            // One more than the limit shows whether another item follows.
            let fetched = (limit + 1 - items.len()).max(CHUNK << barren.min(4));
            let range = Range::new(&request.prefix, last.as_ref());
            let mut fields = ask(client, self.guarded(range.ask(&self.layout.index, fetched)), call).await?;
            let Some(seen) = self.seen(&mut fields, id, sequence)? else { return Ok(None) };
            let mut now = seen.now;
            let mut left: VecDeque<Key> = names(&mut fields)?.into();
            let ended = left.len() < fetched;
            last = left.back().cloned().or(last);
            // What the first of those that are left take, once they were measured one by one; and until then, how many are
            // read at once.
            let (mut sizes, mut most) = (VecDeque::new(), CHUNK);
            while !left.is_empty() {
                let wanted = ((limit + 1 - items.len()) << barren.min(10)).min(left.len());
                let known = !sizes.is_empty();
                let count = if known { fitting(&mut sizes, wanted) } else { self.unmeasured(STEP_BYTES).min(most).min(wanted) };
                let step: Vec<Key> = left.drain(..count).collect();
                let behind = || left.iter().take(wanted - count);
                // Small records say nothing of those behind them: a sample is measured, and where that is not enough, each.
                let sample = most == CHUNK && self.unmeasured(STEP_BYTES) >= CHUNK;
                let measured: Vec<&Key> = match (known, sample) {
                    (true, _) => Vec::new(),
                    (false, true) => sampled(behind(), random(&*self.ambient)),
                    (false, false) => behind().collect(),
                };
                let found = self.step(client, id, sequence, step, &measured, call).await?;
                most = usize::MAX;
                let Some(found) = found else { return Ok(None) };
                now = found.now;
                if !sample {
                    sizes.extend(found.sizes);
                }
                barren = if found.records.is_empty() { barren + 1 } else { 0 };
                for (key, record) in found.records {
                    size += key.as_bytes().len() + record.value.len() + VERSION;
                    if items.len() == limit || (size > limits::MAX_ENCODED && !items.is_empty()) {
                        return Ok(Some(Found { items, more: true, now }));
                    }
                    items.push((key, record));
                }
            }
            if ended {
                return Ok(Some(Found { items, more: false, now }));
            }
        }
    }

    /// How many records take about `bytes`, if they are like the largest that were seen of late.
    pub(super) fn unmeasured(&self, bytes: u64) -> usize {
        let count = bytes / self.largest.load(Ordering::Relaxed).max(1);
        usize::try_from(count).unwrap_or(usize::MAX).max(1)
    }

    /// Takes note of what records take.
    fn saw_sizes(&self, sizes: impl Iterator<Item = u64>) {
        if let Some(largest) = sizes.max() {
            let before = self.largest.load(Ordering::Relaxed);
            self.largest.store(largest.max((3 * before + largest) / 4), Ordering::Relaxed);
        }
    }

    /// The records of `keys` that the snapshot shows, and what those of `measured` take.
    async fn step(
        &self,
        client: &Client,
        id: SnapshotId,
        sequence: u64,
        keys: Vec<Key>,
        measured: &[&Key],
        call: &Call,
    ) -> Result<Option<Step>, Error> {
        let record = |key: &Key| self.layout.record(key.as_bytes());
        let mut asks = self.guarded(Ask::strings(keys.iter().map(record).collect()));
        asks.extend(measured.iter().map(|key| Ask::size(record(key))));
        let mut fields = ask(client, asks, call).await?;
        let Some(seen) = self.seen(&mut fields, id, sequence)? else { return Ok(None) };
        let mut now = seen.now;
        let mut current = fields.array()?.replies();
        let sizes = fields.replies().map(|size| match size {
            Reply::Int(size) => u64::try_from(size).unwrap_or(0),
            // No string: nothing will be read there.
            _ => 0,
        });
        let (mut shown, mut changed) = (Vec::with_capacity(keys.len()), Vec::new());
        for at in 0..keys.len() {
            let record = match current.next() {
                Some(Reply::Bytes(raw)) => Record::decode(raw).filter(|record| record.stamp.sequence <= sequence),
                _ => None,
            };
            if record.is_none() {
                changed.push(at);
            }
            shown.push(record);
        }
        // What changed before this step was saved in an epoch that this step saw.
        if !changed.is_empty() && !seen.epochs.is_empty() {
            let names: Vec<Key> = changed.iter().map(|at| keys[*at].clone()).collect();
            let Some((at, saved)) = self.saved(client, id, sequence, &seen.epochs, &names, call).await? else { return Ok(None) };
            now = at;
            for (at, record) in changed.into_iter().zip(saved) {
                shown[at] = record;
            }
        }
        let sizes: Vec<u64> = sizes.collect();
        let read = shown.iter().flatten().map(|record| record.value.len() as u64);
        self.saw_sizes(read.chain(sizes.iter().copied()));
        let live = |record: Record| record.is_live(seen.start).then_some(record);
        let shown = keys.into_iter().zip(shown).filter_map(|(key, record)| Some((key, record.and_then(live)?)));
        Ok(Some(Step { now, records: shown.collect(), sizes }))
    }

    /// What `epochs` saved of the records of `names` that the snapshot shows.
    async fn saved(
        &self,
        client: &Client,
        id: SnapshotId,
        sequence: u64,
        epochs: &[SnapshotId],
        names: &[Key],
        call: &Call,
    ) -> Result<Option<(StoreTime, Vec<Option<Record>>)>, Error> {
        let fields: Vec<Bytes> = names.iter().map(|key| Bytes::copy_from_slice(key.as_bytes())).collect();
        let hashes: Vec<Bytes> = epochs.iter().map(|epoch| self.layout.undo(epoch)).collect();
        let mut asks = self.guarded(Ask::new("EXISTS", hashes.clone(), Vec::new()));
        asks.extend(hashes.into_iter().map(|hash| Ask::new("HMGET", vec![hash], fields.clone())));
        let mut answer = ask(client, asks, call).await?;
        let Some(seen) = self.seen(&mut answer, id, sequence)? else { return Ok(None) };
        // Saved records that were evicted, or expired while the clock was wrong, cannot be shown.
        if answer.number()? != epochs.len() as u64 {
            return Ok(None);
        }
        let mut saved: Vec<Option<Saved>> = names.iter().map(|_| None).collect();
        for epoch in epochs {
            let copies = answer.array()?.replies();
            for (saved, copy) in saved.iter_mut().zip(copies) {
                if let (None, Reply::Bytes(raw)) = (&saved, copy) {
                    *saved = Saved::decode(raw, *epoch);
                }
            }
        }
        let moved = saved.iter().zip(names).filter_map(|(saved, key)| match saved {
            Some(Saved::Moved { sequence: of, expires, epoch }) => {
                let shown = *of <= sequence && (*expires == 0 || *expires > seen.start.unix_ms());
                shown.then(|| self.layout.moved(epoch, key.as_bytes()))
            }
            _ => None,
        });
        let moved: Vec<Bytes> = moved.collect();
        let (mut now, mut large) = (seen.now, Vec::with_capacity(moved.len()));
        for some in moved.chunks(MOVED) {
            let mut answer = ask(client, self.guarded(Ask::strings(some.to_vec())), call).await?;
            let Some(seen) = self.seen(&mut answer, id, sequence)? else { return Ok(None) };
            now = seen.now;
            large.extend(answer.array()?.replies());
        }
        let mut large = large.into_iter();
        let mut records = Vec::with_capacity(saved.len());
        for saved in saved {
            records.push(match saved {
                Some(Saved::Here(record)) => Some(record).filter(|record| record.stamp.sequence <= sequence),
                Some(Saved::Moved { sequence: of, expires, .. })
                    if of <= sequence && (expires == 0 || expires > seen.start.unix_ms()) =>
                {
                    let Some(Reply::Bytes(raw)) = large.next() else { return Ok(None) };
                    Record::decode(raw)
                }
                _ => None,
            });
        }
        Ok(Some((now, records)))
    }

    /// `asked` behind what every step looks at.
    fn guarded(&self, asked: Ask) -> Vec<Ask> {
        vec![Ask::time(), Ask::get(&self.layout.format), Ask::list(&self.layout.snapshots), asked]
    }

    /// What a step saw of the snapshot; `None` if it is gone or overdue.
    fn seen(&self, fields: &mut Fields, id: SnapshotId, sequence: u64) -> Result<Option<Seen>, Error> {
        let now = fields.time()?;
        fields.format()?;
        let entries: Vec<Entry> = entries(&fields.array()?.rest()?)?;
        let from = entries.iter().position(|entry| entry.id == id && entry.sequence == sequence && entry.is_live(now));
        let seen = from.map(|from| {
            let epochs = entries[from..].iter().filter(|entry| entry.bytes > 0).map(|entry| entry.id).collect();
            Seen { now, start: entries[from].start, epochs }
        });
        self.writes.known.lock().learn(entries);
        Ok(seen)
    }
}

/// One of each eight keys, whichever.
fn sampled<'a>(keys: impl Iterator<Item = &'a Key>, random: [u8; 128]) -> Vec<&'a Key> {
    let which = |at: usize| usize::from(random[at / 8 % random.len()]) % 8;
    keys.enumerate().filter(|(at, _)| at % 8 == which(*at)).map(|(_, key)| key).collect()
}

/// Takes the sizes of as many records as one step asks for, `most` of them at most.
fn fitting(sizes: &mut VecDeque<u64>, most: usize) -> usize {
    let (mut count, mut sum) = (0, 0);
    while let Some(size) = sizes.front()
        && count < most
        && (count == 0 || sum + size <= STEP_BYTES)
    {
        (count, sum) = (count + 1, sum + size);
        sizes.pop_front();
    }
    count
}

impl Saved {
    /// A saved record, or the mark of one that was moved: its sequence and expiry.
    fn decode(raw: Bytes, epoch: SnapshotId) -> Option<Self> {
        if let Ok(mark) = <&[u8; 16]>::try_from(&raw[..]) {
            let (sequence, expires) = mark.split_first_chunk::<8>()?;
            let expires: [u8; 8] = expires.try_into().ok()?;
            let (sequence, expires) = (u64::from_be_bytes(*sequence), u64::from_be_bytes(expires));
            return Some(Self::Moved { sequence, expires, epoch });
        }
        Record::decode(raw).map(Self::Here)
    }
}
