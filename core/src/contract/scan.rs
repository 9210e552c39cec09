//! Snapshot scans.

use super::text::check_length;
use super::{Cursor, Error, Key, StoreTime, StoredValue, limits};

/// Which page of which scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest {
    /// Keys that start with these bytes: 0..=1,024 bytes of UTF-8.
    pub prefix: String,
    /// `None` for the first page, which fixes the snapshot; then the page before's `next_cursor`.
    pub cursor: Option<Cursor>,
    /// Most items of this page: 1..=1,000. It may differ from page to page.
    pub limit: u32,
}

impl ScanRequest {
    /// The first page of a scan.
    pub fn new(prefix: impl Into<String>, limit: u32) -> Self {
        Self { prefix: prefix.into(), cursor: None, limit }
    }

    /// The page after `cursor`.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.cursor = Some(cursor);
        self
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the prefix or the limit is outside its range.
    pub fn validate(&self) -> Result<(), Error> {
        check_length("prefix", self.prefix.len(), 0, limits::MAX_PREFIX)?;
        if !(1..=limits::MAX_SCAN_LIMIT).contains(&self.limit) {
            return Err(Error::argument("limit", format!("must be 1..={}, got {}", limits::MAX_SCAN_LIMIT, self.limit)));
        }
        Ok(())
    }
}

/// One record of a page. Its `store_now` is the page's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanItem {
    /// The key.
    pub key: Key,
    /// The record as it stood at the snapshot's instant.
    pub value: StoredValue,
}

/// One page, in ascending key byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPage {
    /// The records; empty only when the whole scan is.
    pub items: Vec<ScanItem>,
    /// There exactly when another item is known to follow.
    pub next_cursor: Option<Cursor>,
    /// The snapshot's instant on the first page; the engine's time of the page on a later one.
    pub store_now: StoreTime,
}

/// The answer to a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanResult {
    /// A page of the snapshot.
    Page(ScanPage),
    /// The snapshot is gone, or the cursor is none of this scan's: drop what was read and start again.
    Expired,
}
