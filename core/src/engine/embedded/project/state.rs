//! State entries, in the tables of either storage.

use std::ops::{Bound, ControlFlow};

use super::super::expiry::reschedule;
use super::super::record::Due;
use super::super::storage::{Draft, Table, View};
use super::record::{Scope, Totals, decode_entry, due, encode_entry, is_live};
use crate::contract::{Error, StateDeleteResult, StateEntry, StateSetResult, StateWriteOptions, StoreTime, limits};
use crate::engine::StateSet;

/// What a commit made of a `set`.
pub(super) enum Set {
    Done(StateSetResult),
    /// There is no place for one entry more, unless some have expired.
    Full,
}

/// What there is to do about a full project.
pub(super) enum Room {
    /// Every entry is live, and this one is not among them: that is the answer.
    None,
    /// These have expired; with them gone there is room.
    After(Vec<Due>),
    /// It is not full any more, or the entry is there now.
    Perhaps,
}

/// Expired entries that leave for a new one, at most.
const REMOVED_AT_ONCE: usize = 64;

pub(super) fn get(view: &impl View, key: &[u8], now: StoreTime) -> Result<Option<StateEntry>, Error> {
    let entry = view.get(Table::Entries, key)?.map(decode_entry).transpose()?;
    Ok(entry.filter(|entry| is_live(entry.expires_at, now)))
}

pub(super) fn set(draft: &mut dyn Draft, scope: &Scope, key: &[u8], set: &StateSet, now: StoreTime) -> Result<Set, Error> {
    let StateWriteOptions { expected_version, ttl_seconds } = set.options;
    let there = draft.get(Table::Entries, key)?.map(decode_entry).transpose()?;
    let live = there.as_ref().filter(|entry| is_live(entry.expires_at, now));
    let version = live.map_or(0, |entry| entry.version);
    if expected_version.is_some_and(|expected| expected != version) {
        return Ok(Set::Done(StateSetResult::Conflict));
    }
    let mut totals = Totals::of(draft, scope)?;
    if there.is_none() {
        if totals.entries >= limits::MAX_ENTRIES {
            return Ok(Set::Full);
        }
        totals.entries += 1;
        totals.set(draft, scope);
    }
    let entry = StateEntry {
        value: set.value.clone(),
        version: version + 1,
        expires_at: ttl_seconds.map(|seconds| StoreTime::from_unix_ms(now.unix_ms() + seconds * 1_000)),
        created_at: live.map_or(now, |entry| entry.created_at),
        updated_at: now,
    };
    reschedule(draft, there.as_ref().and_then(|entry| due_of(key, entry)), due_of(key, &entry));
    draft.weigh(weight(key, &entry) - there.as_ref().map_or(0, |entry| weight(key, entry)));
    draft.set(Table::Entries, key, encode_entry(&entry));
    Ok(Set::Done(StateSetResult::Stored(entry)))
}

/// Whether a project that was found full is so: all in one view, at one instant.
pub(super) fn room(view: &impl View, scope: &Scope, key: &[u8], now: StoreTime) -> Result<Room, Error> {
    let totals = view.get(Table::Projects, scope.as_bytes())?.map_or(Ok(Totals::default()), |raw| Totals::decode(&raw))?;
    if totals.entries < limits::MAX_ENTRIES || view.get(Table::Entries, key)?.is_some() {
        return Ok(Room::Perhaps);
    }
    let mut expired = Vec::new();
    view.walk(Table::Due, Bound::Unbounded, &mut |entry, mark| {
        let due = Due::decode(entry, mark)?;
        if due.at > now || expired.len() == REMOVED_AT_ONCE {
            return Ok(ControlFlow::Break(()));
        }
        if due.table == Table::Entries && due.key.starts_with(scope.as_bytes()) {
            expired.push(due);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(if expired.is_empty() { Room::None } else { Room::After(expired) })
}

pub(super) fn delete(
    draft: &mut dyn Draft,
    key: &[u8],
    expected: Option<u64>,
    now: StoreTime,
) -> Result<StateDeleteResult, Error> {
    let there = draft.get(Table::Entries, key)?.map(decode_entry).transpose()?;
    let live = there.filter(|entry| is_live(entry.expires_at, now));
    match (live, expected) {
        (None, Some(1..)) => Ok(StateDeleteResult::Conflict),
        (None, _) => Ok(StateDeleteResult::Missing),
        (Some(entry), Some(expected)) if entry.version != expected => Ok(StateDeleteResult::Conflict),
        (Some(entry), _) => remove(draft, key, &entry).map(|()| StateDeleteResult::Deleted),
    }
}

/// Removes what was found due, if it is still what is due.
pub(in super::super) fn reap(draft: &mut dyn Draft, due: &Due) -> Result<(), Error> {
    match draft.get(Table::Entries, &due.key)?.map(decode_entry).transpose()? {
        Some(entry) if entry.expires_at == Some(due.at) => remove(draft, &due.key, &entry),
        _ => Ok(()),
    }
}

/// Removes an entry that is there.
fn remove(draft: &mut dyn Draft, key: &[u8], entry: &StateEntry) -> Result<(), Error> {
    let scope = Scope::of_key(key)?;
    let mut totals = Totals::of(draft, &scope)?;
    totals.entries = totals.entries.saturating_sub(1);
    totals.set(draft, &scope);
    reschedule(draft, due_of(key, entry), None);
    draft.weigh(-weight(key, entry));
    draft.remove(Table::Entries, key);
    Ok(())
}

fn due_of(key: &[u8], entry: &StateEntry) -> Option<Due> {
    entry.expires_at.map(|at| due(Table::Entries, key, at))
}

/// What an entry takes, with its entry in the due table.
fn weight(key: &[u8], entry: &StateEntry) -> i64 {
    let due = if entry.expires_at.is_some() { key.len() + 64 } else { 0 };
    i64::try_from(key.len() + entry.value.as_bytes().len() + 64 + due).unwrap_or(i64::MAX)
}
