//! Unpacks requests into operations of the core.

use std::sync::Arc;

use bytes::Bytes;

use super::acquires::Acquire;
use super::mailbox::Mailbox;
use super::source::Segments;
use super::wire::{Reader, ask, malformed, place};
use super::work::{Store, Stores, Work};
use crate::contract::{
    BlobReference, Condition, Cursor, Error, JsonText, Key, LockOptions, Mutation, Name, Namespace, Payload, Retention,
    ScanRequest, StateWriteOptions, Version, WriteRequest, check_lease_ms, limits,
};
use crate::engine::StateSet;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is asked for, of [`ask`].
    pub kind: u32,
    /// Under which the answer comes.
    pub ticket: u32,
    /// The store's number.
    pub store: u32,
    /// The request's own fields, in memory of ours.
    pub fields: &'a Bytes,
}

/// What is asked for, unpacked.
pub(super) enum Asked {
    Read(Key),
    Write(WriteRequest),
    Scan(ScanRequest),
    Put(BlobReference, Payload, Retention),
    BlobRead(BlobReference),
    Renew(BlobReference, Retention),
    Delete(BlobReference),
    StateGet(Namespace, Name),
    StateSet(Namespace, Name, JsonText, StateWriteOptions),
    StateDelete(Namespace, Name, Option<u64>),
    Acquire(Name, LockOptions),
    Attach(String),
    LockRenew(Option<u64>),
    LockRelease,
    Ping,
    Close,
}

impl Asked {
    /// Makes the operation; nothing of it has happened when this returns. Without a store (it is closed, and gone) argument
    /// errors are found all the same.
    pub(super) fn of(self, store: Option<&Store>, stores: &Arc<Stores>) -> Result<Work, Error> {
        let Some(store) = store else {
            match &self {
                Self::Write(request) => request.validate().map(drop)?,
                Self::Scan(request) => request.validate()?,
                Self::Put(_, payload, _) => payload.validate()?,
                Self::StateSet(_, _, _, options) => options.validate()?,
                Self::Acquire(_, options) => options.validate()?,
                Self::LockRenew(Some(lease_ms)) => check_lease_ms(*lease_ms)?,
                // Closing again does nothing more.
                Self::Close => return Ok(Work::Close(Box::pin(std::future::ready(())))),
                _ => {}
            }
            return Err(Error::closed());
        };
        Ok(match (self, store) {
            (Self::Read(key), Store::Location(store)) => Work::Read(store.read(key).checked()?),
            (Self::Write(request), Store::Location(store)) => Work::Write(store.write(request).checked()?),
            (Self::Scan(request), Store::Location(store)) => Work::Scan(store.scan(request).checked()?),
            (Self::Put(reference, payload, retention), Store::Relocation(store)) => {
                Work::Put(store.put(reference, payload, retention).checked()?)
            }
            (Self::BlobRead(reference), Store::Relocation(store)) => Work::BlobRead(store.read(reference).checked()?),
            (Self::Renew(reference, retention), Store::Relocation(store)) => {
                Work::Renew(store.renew(reference, retention).checked()?)
            }
            (Self::Delete(reference), Store::Relocation(store)) => Work::Done(store.delete(reference).checked()?),
            (Self::StateGet(namespace, key), Store::Project(project)) => Work::StateGet(project.state_get(namespace, key)),
            (Self::StateSet(namespace, key, value, options), Store::Project(project)) => {
                Work::StateSet(project.state_set(StateSet { namespace, key, value, options }).checked()?)
            }
            (Self::StateDelete(namespace, key, expected), Store::Project(project)) => {
                Work::StateDelete(project.state_delete(namespace, key, expected).checked()?)
            }
            (Self::Acquire(key, options), Store::Locks(locks)) => {
                let (operation, place) = locks.acquire_name(key, options)?;
                Work::Acquire(Acquire::new(operation, &place), Arc::clone(stores))
            }
            (Self::Attach(id), Store::Locks(locks)) => Work::Attach(locks.attach(&id), Arc::clone(stores)),
            (Self::LockRenew(lease_ms), Store::Lease(lease)) => Work::LockRenew(lease.renew(lease_ms).checked()?),
            (Self::LockRelease, Store::Lease(lease)) => Work::LockRelease(lease.release()),
            (Self::Ping, store) => Work::Time(store.ping()),
            (Self::Close, store) => Work::Close(store.close()),
            _ => return Err(malformed()),
        })
    }
}

/// What unpacking a request needs beside it.
pub(super) struct Unpacking<'a> {
    /// Whether values are copied out of the request, so that a store which keeps one does not keep the whole request alive.
    pub(super) copy: bool,
    /// Byte strings that came beside the request, in its order.
    pub(super) beside: std::vec::IntoIter<Bytes>,
    pub(super) mailbox: &'a Arc<Mailbox>,
}

impl Unpacking<'_> {
    pub(super) fn unpack(&mut self, request: Request<'_>) -> Result<Asked, Error> {
        let mut fields = Reader::new(request.fields);
        Ok(match request.kind {
            ask::READ => Asked::Read(Key::from_utf8(fields.string()?)?),
            ask::WRITE => Asked::Write(self.write(&mut fields)?),
            ask::SCAN => Asked::Scan(scan(&mut fields)?),
            ask::PUT => {
                let reference = BlobReference::from_utf8(fields.string()?)?;
                let retention = self.retention(&mut fields)?;
                let payload = match fields.byte()? {
                    place::ELSEWHERE => Payload::Source(Arc::new(Segments::new(self.mailbox, request.ticket, fields.length()?))),
                    place => Payload::Bytes(self.bytes(place, &mut fields)?),
                };
                Asked::Put(reference, payload, retention)
            }
            ask::BLOB_READ => Asked::BlobRead(BlobReference::from_utf8(fields.string()?)?),
            ask::RENEW => Asked::Renew(BlobReference::from_utf8(fields.string()?)?, self.retention(&mut fields)?),
            ask::DELETE => Asked::Delete(BlobReference::from_utf8(fields.string()?)?),
            ask::STATE_GET => Asked::StateGet(namespace(&mut fields)?, name(&mut fields)?),
            ask::STATE_SET => {
                let (namespace, key) = (namespace(&mut fields)?, name(&mut fields)?);
                let expected_version = optional(&mut fields, "expectedVersion", "in 0..=9007199254740991")?;
                let ttl_seconds = optional(&mut fields, "ttlSeconds", "of seconds in 1..=31536000")?;
                let value = JsonText::new(fields.string()?)?;
                Asked::StateSet(namespace, key, value, StateWriteOptions { expected_version, ttl_seconds })
            }
            ask::STATE_DELETE => {
                let (namespace, key) = (namespace(&mut fields)?, name(&mut fields)?);
                Asked::StateDelete(namespace, key, optional(&mut fields, "expectedVersion", "in 0..=9007199254740991")?)
            }
            ask::LOCK_ACQUIRE => acquire(&mut fields)?,
            ask::LOCK_ATTACH => Asked::Attach(text(&mut fields)?.to_owned()),
            ask::LOCK_RENEW => Asked::LockRenew(optional(&mut fields, "leaseMs", LEASE_MS)?),
            ask::LOCK_RELEASE => Asked::LockRelease,
            ask::PING => Asked::Ping,
            ask::CLOSE => Asked::Close,
            _ => return Err(malformed()),
        })
    }

    fn write(&mut self, fields: &mut Reader<'_>) -> Result<WriteRequest, Error> {
        let conditions = fields.length()?;
        let mutations = fields.length()?;
        let mut request = WriteRequest::new();
        for index in 0..conditions {
            let condition = condition(fields).map_err(|error| error.inside(&format!("conditions[{index}]")))?;
            request.conditions.push(condition);
        }
        for index in 0..mutations {
            let mutation = self.mutation(fields).map_err(|error| error.inside(&format!("mutations[{index}]")))?;
            request.mutations.push(mutation);
        }
        Ok(request)
    }

    fn mutation(&mut self, fields: &mut Reader<'_>) -> Result<Mutation, Error> {
        let kind = fields.byte()?;
        let key = Key::from_utf8(fields.string()?)?;
        if kind & mutation::PUT == 0 {
            return Ok(Mutation::Delete { key });
        }
        let retention = if kind & mutation::RETENTION == 0 { None } else { Some(self.retention(fields)?) };
        let bytes = match fields.byte()? {
            // Zeroed memory that nobody reads is never really there; the core's own check then finds the fault and names it.
            place::ELSEWHERE => Bytes::from(vec![0; fields.length()?]),
            place => self.bytes(place, fields)?,
        };
        Ok(Mutation::Put { key, bytes, retention })
    }

    fn bytes(&mut self, place: u8, fields: &mut Reader<'_>) -> Result<Bytes, Error> {
        match place {
            place::BESIDE => self.beside.next().ok_or_else(malformed),
            _ if self.copy => fields.string().map(Bytes::copy_from_slice),
            _ => fields.part(),
        }
    }

    fn retention(&self, fields: &mut Reader<'_>) -> Result<Retention, Error> {
        let ms = fields.number()?;
        whole(ms).and_then(|ms| Retention::from_ms(ms).ok()).ok_or_else(|| {
            let said = format!("must be a whole number of ms in 1..={}, got {ms}", limits::MAX_RETENTION_MS);
            Error::argument(self.mailbox.dialect.retention, said)
        })
    }
}

/// Bits of a mutation's kind.
mod mutation {
    pub(super) const PUT: u8 = 1;
    pub(super) const RETENTION: u8 = 2;
}

fn condition(fields: &mut Reader<'_>) -> Result<Condition, Error> {
    let versioned = fields.byte()? != 0;
    let key = Key::from_utf8(fields.string()?)?;
    if !versioned {
        return Ok(Condition::Missing { key });
    }
    let expected = Version::from_utf8(fields.string()?)?;
    Ok(Condition::Version { key, expected })
}

fn scan(fields: &mut Reader<'_>) -> Result<ScanRequest, Error> {
    let prefix = std::str::from_utf8(fields.string()?)
        .map_err(|_| Error::argument("prefix", "must be valid Unicode (no lone surrogate)"))?;
    let limit = fields.number()?;
    let limit = whole(limit).and_then(|limit| u32::try_from(limit).ok()).ok_or_else(|| {
        Error::argument("limit", format!("must be a whole number in 1..={}, got {limit}", limits::MAX_SCAN_LIMIT))
    })?;
    let request = ScanRequest::new(prefix, limit);
    if fields.byte()? == 0 {
        return Ok(request);
    }
    Ok(request.after(Cursor::from_utf8(fields.string()?)?))
}

const LEASE_MS: &str = "of ms in 5000..=60000";

fn acquire(fields: &mut Reader<'_>) -> Result<Asked, Error> {
    let mut options = LockOptions::default();
    if fields.byte()? != 0 {
        options.namespace = namespace(fields)?;
    }
    let key = name(fields)?;
    if let Some(wait_ms) = optional(fields, "waitMs", "of ms in 0..=10000")? {
        options.wait_ms = wait_ms;
    }
    if let Some(lease_ms) = optional(fields, "leaseMs", LEASE_MS)? {
        options.lease_ms = lease_ms;
    }
    Ok(Asked::Acquire(key, options))
}

fn namespace(fields: &mut Reader<'_>) -> Result<Namespace, Error> {
    Namespace::new(text(fields)?)
}

fn name(fields: &mut Reader<'_>) -> Result<Name, Error> {
    Name::new(text(fields)?)
}

/// What is no text has characters that no name may have; the core's own check then says so.
fn text<'a>(fields: &mut Reader<'a>) -> Result<&'a str, Error> {
    Ok(std::str::from_utf8(fields.string()?).unwrap_or("\u{fffd}"))
}

/// A whole number that may be left out; the limits are the core's to check.
fn optional(fields: &mut Reader<'_>, argument: &str, limits: &str) -> Result<Option<u64>, Error> {
    if fields.byte()? == 0 {
        return Ok(None);
    }
    let given = fields.number()?;
    let said = || Error::argument(argument, format!("must be a whole number {limits}, got {given}"));
    whole(given).map(Some).ok_or_else(said)
}

/// A number of the other side as a whole one, if it is exactly one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
fn whole(number: f64) -> Option<u64> {
    let exact = number.fract() == 0.0 && (0.0..=super::wire::number(limits::MAX_RETENTION_MS)).contains(&number);
    exact.then_some(number as u64)
}
