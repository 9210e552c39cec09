//! The packed form of requests and answers. `packages/node/store-native/src/wire.ts` is the other side.
//!
//! A batch is a row of records. A record begins with four words: what it is, whose it is (a ticket), one word that depends on
//! the kind, and the record's length in bytes. Numbers are little-endian; a text or byte string is its length and its bytes.

use zlink_store::{Error, StoreTime};

/// Bytes before a record's own fields.
pub(crate) const HEADER: usize = 16;

/// What JavaScript asks for.
pub(crate) mod ask {
    /// Taken back before it was submitted.
    pub(crate) const NOTHING: u32 = 0;
    pub(crate) const READ: u32 = 1;
    pub(crate) const WRITE: u32 = 2;
    pub(crate) const SCAN: u32 = 3;
    pub(crate) const PUT: u32 = 4;
    pub(crate) const BLOB_READ: u32 = 5;
    pub(crate) const RENEW: u32 = 6;
    pub(crate) const DELETE: u32 = 7;
    pub(crate) const PING: u32 = 8;
    pub(crate) const CLOSE: u32 = 9;
    /// The answer of the user's Redis client to one command.
    pub(crate) const CLIENT_REPLY: u32 = 10;
    /// A bit beside the kind: there is a signal, so the operation may be cancelled by its ticket.
    pub(crate) const CANCELLABLE: u32 = 0x100;
}

/// What native code tells.
pub(crate) mod tell {
    pub(crate) const MISSING: u32 = 1;
    pub(crate) const FOUND: u32 = 2;
    /// As `FOUND`, the value being kept for `take`.
    pub(crate) const FOUND_LARGE: u32 = 3;
    pub(crate) const APPLIED: u32 = 4;
    pub(crate) const CONFLICT: u32 = 5;
    pub(crate) const PAGE: u32 = 6;
    pub(crate) const EXPIRED: u32 = 7;
    pub(crate) const STORED: u32 = 8;
    pub(crate) const ALREADY_STORED: u32 = 9;
    pub(crate) const RENEWED: u32 = 10;
    pub(crate) const DONE: u32 = 11;
    pub(crate) const TIME: u32 = 12;
    pub(crate) const ERROR: u32 = 13;
    /// The ticket of a cancelled operation is free again.
    pub(crate) const CANCELLED: u32 = 14;
    /// Asks for a part of a payload.
    pub(crate) const SEGMENT: u32 = 15;
    /// Asks the user's Redis client to send a command.
    pub(crate) const COMMAND: u32 = 16;
    /// Nobody waits for that command any more.
    pub(crate) const COMMAND_DROPPED: u32 = 17;
    /// The user's Redis client is not needed any more.
    pub(crate) const CLIENT_DROPPED: u32 = 18;
    pub(crate) const LOG: u32 = 19;
}

/// Reads the fields of one record.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(fields: &'a [u8]) -> Self {
        Self(fields)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn word(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn length(&mut self) -> Result<usize, Error> {
        self.word().map(|word| word as usize)
    }

    pub(crate) fn number(&mut self) -> Result<f64, Error> {
        self.array().map(f64::from_le_bytes)
    }

    /// A text or byte string.
    pub(crate) fn string(&mut self) -> Result<&'a [u8], Error> {
        let length = self.length()?;
        self.take(length)
    }
}

pub(crate) fn malformed() -> Error {
    Error::internal("a malformed batch")
}

/// One record being written.
pub(crate) struct Record<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Record<'a> {
    /// Begins a record at the end of `out`; [`end`](Self::end) completes it.
    pub(crate) fn begin(out: &'a mut Vec<u8>, kind: u32, ticket: u32, extra: u32) -> Self {
        let start = out.len();
        for word in [kind, ticket, extra, 0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        Self { out, start }
    }

    pub(crate) fn word(&mut self, word: u32) -> &mut Self {
        self.out.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub(crate) fn number(&mut self, number: f64) -> &mut Self {
        self.out.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn time(&mut self, time: StoreTime) -> &mut Self {
        self.number(number(time.unix_ms()))
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    pub(crate) fn string(&mut self, bytes: &[u8]) -> &mut Self {
        self.word(word(bytes.len())).raw(bytes)
    }

    pub(crate) fn end(self) {
        let length = word(self.out.len() - self.start);
        self.out[self.start + 12..self.start + HEADER].copy_from_slice(&length.to_le_bytes());
    }
}

/// A length as a word. Nothing as long as 4 GiB passes here.
pub(crate) fn word(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A count or an instant as JavaScript has it.
#[expect(clippy::cast_precision_loss, reason = "instants are below 2^53, and a counter may round beyond it")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
