//! Unpacks requests into operations of the core.

use std::sync::Arc;

use bytes::Bytes;
use zlink_store::{
    BlobReference, Condition, Cursor, Error, Key, Mutation, Payload, Retention, ScanRequest, Version, WriteRequest, limits,
};

use crate::mailbox::Mailbox;
use crate::source::Segments;
use crate::wire::{HEADER, Reader, ask, malformed};
use crate::work::{Store, Work};

/// One record of a batch.
pub(crate) struct Request<'a> {
    pub(crate) kind: u32,
    pub(crate) cancellable: bool,
    pub(crate) ticket: u32,
    /// The store's number (of a client's reply: whether it is an error).
    pub(crate) subject: u32,
    pub(crate) fields: Reader<'a>,
    /// The record as it stands.
    pub(crate) record: &'a [u8],
}

/// The records of a batch, one after the other.
pub(crate) struct Requests<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Requests<'a> {
    type Item = Request<'a>;

    fn next(&mut self) -> Option<Request<'a>> {
        let mut header = Reader::new(self.0.get(..HEADER)?);
        let mut word = || header.word().ok();
        let (kind, ticket, subject, length) = (word()?, word()?, word()?, word()?);
        let (record, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(Request {
            kind: kind & !ask::CANCELLABLE,
            cancellable: kind & ask::CANCELLABLE != 0,
            ticket,
            subject,
            fields: Reader::new(record.get(HEADER..)?),
            record,
        })
    }
}

/// Where the bytes of values come from.
#[derive(Clone, Copy)]
pub(crate) enum Memory<'a> {
    /// The batch is JavaScript's memory: every value is copied.
    Borrowed,
    /// The batch is ours: values are parts of it.
    Owned(&'a Bytes),
}

impl Memory<'_> {
    fn bytes(self, slice: &[u8]) -> Bytes {
        match self {
            Self::Borrowed => Bytes::copy_from_slice(slice),
            Self::Owned(batch) => batch.slice_ref(slice),
        }
    }
}

impl Request<'_> {
    /// Makes the operation; nothing of it has happened when this returns. `payload` is a blob's, if it came beside the batch.
    pub(crate) fn start(
        &self,
        store: &Store,
        memory: Memory<'_>,
        payload: Option<Bytes>,
        mailbox: &Arc<Mailbox>,
    ) -> Result<Work, Error> {
        let mut fields = self.fields;
        Ok(match (self.kind, store) {
            (ask::READ, Store::Location(store)) => Work::Read(store.read(Key::from_utf8(fields.string()?)?).checked()?),
            (ask::WRITE, Store::Location(store)) => Work::Write(store.write(write(&mut fields, memory)?).checked()?),
            (ask::SCAN, Store::Location(store)) => Work::Scan(store.scan(scan(&mut fields)?).checked()?),
            (ask::PUT, Store::Relocation(store)) => {
                let reference = BlobReference::from_utf8(fields.string()?)?;
                let retention = retention(&mut fields)?;
                let payload = match fields.byte()? {
                    0 => Payload::Bytes(memory.bytes(fields.string()?)),
                    1 => Payload::Source(Arc::new(Segments::new(mailbox, self.ticket, fields.number()?))),
                    _ => Payload::Bytes(payload.ok_or_else(malformed)?),
                };
                Work::Put(store.put(reference, payload, retention).checked()?)
            }
            (ask::BLOB_READ, Store::Relocation(store)) => {
                Work::BlobRead(store.read(BlobReference::from_utf8(fields.string()?)?).checked()?)
            }
            (ask::RENEW, Store::Relocation(store)) => {
                let reference = BlobReference::from_utf8(fields.string()?)?;
                Work::Renew(store.renew(reference, retention(&mut fields)?).checked()?)
            }
            (ask::DELETE, Store::Relocation(store)) => {
                Work::Done(store.delete(BlobReference::from_utf8(fields.string()?)?).checked()?)
            }
            (ask::PING, store) => Work::Time(store.ping()),
            (ask::CLOSE, store) => Work::Close(store.close()),
            _ => return Err(malformed()),
        })
    }
}

fn write(fields: &mut Reader<'_>, memory: Memory<'_>) -> Result<WriteRequest, Error> {
    let conditions = fields.length()?;
    let mutations = fields.length()?;
    let mut request = WriteRequest::new();
    for index in 0..conditions {
        let condition = condition(fields).map_err(|error| error.inside(&format!("conditions[{index}]")))?;
        request.conditions.push(condition);
    }
    for index in 0..mutations {
        let mutation = mutation(fields, memory).map_err(|error| error.inside(&format!("mutations[{index}]")))?;
        request.mutations.push(mutation);
    }
    Ok(request)
}

fn condition(fields: &mut Reader<'_>) -> Result<Condition, Error> {
    let versioned = fields.byte()? != 0;
    let key = Key::from_utf8(fields.string()?)?;
    if !versioned {
        return Ok(Condition::Missing { key });
    }
    Ok(Condition::Version { key, expected: Version::from_utf8(fields.string()?)? })
}

fn mutation(fields: &mut Reader<'_>, memory: Memory<'_>) -> Result<Mutation, Error> {
    let kind = fields.byte()?;
    let key = Key::from_utf8(fields.string()?)?;
    if kind & 1 == 0 {
        return Ok(Mutation::Delete { key });
    }
    let retention = if kind & 2 == 0 { None } else { Some(retention(fields)?) };
    let bytes = if kind & 4 == 0 {
        memory.bytes(fields.string()?)
    } else {
        // JavaScript leaves out values that make the request too large whatever they hold. Zeroed memory that nobody reads is
        // never really there; the core's own check then finds the fault and names it.
        Bytes::from(vec![0; fields.length()?])
    };
    Ok(Mutation::Put { key, bytes, retention })
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

fn retention(fields: &mut Reader<'_>) -> Result<Retention, Error> {
    let ms = fields.number()?;
    whole(ms).and_then(|ms| Retention::from_ms(ms).ok()).ok_or_else(|| {
        Error::argument("retentionMs", format!("must be a whole number in 1..={}, got {ms}", limits::MAX_RETENTION_MS))
    })
}

/// A number of JavaScript as a whole one, if it is exactly one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
pub(crate) fn whole(number: f64) -> Option<u64> {
    let exact = number.fract() == 0.0 && (0.0..=crate::wire::number(limits::MAX_RETENTION_MS)).contains(&number);
    exact.then_some(number as u64)
}
