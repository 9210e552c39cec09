//! Leases on locks, in the tables of either storage.

use std::time::{Duration, Instant};

use super::super::expiry::reschedule;
use super::super::record::Due;
use super::super::storage::{Draft, Table, View};
use super::record::{Lease, Scope, Totals, due};
use crate::contract::{Code, Error, Grant, LeaseId, Outcome, RenewResult, StoreTime, limits};
use crate::engine::Acquire;

/// What a commit made of an acquire.
pub(super) enum Tried {
    Granted(Grant),
    /// Somebody has it for so long, if nothing else happens.
    Held(Duration),
}

pub(super) fn acquire(
    draft: &mut dyn Draft,
    scope: &Scope,
    key: &[u8],
    request: &Acquire,
    id: LeaseId,
    now: StoreTime,
    sent: Instant,
) -> Result<Tried, Error> {
    let there = draft.get(Table::Locks, key)?.map(|raw| Lease::decode(&raw)).transpose()?;
    if let Some(lease) = there.filter(|lease| lease.expires_at > now) {
        return Ok(Tried::Held(Duration::from_millis(lease.expires_at.unix_ms() - now.unix_ms())));
    }
    let mut totals = Totals::of(draft, scope)?;
    let last = totals.token.max(there.map_or(0, |lease| lease.token));
    let token = (last + 1).max(now.unix_ms().saturating_mul(1_000));
    if token > limits::MAX_SAFE_INTEGER {
        return Err(Error::new(Code::Internal, Outcome::NotApplied, "the fencing tokens of this project are used up"));
    }
    if let Some(lease) = &there {
        remove(draft, scope, key, lease);
    }
    totals.token = token;
    totals.set(draft, scope);
    let Acquire { lease_ms, lock, .. } = request;
    let expires_at = StoreTime::from_unix_ms(now.unix_ms() + lease_ms);
    put(draft, key, None, &Lease { id, token, expires_at, lease_ms: *lease_ms });
    draft.set(Table::Leases, &scope.lease(id), key.to_vec().into());
    Ok(Tried::Granted(Grant { lock: lock.clone(), id, token, expires_at, lease_ms: *lease_ms, sent }))
}

pub(super) fn attach(
    view: &impl View,
    scope: &Scope,
    id: LeaseId,
    now: StoreTime,
    sent: Instant,
) -> Result<Option<Grant>, Error> {
    let Some(key) = view.get(Table::Leases, &scope.lease(id))? else { return Ok(None) };
    let lease = view.get(Table::Locks, &key)?.map(|raw| Lease::decode(&raw)).transpose()?;
    let Some(lease) = lease.filter(|lease| lease.id == id && lease.expires_at > now) else { return Ok(None) };
    let Lease { token, expires_at, lease_ms, .. } = lease;
    Ok(Some(Grant { lock: scope.lock(&key)?, id, token, expires_at, lease_ms, sent }))
}

pub(super) fn renew(
    draft: &mut dyn Draft,
    scope: &Scope,
    id: LeaseId,
    lease_ms: u64,
    now: StoreTime,
) -> Result<RenewResult, Error> {
    let Some((key, old)) = live(draft, scope, id, now)? else { return Ok(RenewResult::Lost) };
    let expires_at = StoreTime::from_unix_ms(now.unix_ms() + lease_ms);
    put(draft, &key, Some(&old), &Lease { expires_at, ..old });
    Ok(RenewResult::Renewed { expires_at })
}

/// Frees the lock and tells which it was; `None`: the lease is lost.
pub(super) fn release(draft: &mut dyn Draft, scope: &Scope, id: LeaseId, now: StoreTime) -> Result<Option<Vec<u8>>, Error> {
    let Some((key, lease)) = live(draft, scope, id, now)? else { return Ok(None) };
    remove(draft, scope, &key, &lease);
    Ok(Some(key))
}

/// Removes what was found due, if it is still what is due.
pub(in super::super) fn reap(draft: &mut dyn Draft, due: &Due) -> Result<(), Error> {
    if let Some(raw) = draft.get(Table::Locks, &due.key)? {
        let lease = Lease::decode(&raw)?;
        if lease.expires_at == due.at {
            remove(draft, &Scope::of_key(&due.key)?, &due.key, &lease);
        }
    }
    Ok(())
}

fn live(draft: &dyn Draft, scope: &Scope, id: LeaseId, now: StoreTime) -> Result<Option<(Vec<u8>, Lease)>, Error> {
    let Some(key) = draft.get(Table::Leases, &scope.lease(id))? else { return Ok(None) };
    let lease = draft.get(Table::Locks, &key)?.map(|raw| Lease::decode(&raw)).transpose()?;
    Ok(lease.filter(|lease| lease.id == id && lease.expires_at > now).map(|lease| (key.to_vec(), lease)))
}

fn put(draft: &mut dyn Draft, key: &[u8], old: Option<&Lease>, new: &Lease) {
    let due = |lease: &Lease| due(Table::Locks, key, lease.expires_at);
    reschedule(draft, old.map(due), Some(due(new)));
    draft.set(Table::Locks, key, new.encode());
}

fn remove(draft: &mut dyn Draft, scope: &Scope, key: &[u8], lease: &Lease) {
    reschedule(draft, Some(due(Table::Locks, key, lease.expires_at)), None);
    draft.remove(Table::Leases, &scope.lease(lease.id));
    draft.remove(Table::Locks, key);
}
