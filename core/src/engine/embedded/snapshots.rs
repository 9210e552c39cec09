//! The live snapshots of an engine: which ones there are, how long they live, and how much they hold.

use std::collections::VecDeque;

use super::record::Scope;
use crate::contract::{StoreTime, limits};

/// Snapshots, oldest first. What a snapshot shows is a view of its own; here is only counted what it keeps from being freed.
#[derive(Debug)]
pub(super) struct Snapshots<V> {
    entries: VecDeque<Entry<V>>,
    limits: Limits,
}

/// How much snapshots may keep from being freed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most bytes.
    pub(super) bytes: u64,
    /// Whether a snapshot keeps everything that came after it too, seen by it or not, whatever the table: fjall forgets only
    /// what is older than the oldest snapshot.
    pub(super) keep_all: bool,
}

/// Is told what leaves the store while it may be kept for a snapshot.
pub(super) trait Kept {
    /// A record that the commit `sequence` put is replaced or deleted.
    fn replaced(&mut self, sequence: u64, bytes: usize);
    /// The bytes of a blob leave the table of contents.
    fn removed_content(&mut self, bytes: u64);
}

#[derive(Debug)]
struct Entry<V> {
    id: [u8; 16],
    scope: Scope,
    sequence: u64,
    start: StoreTime,
    /// Bytes replaced or deleted while this was the newest snapshot.
    bytes: u64,
    phase: Phase,
    view: V,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its first page is being read; nobody knows its id yet.
    Starting,
    /// More pages are to come.
    Unfinished,
    /// Its last page was read. It is kept for a caller who did not get the answer.
    Finished,
}

/// What a page is read from.
pub(super) struct Found<V> {
    pub(super) view: V,
    /// The snapshot's instant, which expiry is judged by.
    pub(super) start: StoreTime,
}

impl<V: Clone> Snapshots<V> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { entries: VecDeque::new(), limits }
    }

    /// From now on at most so many bytes are kept.
    pub(super) fn bound(&mut self, bytes: u64) {
        self.limits.bytes = bytes;
    }

    /// Every snapshot is gone.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// From now on what `view` shows is counted.
    pub(super) fn start(&mut self, id: [u8; 16], scope: Scope, sequence: u64, start: StoreTime, view: V) {
        let entry = Entry { id, scope, sequence, start, bytes: 0, phase: Phase::Starting, view };
        // Two that start at once may come in the other order.
        let place = self.entries.partition_point(|other| (other.start, other.sequence) <= (start, sequence));
        self.entries.insert(place, entry);
    }

    /// The first page did not end the scan. The oldest unfinished snapshot of the store makes room, if there are too many.
    pub(super) fn keep(&mut self, id: &[u8; 16]) {
        let Some(index) = self.position(id) else { return };
        self.entries[index].phase = Phase::Unfinished;
        let scope = self.entries[index].scope.clone();
        self.thin_out(&scope, Phase::Unfinished);
    }

    /// The scan is over; its pages can still be read again.
    pub(super) fn finish(&mut self, id: &[u8; 16]) {
        let Some(index) = self.position(id) else { return };
        self.entries[index].phase = Phase::Finished;
        let scope = self.entries[index].scope.clone();
        self.thin_out(&scope, Phase::Finished);
    }

    /// The scan ended on its first page.
    pub(super) fn forget(&mut self, id: &[u8; 16]) {
        if let Some(index) = self.position(id) {
            self.remove(index);
        }
    }

    pub(super) fn find(&mut self, id: &[u8; 16], scope: &Scope, sequence: u64, now: StoreTime) -> Option<Found<V>> {
        self.drop_overdue(now);
        let entry = self.entries.iter().find(|entry| entry.id == *id)?;
        (entry.scope == *scope && entry.sequence == sequence).then(|| Found { view: entry.view.clone(), start: entry.start })
    }

    pub(super) fn drop_overdue(&mut self, now: StoreTime) {
        while self.entries.front().is_some_and(|entry| overdue(entry.start, now)) {
            self.entries.pop_front();
        }
    }

    /// Bytes that are kept for the snapshots, at most.
    fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).fold(0, u64::saturating_add)
    }

    /// Over the bound, the oldest snapshots are dropped.
    fn keep_bytes(&mut self, bytes: u64) {
        if let Some(newest) = self.entries.back_mut() {
            newest.bytes = newest.bytes.saturating_add(bytes);
            while self.bytes() > self.limits.bytes {
                self.entries.pop_front();
            }
        }
    }

    fn position(&self, id: &[u8; 16]) -> Option<usize> {
        self.entries.iter().position(|entry| entry.id == *id)
    }

    fn thin_out(&mut self, scope: &Scope, phase: Phase) {
        let mut alike = self.entries.iter().enumerate().filter(|(_, entry)| entry.phase == phase && entry.scope == *scope);
        let oldest = alike.next().map(|(index, _)| index);
        if let Some(oldest) = oldest
            && alike.count() >= limits::MAX_SNAPSHOTS
        {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, index: usize) {
        // What was replaced while it was the newest may be kept for an older one still.
        if let Some(entry) = self.entries.remove(index)
            && let Some(older) = index.checked_sub(1).and_then(|older| self.entries.get_mut(older))
        {
            older.bytes = older.bytes.saturating_add(entry.bytes);
        }
    }
}

impl<V: Clone> Kept for Snapshots<V> {
    fn replaced(&mut self, sequence: u64, bytes: usize) {
        // What came after the newest snapshot is seen by none.
        if self.limits.keep_all || self.entries.back().is_some_and(|newest| sequence <= newest.sequence) {
            self.keep_bytes(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    fn removed_content(&mut self, bytes: u64) {
        if self.limits.keep_all {
            self.keep_bytes(bytes);
        }
    }
}

fn overdue(start: StoreTime, now: StoreTime) -> bool {
    now.unix_ms().saturating_sub(start.unix_ms()) >= limits::SNAPSHOT_LIFE_MS
}
