//! The runtime's records: our own format. A record is one byte of format, one byte of kind, then the fields: numbers as LEB128,
//! texts and bytes with their length before them. Whatever does not decode to the last byte is refused, never guessed at.

mod lease;
mod node;
mod object;
#[cfg(test)]
mod tests;

pub(super) use lease::{LeaseRecord, OwnerId};
pub(super) use node::NodeRecord;
pub(super) use object::{ObjectPhase, ObjectRecord};

use crate::contract::{Code, Error, Outcome};

/// The format of all records; a newer one is not read.
const FORMAT: u8 = 1;

/// A kind of record: what its bytes hold after the two of the head.
pub(super) trait Record: Sized {
    /// The second byte.
    const KIND: u8;
    /// What messages call it.
    const WHAT: &'static str;
    fn write(&self, to: &mut Writer);
    fn read(from: &mut Reader<'_>) -> Option<Self>;

    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer(vec![FORMAT, Self::KIND]);
        self.write(&mut writer);
        writer.0
    }

    /// # Errors
    /// `INCOMPATIBLE` if it was written by a newer version, or is none of this kind.
    fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let decoded = match bytes {
            [FORMAT, kind, fields @ ..] if *kind == Self::KIND => {
                let mut reader = Reader(fields);
                Self::read(&mut reader).filter(|_| reader.0.is_empty())
            }
            _ => None,
        };
        decoded.ok_or_else(|| {
            let said = match bytes.first() {
                Some(format) if *format > FORMAT => format!(
                    "a record of a {} has format {format}, this version knows up to {FORMAT}: update this runtime",
                    Self::WHAT
                ),
                _ => format!("a record of a {} was not written by a location runtime", Self::WHAT),
            };
            Error::new(Code::Incompatible, Outcome::NotApplied, said)
        })
    }
}

pub(super) struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn owner(&mut self, owner: OwnerId) {
        self.0.extend_from_slice(&owner.0);
    }
}

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A number in its shortest form, so that each record has one encoding.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= (bits << shift >> shift == bits).then(|| bits << shift)?;
            if byte & 0x80 == 0 {
                return (byte != 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn owner(&mut self) -> Option<OwnerId> {
        Some(OwnerId(self.take(16)?.try_into().ok()?))
    }
}
