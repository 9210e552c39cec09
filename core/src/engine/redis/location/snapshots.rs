//! The list of snapshots: what an entry says, and what this process knows of the list.

use bytes::Bytes;

use super::layout::{Layout, SnapshotId};
use crate::contract::{Error, StoreTime, limits};

/// How long the last page of a finished scan may be asked for again.
pub(super) const GRACE_MS: u64 = 10_000;

/// One snapshot. The list holds them oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The commit sequence that it fixes.
    pub(super) sequence: u64,
    /// When it started.
    pub(super) start: StoreTime,
    pub(super) id: SnapshotId,
    /// Bytes saved before it started, in all epochs since the list was last empty.
    pub(super) base: u64,
    /// Bytes saved in its epoch.
    pub(super) bytes: u64,
    /// How many large values of its epoch were moved to keys of their own.
    pub(super) moved: u32,
    /// When its scan was over; 0 while it is not.
    pub(super) finished: u64,
}

impl Entry {
    const SIZE: usize = 8 + 8 + 16 + 8 + 8 + 4 + 8;

    pub(super) fn decode(raw: &[u8]) -> Option<Self> {
        let raw: &[u8; Self::SIZE] = raw.try_into().ok()?;
        let (sequence, raw) = raw.split_first_chunk()?;
        let (start, raw) = raw.split_first_chunk()?;
        let (id, raw) = raw.split_first_chunk()?;
        let (base, raw) = raw.split_first_chunk()?;
        let (bytes, raw) = raw.split_first_chunk()?;
        let (moved, raw) = raw.split_first_chunk()?;
        let (finished, _) = raw.split_first_chunk()?;
        Some(Self {
            sequence: u64::from_be_bytes(*sequence),
            start: StoreTime::from_unix_ms(u64::from_be_bytes(*start)),
            id: *id,
            base: u64::from_be_bytes(*base),
            bytes: u64::from_be_bytes(*bytes),
            moved: u32::from_be_bytes(*moved),
            finished: u64::from_be_bytes(*finished),
        })
    }

    /// Whether pages of it may be read at `now`.
    pub(super) fn is_live(&self, now: StoreTime) -> bool {
        let now = now.unix_ms();
        now < self.start.unix_ms() + limits::SNAPSHOT_LIFE_MS && (self.finished == 0 || now < self.finished + GRACE_MS)
    }
}

/// The entries of the list as the server gave them.
pub(super) fn entries(raw: &[Bytes]) -> Result<Vec<Entry>, Error> {
    let decoded = raw.iter().map(|raw| Entry::decode(raw));
    decoded.collect::<Option<_>>().ok_or_else(super::answer::foreign)
}

/// What a script is told of the snapshots, so that it may touch their keys: those of `Known`.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The whole list, as of the last answer that held it.
    pub(super) entries: Vec<Entry>,
    /// The names that were moved, of some of the oldest entries.
    names: Vec<Names>,
}

/// The names that an epoch had moved when it had moved `moved`.
#[derive(Clone, Debug)]
struct Names {
    id: SnapshotId,
    moved: u32,
    names: Vec<Bytes>,
}

/// How many of the oldest entries a call declares if nothing asked for more.
const DECLARED: usize = 8;

impl Known {
    pub(super) fn newest(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// Takes note of the list, and keeps the names of what is still in it.
    pub(super) fn learn(&mut self, entries: Vec<Entry>) {
        self.names.retain(|known| entries.iter().any(|entry| entry.id == known.id && entry.moved == known.moved));
        self.entries = entries;
    }

    /// Takes note of the names that an entry's epoch moved.
    pub(super) fn learn_names(&mut self, entry: &Entry, names: Vec<Bytes>) {
        self.names.retain(|known| known.id != entry.id);
        self.names.push(Names { id: entry.id, moved: entry.moved, names });
    }

    /// The first entry, of the `count` oldest, whose moved names must be read before it may be dropped.
    pub(super) fn unnamed(&self, count: usize) -> Option<&Entry> {
        self.entries.iter().take(count).find(|entry| self.names_of(entry).is_none())
    }

    fn names_of(&self, entry: &Entry) -> Option<&[Bytes]> {
        if entry.moved == 0 {
            return Some(&[]);
        }
        let known = self.names.iter().find(|known| known.id == entry.id && known.moved == entry.moved)?;
        Some(&known.names)
    }

    /// Adds to a call the undo keys of the oldest entries, as many as are known: at least `count` if that many are.
    pub(super) fn declare(&self, layout: &Layout, count: usize, keys: &mut Vec<Bytes>, args: &mut Vec<Bytes>) {
        let known: Vec<_> = self.entries.iter().map_while(|entry| Some((entry, self.names_of(entry)?))).collect();
        let known = &known[..known.len().min(count.max(DECLARED))];
        args.push(Bytes::from(known.len().to_string()));
        for (entry, names) in known {
            keys.push(layout.undo(&entry.id));
            keys.push(layout.moved_names(&entry.id));
            keys.extend(names.iter().map(|name| layout.moved(&entry.id, name)));
            args.push(Bytes::copy_from_slice(&entry.id));
            args.push(Bytes::from((2 + names.len()).to_string()));
        }
    }
}
