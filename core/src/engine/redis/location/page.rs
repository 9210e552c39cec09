//! One page of a snapshot: the records as they are now, and for those that changed since, what the snapshot's epoch and the
//! later ones saved. Every step sees whether the snapshot still stands, and is worth nothing if not.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Inner;
use super::answer::Fields;
use super::asks::{Ask, ask};
use super::layout::SnapshotId;
use super::record::Record;
use super::scan::{CHUNK, Range, VERSION, names};
use super::snapshots::{Entry, entries};
use crate::call::Call;
use crate::contract::{Error, Key, ScanRequest, StoreTime, limits};
use crate::engine::redis::client::Client;
use crate::engine::redis::transport::Reply;

/// About how many bytes of records one step asks for.
const STEP_BYTES: usize = 1_048_576;
/// Most records of a step.
const MOST: usize = 1_024;
/// How much larger a step may be than the one before, whatever the records before took.
const GROWTH: usize = 4;

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
        let (mut size, mut chunk) = (0, CHUNK);
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
            while !left.is_empty() {
                let wanted = (limit + 1 - items.len()) << barren.min(10);
                let step: Vec<Key> = left.drain(..chunk.min(wanted).min(left.len())).collect();
                let count = step.len();
                let Some((at, records)) = self.step(client, id, sequence, step, call).await? else { return Ok(None) };
                now = at;
                barren = if records.is_empty() { barren + 1 } else { 0 };
                let mut bytes = 0;
                for (key, record) in records {
                    let item = key.as_bytes().len() + record.value.len() + VERSION;
                    bytes += item;
                    size += item;
                    if items.len() == limit || (size > limits::MAX_ENCODED && !items.is_empty()) {
                        return Ok(Some(Found { items, more: true, now }));
                    }
                    items.push((key, record));
                }
                chunk = (STEP_BYTES * count / bytes.max(1)).clamp(1, chunk * GROWTH).min(MOST);
            }
            if ended {
                return Ok(Some(Found { items, more: false, now }));
            }
        }
    }

    /// The records of `keys` that the snapshot shows.
    async fn step(
        &self,
        client: &Client,
        id: SnapshotId,
        sequence: u64,
        keys: Vec<Key>,
        call: &Call,
    ) -> Result<Option<(StoreTime, Vec<(Key, Record)>)>, Error> {
        let records = keys.iter().map(|key| self.layout.record(key.as_bytes())).collect();
        let mut fields = ask(client, self.guarded(Ask::strings(records)), call).await?;
        let Some(seen) = self.seen(&mut fields, id, sequence)? else { return Ok(None) };
        let mut now = seen.now;
        let mut current = fields.array()?.replies();
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
        let live = |record: Record| record.is_live(seen.start).then_some(record);
        let shown = keys.into_iter().zip(shown).filter_map(|(key, record)| Some((key, record.and_then(live)?)));
        Ok(Some((now, shown.collect())))
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
        let (mut now, mut large) = (seen.now, Vec::new().into_iter());
        if !moved.is_empty() {
            let mut answer = ask(client, self.guarded(Ask::strings(moved)), call).await?;
            let Some(seen) = self.seen(&mut answer, id, sequence)? else { return Ok(None) };
            now = seen.now;
            large = answer.array()?.replies();
        }
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
