//! A record: a fixed header and the value's bytes, in one string.

use bytes::{Buf, Bytes};

use crate::contract::{StoreTime, StoredValue, limits};
use crate::engine::version::Stamp;

/// Bytes of the header: stamp (commit sequence, nonce, place), commit ms, expiry ms (0 for none).
pub(super) const HEADER: usize = Stamp::SIZE + 8 + 8;

/// A record as it lies in the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) stamp: Stamp,
    pub(super) committed: StoreTime,
    pub(super) expires: Option<StoreTime>,
    pub(super) value: Bytes,
}

impl Record {
    /// `None` for what this layout did not write.
    pub(super) fn decode(mut raw: Bytes) -> Option<Self> {
        let (stamp, rest) = raw.split_first_chunk::<{ Stamp::SIZE }>()?;
        let stamp = Stamp::from_raw(stamp);
        let (committed, rest) = rest.split_first_chunk()?;
        let (expires, _) = rest.split_first_chunk()?;
        let (committed, expires) = (time(*committed)?, time(*expires)?);
        raw.advance(HEADER);
        Some(Self { stamp, committed, expires: (expires.unix_ms() != 0).then_some(expires), value: raw })
    }

    /// Whether the record had not expired at `now`.
    pub(super) fn is_live(&self, now: StoreTime) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }

    /// The record as the caller sees it.
    pub(super) fn observed(self, store_now: StoreTime) -> StoredValue {
        StoredValue { bytes: self.value, version: self.stamp.version(), expires_at: self.expires, store_now }
    }
}

fn time(raw: [u8; 8]) -> Option<StoreTime> {
    let ms = u64::from_be_bytes(raw);
    (ms <= limits::MAX_TIME_MS).then(|| StoreTime::from_unix_ms(ms))
}

/// What lies under a record's key is no record, or all of it is in what was read.
#[cfg(any(test, fuzzing))]
pub(in crate::engine) fn fuzz(raw: &[u8]) {
    let Some(record) = Record::decode(Bytes::copy_from_slice(raw)) else { return };
    let mut again = record.stamp.to_raw().to_vec();
    again.extend(record.committed.unix_ms().to_be_bytes());
    again.extend(record.expires.map_or(0, StoreTime::unix_ms).to_be_bytes());
    again.extend(&record.value);
    assert_eq!(again, raw);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_record_is_none() {
        let stamp = Stamp { sequence: 7, nonce: *b"\x00\xff234567", place: 2_047 };
        let mut raw = stamp.to_raw().to_vec();
        raw.extend(5_u64.to_be_bytes());
        raw.extend(limits::MAX_TIME_MS.to_be_bytes());
        for short in 0..raw.len() {
            assert_eq!(Record::decode(Bytes::copy_from_slice(&raw[..short])), None);
        }
        let expires = Some(StoreTime::from_unix_ms(limits::MAX_TIME_MS));
        let committed = StoreTime::from_unix_ms(5);
        let empty = Record { stamp, committed, expires, value: Bytes::new() };
        assert_eq!(Record::decode(raw.clone().into()), Some(empty.clone()));
        raw.extend(b"value");
        assert_eq!(Record::decode(raw.clone().into()), Some(Record { value: Bytes::from_static(b"value"), ..empty }));
        raw[26] = 1;
        assert_eq!(Record::decode(raw.into()), None, "an expiry that nobody can ask for");
    }
}
