//! Expired records and blobs leave through the due table, oldest expiry first.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use super::record::{Due, Manifest, Record};
use super::snapshots::Kept;
use super::storage::{Draft, Table, View};
use super::{location, project, relocation};
use crate::contract::{Error, StoreTime};

/// The first `limit` entries that are due.
pub(super) fn due(view: &impl View, now: StoreTime, limit: usize) -> Result<Vec<Due>, Error> {
    let mut due = Vec::new();
    view.walk(Table::Due, Bound::Unbounded, &mut |entry, mark| {
        let next = Due::decode(entry, mark)?;
        if next.at > now || due.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        due.push(next);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(due)
}

/// Removes what is still as it was when it was found due; what was put anew or renewed meanwhile stays.
pub(super) fn reap(draft: &mut dyn Draft, due: &[Due], now: StoreTime, kept: &mut dyn Kept) -> Result<(), Error> {
    for due in due.iter().filter(|due| due.at <= now) {
        let Some(raw) = draft.get(due.table, &due.key)? else { continue };
        match due.table {
            Table::Records => {
                let record = Record::decode(raw)?;
                if Due::of_record(&due.key, &record).as_ref() == Some(due) {
                    location::remove(draft, &due.key, &record, kept);
                }
            }
            Table::Manifests => {
                let manifest = Manifest::decode(&raw)?;
                if Due::of_manifest(&due.key, &manifest) == *due {
                    relocation::remove(draft, &due.key, &manifest, kept);
                }
            }
            Table::Entries => project::reap_entry(draft, due)?,
            Table::Locks => project::reap_lease(draft, due)?,
            Table::Contents | Table::Due | Table::Leases | Table::Projects => {}
        }
    }
    Ok(())
}

/// Keeps the due table right when what expires at `old` is replaced by what expires at `new`.
pub(super) fn reschedule(draft: &mut dyn Draft, old: Option<Due>, new: Option<Due>) {
    if let Some(old) = old {
        draft.remove(Table::Due, &old.entry());
    }
    if let Some(new) = new {
        let mark: Bytes = new.mark.clone();
        draft.set(Table::Due, &new.entry(), mark);
    }
}
