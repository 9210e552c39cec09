//! Scans: small ones at one instant without a snapshot, all others in pages of a snapshot.

use std::sync::Arc;

use bytes::Bytes;

use super::Inner;
use super::answer::{Fields, foreign};
use super::asks::{Ask, ask};
use super::commit::Answer;
use super::layout::{SnapshotId, name};
use super::page::Found;
use super::record::Record;
use super::snapshots::{Entry, entries};
use super::tidy::Finished;
use crate::ambient::random;
use crate::background;
use crate::call::Call;
use crate::contract::{Error, Key, ScanItem, ScanPage, ScanRequest, ScanResult, StoreTime, limits};
use crate::engine::cursor::Position;
use crate::engine::redis::client::{Client, Script};
use crate::engine::redis::transport::{Line, Reply};
use crate::engine::redis::words::unread;

/// Most names of a scan that is tried without a snapshot.
pub(super) const CHUNK: usize = 64;
/// How often that is tried while others put and delete in between.
const TRIES: usize = 3;
/// Bytes of a version in its text form.
pub(super) const VERSION: usize = 24;

pub(super) static START: Script = Script::tidying(concat!(include_str!("common.lua"), include_str!("start.lua")));

/// Part of the index: the names that begin with a prefix, behind a key.
pub(super) struct Range {
    from: Bytes,
    to: Bytes,
}

impl Range {
    pub(super) fn new(prefix: &str, after: Option<&Key>) -> Self {
        let from = match after {
            Some(key) => [b"(", key.as_bytes()].concat().into(),
            None if prefix.is_empty() => Bytes::from_static(b"-"),
            None => [b"[", prefix.as_bytes()].concat().into(),
        };
        // No UTF-8 holds 0xff, so this is behind every name with the prefix.
        let to = [b"(", prefix.as_bytes(), b"\xff"].concat().into();
        Self { from, to }
    }

    pub(super) fn ask(&self, index: &Bytes, most: usize) -> Ask {
        let word = Bytes::from_static;
        let limit = [word(b"LIMIT"), word(b"0"), Bytes::from(most.to_string())];
        let mut args = vec![self.from.clone(), self.to.clone()];
        args.extend(limit);
        Ask::new("ZRANGEBYLEX", vec![index.clone()], args)
    }
}

/// The names of an answer to [`Range::ask`].
pub(super) fn names(fields: &mut Fields) -> Result<Vec<Key>, Error> {
    let raw = fields.array()?.rest()?;
    raw.iter().map(|raw| name(raw)).collect::<Option<_>>().ok_or_else(foreign)
}

impl Inner {
    pub(super) async fn scan(self: Arc<Self>, request: ScanRequest, call: Call) -> Result<ScanResult, Error> {
        let client = self.client()?;
        let Some(cursor) = &request.cursor else { return self.first_page(&client, &request, &call).await };
        let Some(position) = Position::parse(cursor, &self.name, &request.prefix) else { return Ok(ScanResult::Expired) };
        let (id, sequence) = (position.snapshot, position.sequence);
        let found = self.page(&client, id, sequence, Some(&position.last), &request, &call).await?;
        let Some(Found { items, more, now, .. }) = found else { return Ok(ScanResult::Expired) };
        if !more {
            self.finish(&client, id, Finished::MayBeRepeated, call.deadline).await;
        }
        Ok(ScanResult::Page(self.result(id, sequence, &request, items, more, now)))
    }

    async fn first_page(self: &Arc<Self>, client: &Client, request: &ScanRequest, call: &Call) -> Result<ScanResult, Error> {
        if let Some(page) = self.small_scan(client, request, call).await? {
            return Ok(ScanResult::Page(page));
        }
        // Nobody has seen the snapshot yet: if it has to go, another one does as well.
        loop {
            let id = random(&*self.ambient);
            let mut abandoned = Abandoned { store: self, client, id, over: false };
            let start = self.start(client, id, call).await?;
            let Some(Found { items, more, .. }) = self.page(client, id, start.sequence, None, request, call).await? else {
                abandoned.over = true;
                continue;
            };
            abandoned.over = true;
            if !more {
                self.finish(client, id, Finished::ForGood, call.deadline).await;
            }
            return Ok(ScanResult::Page(self.result(id, start.sequence, request, items, more, start.start)));
        }
    }

    /// A scan of few names: if nobody put or deleted one between reading the names and reading the records, the latter is an
    /// instant of its own and needs no snapshot.
    async fn small_scan(&self, client: &Client, request: &ScanRequest, call: &Call) -> Result<Option<ScanPage>, Error> {
        let most = CHUNK.min(self.unmeasured(2 * limits::MAX_ENCODED as u64)).min(request.limit as usize);
        let range = Range::new(&request.prefix, None);
        let look = || [Ask::time(), Ask::get(&self.layout.format), range.ask(&self.layout.index, most + 1)];
        let mut fields = ask(client, look().into(), call).await?;
        let now = fields.time()?;
        fields.format()?;
        let mut seen = names(&mut fields)?;
        let nothing = |now| Ok(Some(ScanPage { items: Vec::new(), next_cursor: None, store_now: now }));
        if seen.is_empty() {
            return nothing(now);
        }
        for _ in 0..TRIES {
            if seen.len() > most {
                return Ok(None);
            }
            let mut asks = Vec::from(look());
            asks.push(Ask::strings(seen.iter().map(|key| self.layout.record(key.as_bytes())).collect()));
            let mut fields = ask(client, asks, call).await?;
            let now = fields.time()?;
            fields.format()?;
            let names = names(&mut fields)?;
            if names.is_empty() {
                return nothing(now);
            }
            if names != seen {
                seen = names;
                continue;
            }
            let records = fields.array()?.replies().map(|reply| match reply {
                Reply::Bytes(raw) => Record::decode(raw).filter(|record| record.is_live(now)),
                _ => None,
            });
            let live = names.into_iter().zip(records).filter_map(|(key, record)| Some((key, record?)));
            let items: Vec<_> = live.map(|(key, record)| ScanItem { key, value: record.observed(now) }).collect();
            let size: usize = items.iter().map(|item| item.key.as_bytes().len() + item.value.bytes.len() + VERSION).sum();
            let fits = size <= limits::MAX_ENCODED || items.len() == 1;
            return Ok(fits.then_some(ScanPage { items, next_cursor: None, store_now: now }));
        }
        Ok(None)
    }

    /// Starts a snapshot. The same id again is the same start, so an answer that was lost does no harm.
    async fn start(&self, client: &Client, id: SnapshotId, call: &Call) -> Result<Entry, Error> {
        let mut drop = 0;
        loop {
            let layout = &self.layout;
            let mut keys = vec![layout.format.clone(), layout.sequence.clone(), layout.snapshots.clone(), layout.nothing.clone()];
            let mut args = vec![Bytes::copy_from_slice(&id)];
            self.writes.known.lock().declare(layout, drop, &mut keys, &mut args);
            let reply = client.script(Line::Small, &START, &keys, &args, true, call).await.map_err(unread)?;
            match Answer::of(reply)? {
                Answer::Done(mut fields) => {
                    fields.instant()?;
                    let entries = entries(&fields.rest()?)?;
                    let own = entries.iter().find(|entry| entry.id == id).cloned();
                    self.writes.known.lock().learn(entries);
                    return own.ok_or_else(|| Error::internal("a snapshot that was started is not there"));
                }
                Answer::Again { drop: more, entries } => {
                    drop = more;
                    self.writes.known.lock().learn(entries);
                    self.read_moved_names(client, drop, call.deadline).await?;
                }
            }
        }
    }

    fn result(
        &self,
        snapshot: SnapshotId,
        sequence: u64,
        request: &ScanRequest,
        records: Vec<(Key, Record)>,
        more: bool,
        now: StoreTime,
    ) -> ScanPage {
        let last = records.last().filter(|_| more).map(|(key, _)| key.clone());
        let next_cursor = last.map(|last| Position { snapshot, sequence, last }.cursor(&self.name, &request.prefix));
        let items = records.into_iter().map(|(key, record)| ScanItem { key, value: record.observed(now) }).collect();
        ScanPage { items, next_cursor, store_now: now }
    }
}

/// A snapshot whose first page nobody has got yet: if nobody ever will, it is given up at once.
struct Abandoned<'a> {
    store: &'a Arc<Inner>,
    client: &'a Client,
    id: SnapshotId,
    over: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.over {
            let (store, client, id) = (Arc::clone(self.store), self.client.clone(), self.id);
            let deadline = crate::ambient::monotonic() + super::tidy::ABANDONED_TIME;
            background::handle().spawn(async move { store.finish(&client, id, Finished::ForGood, deadline).await });
        }
    }
}
