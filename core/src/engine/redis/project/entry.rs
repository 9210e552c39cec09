//! A state entry as it lies in the engine: a header of fixed places, and the JSON text.

use bytes::{Buf, Bytes};

use crate::contract::{JsonText, StateEntry, StoreTime};
use crate::engine::redis::words::decimal;

/// Bytes of a mark.
pub(super) const MARK: usize = 16;
/// Version, creation, last write and expiry (0 for none), 16 decimal digits each, which Lua reads exactly; the mark of the
/// write.
pub(super) const HEADER: usize = 4 * 16 + MARK;

/// The layout that this version writes.
pub(super) const FORMAT: &[u8] = b"1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u64,
    pub(super) created_at: StoreTime,
    pub(super) updated_at: StoreTime,
    pub(super) expires_at: Option<StoreTime>,
    /// Random, fresh for every write: whoever made it knows it again after a lost answer.
    pub(super) mark: [u8; MARK],
}

impl Header {
    /// `None` for what this layout did not write.
    pub(super) fn decode(raw: &[u8]) -> Option<Self> {
        let (numbers, rest) = raw.split_at_checked(HEADER - MARK)?;
        let mark = *rest.first_chunk()?;
        if !numbers.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = |place: usize| decimal(&numbers[16 * place..16 * (place + 1)]);
        let time = |place| number(place).map(StoreTime::from_unix_ms);
        let expires_at = Some(time(3)?).filter(|expires_at| expires_at.unix_ms() != 0);
        Some(Self { version: number(0)?, created_at: time(1)?, updated_at: time(2)?, expires_at, mark })
    }

    pub(super) fn is_live(&self, now: StoreTime) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at > now)
    }

    pub(super) fn entry(self, value: JsonText) -> StateEntry {
        let Self { version, created_at, updated_at, expires_at, .. } = self;
        StateEntry { value, version, expires_at, created_at, updated_at }
    }
}

/// The entry in what lies under an entry's key, if it is live.
pub(super) fn live(mut raw: Bytes, now: StoreTime) -> Option<StateEntry> {
    let header = Header::decode(&raw).filter(|header| header.is_live(now))?;
    raw.advance(HEADER);
    Some(header.entry(JsonText::stored(raw).ok()?))
}

/// What lies under an entry's key is no entry, or is written and read again as what it was read as (an instant past the last
/// one is that).
#[cfg(any(test, fuzzing))]
pub(in crate::engine) fn fuzz(raw: &[u8]) {
    let start = StoreTime::from_unix_ms(0);
    if let Some(entry) = live(Bytes::copy_from_slice(raw), start) {
        let times = [entry.created_at, entry.updated_at, entry.expires_at.unwrap_or(start)];
        let numbers = [entry.version].into_iter().chain(times.map(StoreTime::unix_ms));
        let mut again = numbers.map(|number| format!("{number:016}")).collect::<String>().into_bytes();
        again.extend([0; MARK]);
        again.extend(entry.value.as_bytes());
        assert_eq!(live(again.into(), start), Some(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_was_written_and_nothing_else_is_one() {
        let raw = b"0000000000000003000170000000000000017000000000010001700000000002\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\xfe\xff";
        let header = Header::decode(raw).unwrap();
        assert_eq!((header.version, header.created_at.unix_ms()), (3, 1_700_000_000_000));
        assert_eq!(header.updated_at.unix_ms(), 1_700_000_000_001);
        assert_eq!((header.expires_at.unwrap().unix_ms(), header.mark[15]), (1_700_000_000_002, 255));
        assert!(header.is_live(StoreTime::from_unix_ms(1_700_000_000_001)));
        assert!(!header.is_live(StoreTime::from_unix_ms(1_700_000_000_002)), "from that very instant on");
        for short in 0..raw.len() {
            assert_eq!(Header::decode(&raw[..short]), None);
        }
        let mut other = raw.to_vec();
        other[5] = b'-';
        assert_eq!(Header::decode(&other), None);
        other[5] = b'0';
        other[48..64].fill(b'0');
        assert_eq!(Header::decode(&other).unwrap().expires_at, None);
    }
}
