//! Pages: read until there are as many entries as were asked for, or until their time is half over.

use std::future::Future;
use std::time::Instant;

use super::token::Fingerprint;
use crate::ambient;
use crate::contract::{Cursor, Error, Outcome, ScanItem, ScanPage, ScanRequest, ScanResult, limits};
use crate::runtime::core::Core;
use crate::runtime::retry::Retry;
use crate::runtime::stores::unavailable;

/// Which page of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Most entries, 1..=1,000; 0: 1,000.
    pub size: u32,
    /// `None` for the first page; then the page before's token.
    pub continuation_token: Option<String>,
}

impl PageRequest {
    /// The first page, of at most so many entries.
    pub fn first(size: u32) -> Self {
        Self { size, continuation_token: None }
    }

    /// # Errors
    /// `INVALID_ARGUMENT` if it is over 1,000.
    pub(super) fn checked_size(&self) -> Result<u32, Error> {
        match self.size {
            0 => Ok(limits::MAX_SCAN_LIMIT),
            size if size <= limits::MAX_SCAN_LIMIT => Ok(size),
            size => Err(Error::argument("pageSize", format!("must be 0..={}, got {size}", limits::MAX_SCAN_LIMIT))),
        }
    }
}

/// One page of an answer, at most 4 MiB: with 1,000 entries of the longest names it is far below.
///
/// It may have fewer entries than were asked for, and none, while a token says that more may follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// Opaque, at most 8,192 bytes; `None` on the last page.
    pub continuation_token: Option<String>,
}

impl Core {
    /// One page of what `pick` makes of the records under a prefix. It makes at most one entry of one record, and the store is
    /// asked for no more records than entries are still needed, so that a page always ends on one of the store's cursors.
    pub(super) async fn page<T, F, W>(
        &self,
        prefix: &str,
        query: &Fingerprint,
        request: PageRequest,
        deadline: Instant,
        pick: F,
    ) -> Result<Page<T>, Error>
    where
        F: Fn(Vec<ScanItem>) -> W,
        W: Future<Output = Result<Vec<T>, Error>>,
    {
        let size = request.checked_size()?;
        let from = request.continuation_token.map(|token| query.cursor(&token)).transpose()?;
        let enough = half_way(deadline);
        let _scan = self.scans.turn(prefix, deadline).await?;
        let mut retry = Retry::until(deadline);
        'again: loop {
            let mut entries = Vec::new();
            let mut cursor = from.clone();
            loop {
                let missing = size - u32::try_from(entries.len()).unwrap_or(size).min(size);
                let scan = ScanRequest { prefix: prefix.to_owned(), cursor, limit: missing };
                let Some(page) = self.scan_page(scan, from.is_some(), deadline).await? else {
                    retry.pause(&*self.ambient).await?;
                    continue 'again;
                };
                entries.extend(pick(page.items).await?);
                let full = entries.len() >= size as usize || ambient::monotonic() >= enough;
                cursor = page.next_cursor;
                if full || cursor.is_none() {
                    return Ok(Page { entries, continuation_token: cursor.map(|cursor| query.token(&cursor)) });
                }
            }
        }
    }

    /// One page of the store's; `None` if its snapshot is gone and the caller may begin anew.
    ///
    /// # Errors
    /// `UNAVAILABLE` if the snapshot is gone and an earlier page of it was `given` to somebody.
    pub(super) async fn scan_page(&self, scan: ScanRequest, given: bool, deadline: Instant) -> Result<Option<ScanPage>, Error> {
        match self.stores.scan(scan, deadline).await? {
            ScanResult::Page(page) => Ok(Some(page)),
            ScanResult::Expired if !given => Ok(None),
            ScanResult::Expired => {
                Err(unavailable(Outcome::NotApplied, "the snapshot of this query is gone: begin again with its first page"))
            }
        }
    }
}

/// Where a page that goes on with what it has ends.
pub(super) fn half_way(deadline: Instant) -> Instant {
    let now = ambient::monotonic();
    now + deadline.saturating_duration_since(now) / 2
}

/// The cursor at which `count` records of the page after `cursor` end.
pub(super) fn cut(prefix: &str, cursor: Cursor, count: usize) -> ScanRequest {
    let limit = u32::try_from(count).unwrap_or(limits::MAX_SCAN_LIMIT);
    ScanRequest { prefix: prefix.to_owned(), cursor: Some(cursor), limit }
}
