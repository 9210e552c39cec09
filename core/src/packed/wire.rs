//! The packed form of requests and answers. The other side is written in the language of each binding.
//!
//! Answers lie in a row of records, and so may requests ([`Bridge::submit_all`](super::Bridge::submit_all)). A record begins with four words: what it is, whose it is (a ticket), one word that depends
//! on the kind, and the record's length in bytes. Words are 32 bits wide, numbers are doubles (they hold every instant and
//! duration of the contract), both little-endian; a text or byte string is a word for its length, and its bytes.

use bytes::Bytes;

use crate::contract::{Error, StoreTime};

/// Bytes before a record's own fields.
pub const HEADER: usize = 16;

/// What the other side asks for. In a row of requests the third word of a record is the number of the store.
pub mod ask {
    /// A request of a row that was taken back.
    pub const NOTHING: u32 = 0;
    /// key
    pub const READ: u32 = 1;
    /// number of conditions and of mutations (words); conditions: byte (0 missing, 1 version), key, expected version;
    /// mutations: byte (bit 0 put, bit 1 with retention), key, retention, place (below) and value
    pub const WRITE: u32 = 2;
    /// prefix, limit (number), byte (whether there is a cursor), cursor
    pub const SCAN: u32 = 3;
    /// reference, retention (number), place (below) and payload
    pub const PUT: u32 = 4;
    /// reference
    pub const BLOB_READ: u32 = 5;
    /// reference, retention (number)
    pub const RENEW: u32 = 6;
    /// reference
    pub const DELETE: u32 = 7;
    /// nothing
    pub const PING: u32 = 8;
    /// nothing
    pub const CLOSE: u32 = 9;
    /// Of a project: namespace, key
    pub const STATE_GET: u32 = 10;
    /// Of a project: namespace, key, expectedVersion, ttlSeconds (numbers that may be left out, below), JSON text
    pub const STATE_SET: u32 = 11;
    /// Of a project: namespace, key, expectedVersion
    pub const STATE_DELETE: u32 = 12;
    /// Of locks: namespace (a byte whether there is one, and it), key, waitMs, leaseMs. A lease that comes for a ticket that
    /// nobody waits for any more is to be released.
    pub const LOCK_ACQUIRE: u32 = 13;
    /// Of locks: id
    pub const LOCK_ATTACH: u32 = 14;
    /// Of a lease: leaseMs
    pub const LOCK_RENEW: u32 = 15;
    /// Of a lease: nothing
    pub const LOCK_RELEASE: u32 = 16;
    /// From here on the kinds are the binding's own.
    pub const OWN: u32 = 0x100;
}

// A number that may be left out: a byte whether it is there, and the number.

/// A byte that says where the bytes of a value or payload are.
pub mod place {
    /// A byte string follows.
    pub const HERE: u8 = 0;
    /// It is the next of the byte strings that came beside the request.
    pub const BESIDE: u8 = 1;
    /// A word follows, for the length. A payload is asked for part by part ([`super::tell::SEGMENT`]); a value was left out
    /// because it makes the request too large, whatever it holds.
    pub const ELSEWHERE: u8 = 2;
}

/// What native code tells. Times are numbers.
pub mod tell {
    /// storeNow
    pub const MISSING: u32 = 1;
    /// extra: length of the version; storeNow, expiresAt or NaN, version, value
    pub const FOUND: u32 = 2;
    /// As [`FOUND`], with a word for the number of the kept value in place of the value.
    pub const FOUND_LARGE: u32 = 3;
    /// extra: number of versions; storeNow, the versions of the puts in order
    pub const APPLIED: u32 = 4;
    /// storeNow
    pub const CONFLICT: u32 = 5;
    /// extra: number of items; storeNow, cursor (empty for none), items: expiresAt or NaN, key, version, value (a length word
    /// with the top bit: the number of the kept value follows)
    pub const PAGE: u32 = 6;
    /// nothing
    pub const EXPIRED: u32 = 7;
    /// storeNow, expiresAt
    pub const STORED: u32 = 8;
    /// storeNow, expiresAt
    pub const ALREADY_STORED: u32 = 9;
    /// storeNow (not of a lease), expiresAt
    pub const RENEWED: u32 = 10;
    /// nothing
    pub const DONE: u32 = 11;
    /// storeNow
    pub const TIME: u32 = 12;
    /// extra: bit 0 outcome unknown, bit 1 retryable; code, argument or empty, message
    pub const ERROR: u32 = 13;
    /// The ticket of a cancelled operation is free again.
    pub const CANCELLED: u32 = 14;
    /// Asks for a part of a payload. extra: the question; start, end (numbers)
    pub const SEGMENT: u32 = 15;
    /// A log event, of no ticket: level, target, message
    pub const LOG: u32 = 16;
    /// The answer's record is kept itself. extra: its number
    pub const BIG: u32 = 17;
    /// A state entry: version, createdAt, updatedAt, expiresAt or NaN (numbers), JSON text
    pub const ENTRY: u32 = 18;
    /// There is no such entry or lease, or the lock could not be had
    pub const ABSENT: u32 = 19;
    /// The expected version was not there
    pub const VERSION_CONFLICT: u32 = 20;
    /// The project has no place for one entry more
    pub const LIMIT_REACHED: u32 = 21;
    /// extra: the lease's number among the stores; fencing token, expiresAt (numbers), id, namespace, key
    pub const LEASE: u32 = 22;
    /// The lease is lost
    pub const LOST: u32 = 23;
    /// From here on the kinds are the binding's own.
    pub const OWN: u32 = 0x100;
}

/// Marks a length word of a page's item: the value is kept under the number that follows.
pub(super) const KEPT: u32 = 1 << 31;

/// One record of a row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What it is.
    pub kind: u32,
    /// Whose it is.
    pub ticket: u32,
    /// The word that depends on the kind.
    pub extra: u32,
    /// Its own fields.
    pub fields: &'a [u8],
    /// All of it.
    pub record: &'a [u8],
}

/// The records of a row, one after the other, as far as they are complete.
#[derive(Clone, Debug)]
pub struct Rows<'a>(pub &'a [u8]);

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let word = |place: usize| {
            let bytes = self.0.get(place..place + 4)?;
            bytes.try_into().ok().map(u32::from_le_bytes)
        };
        let (kind, ticket, extra, length) = (word(0)?, word(4)?, word(8)?, word(12)?);
        let (record, rest) = self.0.split_at_checked(length as usize)?;
        let fields = record.get(HEADER..)?;
        self.0 = rest;
        Some(Row { kind, ticket, extra, fields, record })
    }
}

/// Reads fields, one after the other.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    owner: &'a Bytes,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the beginning.
    pub fn new(fields: &'a Bytes) -> Self {
        Self { owner: fields, rest: fields }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    /// The next byte.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    /// The next word.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub fn word(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn length(&mut self) -> Result<usize, Error> {
        self.word().map(|word| word as usize)
    }

    pub(super) fn number(&mut self) -> Result<f64, Error> {
        self.array().map(f64::from_le_bytes)
    }

    /// A text or byte string.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub fn string(&mut self) -> Result<&'a [u8], Error> {
        let length = self.length()?;
        self.take(length)
    }

    /// A byte string that shares the memory of the whole.
    ///
    /// # Errors
    /// `INTERNAL` if there is none.
    pub fn part(&mut self) -> Result<Bytes, Error> {
        self.string().map(|slice| self.owner.slice_ref(slice))
    }
}

pub(super) fn malformed() -> Error {
    Error::internal("a malformed request")
}

/// One record being written.
#[derive(Debug)]
pub struct Record<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Record<'a> {
    /// Begins a record at the end of `out`; [`end`](Self::end) completes it.
    pub fn begin(out: &'a mut Vec<u8>, kind: u32, ticket: u32, extra: u32) -> Self {
        let start = out.len();
        for word in [kind, ticket, extra, 0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        Self { out, start }
    }

    /// Writes a word.
    pub fn word(&mut self, word: u32) -> &mut Self {
        self.out.extend_from_slice(&word.to_le_bytes());
        self
    }

    /// Writes a number.
    pub fn number(&mut self, number: f64) -> &mut Self {
        self.out.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn time(&mut self, time: StoreTime) -> &mut Self {
        self.number(number(time.unix_ms()))
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// Writes a text or byte string.
    pub fn string(&mut self, bytes: &[u8]) -> &mut Self {
        self.word(word(bytes.len())).raw(bytes)
    }

    /// Completes the record.
    pub fn end(self) {
        let length = word(self.out.len() - self.start);
        self.out[self.start + 12..self.start + HEADER].copy_from_slice(&length.to_le_bytes());
    }
}

/// A length as a word. Nothing as long as 4 GiB passes here.
pub(super) fn word(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A count or an instant as a number.
#[expect(clippy::cast_precision_loss, reason = "instants are below 2^53, and a counter may round beyond it")]
pub fn number(count: u64) -> f64 {
    count as f64
}
