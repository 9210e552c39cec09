//! Packs answers and errors.

use bytes::Bytes;

use super::mailbox::Mailbox;
use super::wire::{KEPT, Record, number, tell, word};
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobRenewResult, Error, Outcome, ReadResult, ReleaseResult, RenewResult, ScanPage, ScanResult,
    StateDeleteResult, StateEntry, StateSetResult, StoreTime, StoredValue, WriteResult,
};
use crate::project::LockLease;

/// The end of an operation.
pub(super) enum Answer {
    Read(Result<ReadResult, Error>),
    Write(Result<WriteResult, Error>),
    Scan(Result<ScanResult, Error>),
    Put(Result<BlobPutResult, Error>),
    BlobRead(Result<BlobReadResult, Error>),
    Renew(Result<BlobRenewResult, Error>),
    StateGet(Result<Option<StateEntry>, Error>),
    StateSet(Result<StateSetResult, Error>),
    StateDelete(Result<StateDeleteResult, Error>),
    /// With its number among the stores.
    Lease(Result<Option<(u32, LockLease)>, Error>),
    LockRenew(Result<RenewResult, Error>),
    LockRelease(Result<ReleaseResult, Error>),
    Done(Result<(), Error>),
    Time(Result<StoreTime, Error>),
    Cancelled,
}

impl Answer {
    pub(super) fn pack(self, ticket: u32, mailbox: &Mailbox, out: &mut Vec<u8>) {
        let packed = match self {
            Self::Read(result) => result.map(|result| match result {
                ReadResult::Missing { store_now } => simple(out, tell::MISSING, ticket, Some(store_now), None),
                ReadResult::Found(value) => found(out, ticket, mailbox, value),
            }),
            Self::Write(result) => result.map(|result| match result {
                WriteResult::Applied { put_versions, store_now } => {
                    let mut record = Record::begin(out, tell::APPLIED, ticket, word(put_versions.len()));
                    record.time(store_now);
                    for put in &put_versions {
                        record.string(put.version.as_bytes());
                    }
                    record.end();
                }
                WriteResult::Conflict { store_now } => simple(out, tell::CONFLICT, ticket, Some(store_now), None),
            }),
            Self::Scan(result) => result.map(|result| match result {
                ScanResult::Page(found) => page(out, ticket, mailbox, found),
                ScanResult::Expired => simple(out, tell::EXPIRED, ticket, None, None),
            }),
            Self::Put(result) => result.map(|result| match result {
                BlobPutResult::Stored { expires_at, store_now } => {
                    simple(out, tell::STORED, ticket, Some(store_now), Some(expires_at));
                }
                BlobPutResult::AlreadyStored { expires_at, store_now } => {
                    simple(out, tell::ALREADY_STORED, ticket, Some(store_now), Some(expires_at));
                }
                BlobPutResult::Conflict { store_now } => simple(out, tell::CONFLICT, ticket, Some(store_now), None),
            }),
            Self::BlobRead(result) => result.map(|result| match result {
                BlobReadResult::Missing { store_now } => simple(out, tell::MISSING, ticket, Some(store_now), None),
                BlobReadResult::Found { bytes, expires_at, store_now } => {
                    observed(out, ticket, mailbox, b"", bytes, Some(expires_at), store_now);
                }
            }),
            Self::Renew(result) => result.map(|result| match result {
                BlobRenewResult::Missing { store_now } => simple(out, tell::MISSING, ticket, Some(store_now), None),
                BlobRenewResult::Renewed { expires_at, store_now } => {
                    simple(out, tell::RENEWED, ticket, Some(store_now), Some(expires_at));
                }
            }),
            Self::StateGet(result) => result.map(|entry| match entry {
                Some(found) => entry_of(out, ticket, &found),
                None => bare(out, tell::ABSENT, ticket),
            }),
            Self::StateSet(result) => result.map(|result| match result {
                StateSetResult::Stored(stored) => entry_of(out, ticket, &stored),
                StateSetResult::Conflict => bare(out, tell::VERSION_CONFLICT, ticket),
                StateSetResult::LimitReached => bare(out, tell::LIMIT_REACHED, ticket),
            }),
            Self::StateDelete(result) => result.map(|result| match result {
                StateDeleteResult::Deleted => bare(out, tell::DONE, ticket),
                StateDeleteResult::Missing => bare(out, tell::ABSENT, ticket),
                StateDeleteResult::Conflict => bare(out, tell::VERSION_CONFLICT, ticket),
            }),
            Self::Lease(result) => result.map(|lease| match lease {
                Some((number, lease)) => lease_of(out, ticket, number, &lease),
                None => bare(out, tell::ABSENT, ticket),
            }),
            Self::LockRenew(result) => result.map(|result| match result {
                RenewResult::Renewed { expires_at } => simple(out, tell::RENEWED, ticket, None, Some(expires_at)),
                RenewResult::Lost => bare(out, tell::LOST, ticket),
            }),
            Self::LockRelease(result) => result.map(|result| match result {
                ReleaseResult::Released => bare(out, tell::DONE, ticket),
                ReleaseResult::Lost => bare(out, tell::LOST, ticket),
            }),
            Self::Done(result) => result.map(|()| simple(out, tell::DONE, ticket, None, None)),
            Self::Time(result) => result.map(|now| simple(out, tell::TIME, ticket, Some(now), None)),
            Self::Cancelled => {
                simple(out, tell::CANCELLED, ticket, None, None);
                Ok(())
            }
        };
        if let Err(error) = packed {
            failed(out, ticket, &error);
        }
    }
}

fn simple(out: &mut Vec<u8>, kind: u32, ticket: u32, store_now: Option<StoreTime>, expires_at: Option<StoreTime>) {
    let mut record = Record::begin(out, kind, ticket, 0);
    for time in [store_now, expires_at].into_iter().flatten() {
        record.time(time);
    }
    record.end();
}

fn bare(out: &mut Vec<u8>, kind: u32, ticket: u32) {
    simple(out, kind, ticket, None, None);
}

fn entry_of(out: &mut Vec<u8>, ticket: u32, entry: &StateEntry) {
    let mut record = Record::begin(out, tell::ENTRY, ticket, 0);
    record.number(number(entry.version)).time(entry.created_at).time(entry.updated_at);
    expiry(&mut record, entry.expires_at);
    record.string(entry.value.as_bytes());
    record.end();
}

fn lease_of(out: &mut Vec<u8>, ticket: u32, own: u32, lease: &LockLease) {
    let mut record = Record::begin(out, tell::LEASE, ticket, own);
    record.number(number(lease.fencing_token())).time(lease.expires_at());
    record.string(lease.id().as_bytes()).string(lease.namespace().as_bytes()).string(lease.key().as_bytes());
    record.end();
}

fn found(out: &mut Vec<u8>, ticket: u32, mailbox: &Mailbox, value: StoredValue) {
    observed(out, ticket, mailbox, value.version.as_bytes(), value.bytes, value.expires_at, value.store_now);
}

fn observed(
    out: &mut Vec<u8>,
    ticket: u32,
    mailbox: &Mailbox,
    version: &[u8],
    bytes: Bytes,
    expires_at: Option<StoreTime>,
    store_now: StoreTime,
) {
    let kind = if bytes.len() < mailbox.dialect.keep_from { tell::FOUND } else { tell::FOUND_LARGE };
    let mut record = Record::begin(out, kind, ticket, word(version.len()));
    record.time(store_now);
    expiry(&mut record, expires_at);
    record.raw(version);
    if kind == tell::FOUND {
        record.raw(&bytes);
    } else {
        record.word(mailbox.keep(bytes));
    }
    record.end();
}

fn page(out: &mut Vec<u8>, ticket: u32, mailbox: &Mailbox, page: ScanPage) {
    let mut record = Record::begin(out, tell::PAGE, ticket, word(page.items.len()));
    record.time(page.store_now);
    record.string(page.next_cursor.as_ref().map_or(b"", |cursor| cursor.as_bytes()));
    for item in page.items {
        expiry(&mut record, item.value.expires_at);
        record.string(item.key.as_bytes()).string(item.value.version.as_bytes());
        if item.value.bytes.len() < mailbox.dialect.keep_from {
            record.string(&item.value.bytes);
        } else {
            record.word(KEPT).word(mailbox.keep(item.value.bytes));
        }
    }
    record.end();
}

fn expiry(record: &mut Record<'_>, expires_at: Option<StoreTime>) {
    match expires_at {
        Some(time) => record.time(time),
        None => record.number(f64::NAN),
    };
}

pub(super) fn failed(out: &mut Vec<u8>, ticket: u32, error: &Error) {
    let flags = u32::from(error.outcome() == Outcome::Unknown) | (u32::from(error.retryable()) << 1);
    let mut record = Record::begin(out, tell::ERROR, ticket, flags);
    record.string(error.code().as_str().as_bytes());
    record.string(error.argument_name().unwrap_or_default().as_bytes());
    record.string(error.message().as_bytes());
    record.end();
}
