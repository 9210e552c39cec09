//! The model of snapshots: each is the list of what was live at its instant.

use std::collections::HashMap;

use zlink_store::{Cursor, ScanPage, ScanResult, StoreTime, limits};

use super::expect::{Mismatch, same};
use super::records::{Record, Records};

/// What became of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    /// Its pages must come.
    Unfinished,
    /// Its last page is out: from then on it may go at any time.
    Finished,
    /// Too many were started after it: its pages must not come.
    Dropped,
    /// A scan of one page was the 65th start, if it took a snapshot at all: it may have gone, or not.
    Doubtful,
}

/// One scan.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// How the log calls it.
    pub(crate) name: String,
    pub(crate) prefix: String,
    items: Vec<(String, Record)>,
    life: Life,
    /// Cursors that were given out, and how many items lie before each.
    pub(crate) cursors: Vec<(Cursor, usize)>,
    /// The cursor that came after a cursor with a limit.
    followers: HashMap<(usize, u32), Option<Cursor>>,
}

/// All scans that gave a cursor, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    pub(crate) started: Vec<Snapshot>,
    count: usize,
}

impl Scans {
    /// A first page: fixes a snapshot.
    pub(crate) fn check_first(
        &mut self,
        records: &Records,
        prefix: &str,
        limit: u32,
        answer: ScanResult,
    ) -> Result<StoreTime, Mismatch> {
        self.count += 1;
        let name = format!("scan {}", self.count);
        let ScanResult::Page(page) = answer else {
            return Err(Mismatch::new("a first page is never expired", [name]));
        };
        let now = page.store_now;
        let live = records.by_key.iter().filter(|(key, record)| key.starts_with(prefix) && record.live(now));
        let items = live.map(|(key, record)| (key.clone(), record.clone())).collect();
        let (prefix, life) = (prefix.to_owned(), Life::Unfinished);
        let mut snapshot = Snapshot { name, prefix, items, life, cursors: Vec::new(), followers: HashMap::new() };
        let more = snapshot.check_page(0, limit, &page)?;
        if more {
            self.make_room(Life::Dropped);
            snapshot.cursors.extend(page.next_cursor.map(|cursor| (cursor, page.items.len())));
            self.started.push(snapshot);
        } else {
            self.make_room(Life::Doubtful);
        }
        Ok(now)
    }

    /// The scan that has to be asked whether it is still there, before the next start.
    pub(crate) fn doubtful(&mut self) -> Option<&mut Snapshot> {
        self.started.iter_mut().find(|snapshot| snapshot.life == Life::Doubtful)
    }

    /// The 65th start drops the oldest.
    fn make_room(&mut self, becomes: Life) {
        let mut unfinished = self.started.iter_mut().filter(|snapshot| snapshot.life == Life::Unfinished);
        if let Some(oldest) = unfinished.next()
            && unfinished.count() + 1 >= limits::MAX_SNAPSHOTS
        {
            oldest.life = becomes;
        }
        // Old dead ones say nothing new.
        if self.started.len() > 3 * limits::MAX_SNAPSHOTS
            && let Some(dead) = self.started.iter().position(|snapshot| snapshot.life != Life::Unfinished)
        {
            self.started.remove(dead);
        }
    }
}

impl Snapshot {
    /// A later page, read with the `which`th of the cursors.
    pub(crate) fn check_next(&mut self, which: usize, limit: u32, answer: ScanResult) -> Result<Option<StoreTime>, Mismatch> {
        let page = match answer {
            ScanResult::Expired if self.life == Life::Unfinished => {
                return Err(Mismatch::new("a live snapshot is expired", [&self.name]));
            }
            ScanResult::Expired => {
                if self.life == Life::Doubtful {
                    self.life = Life::Dropped;
                }
                return Ok(None);
            }
            ScanResult::Page(_) if self.life == Life::Dropped => {
                return Err(Mismatch::new("a snapshot is there that 64 younger ones ended", [&self.name]));
            }
            ScanResult::Page(page) => page,
        };
        if self.life == Life::Doubtful {
            self.life = Life::Unfinished;
        }
        let (_, from) = self.cursors[which];
        let more = self.check_page(from, limit, &page)?;
        let follower = self.followers.entry((which, limit)).or_insert_with(|| page.next_cursor.clone());
        same("the next cursor", &page.next_cursor, follower, &self.name)?;
        match page.next_cursor {
            Some(cursor) if self.cursors.iter().all(|(known, _)| *known != cursor) => {
                self.cursors.push((cursor, from + page.items.len()));
            }
            _ if !more => self.life = Life::Finished,
            _ => {}
        }
        Ok(Some(page.store_now))
    }

    /// Compares a page with the items from `from` on; whether more follow.
    fn check_page(&self, from: usize, limit: u32, page: &ScanPage) -> Result<bool, Mismatch> {
        let mut size = 0;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let fits = |(key, record): &&(String, Record)| {
            let alone = size == 0;
            size += key.len() + record.bytes.len() + record.version.as_bytes().len();
            alone || size <= limits::MAX_ENCODED
        };
        let expected: Vec<_> = self.items[from..].iter().take(limit).take_while(fits).collect();
        let actual = page.items.iter().map(|item| {
            let value = &item.value;
            let record = Record { bytes: value.bytes.clone(), version: value.version.clone(), expires_at: value.expires_at };
            (item.key.as_str().to_owned(), record)
        });
        let actual: Vec<_> = actual.collect();
        let differs = (0..actual.len().max(expected.len())).find(|at| actual.get(*at) != expected.get(*at).copied());
        if let Some(at) = differs {
            let (actual, expected) = (actual.get(at), expected.get(at));
            let said = format!("{}, item {}: the store says {actual:?}, the model {expected:?}", self.name, from + at);
            let keys = actual.iter().map(|(key, _)| key).chain(expected.iter().map(|(key, _)| key));
            let mut mismatch = Mismatch::new(said, keys);
            mismatch.about.push(self.name.clone());
            return Err(mismatch);
        }
        let more = from + expected.len() < self.items.len();
        same("whether a cursor follows", page.next_cursor.is_some(), more, &self.name)?;
        Ok(more)
    }
}
