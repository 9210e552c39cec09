//! How keys and values of the tables are encoded.

use bytes::Bytes;

use super::storage::Table;
use crate::contract::{Error, StoreTime};
use crate::engine::version::Stamp;

/// The name space of one store: what its keys begin with. The length goes first, so that no two scopes overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope(Vec<u8>);

impl Scope {
    pub(super) fn new(prefix: &str) -> Self {
        let length = u16::try_from(prefix.len()).unwrap_or_else(|_| unreachable!("a key prefix has at most 256 bytes"));
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend_from_slice(prefix.as_bytes());
        Self(bytes)
    }

    pub(super) fn key(&self, name: &[u8]) -> Vec<u8> {
        [&self.0, name].concat()
    }

    pub(super) fn name<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.strip_prefix(&self.0[..])
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A record of a Location Store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) stamp: Stamp,
    pub(super) expires_at: Option<StoreTime>,
    pub(super) bytes: Bytes,
}

const STAMP: usize = 18;
const NEVER: u64 = u64::MAX;

impl Record {
    pub(super) fn is_live(&self, now: StoreTime) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at > now)
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut raw = Vec::with_capacity(STAMP + 8 + self.bytes.len());
        raw.extend_from_slice(&encode_stamp(self.stamp));
        raw.extend_from_slice(&self.expires_at.map_or(NEVER, StoreTime::unix_ms).to_be_bytes());
        raw.extend_from_slice(&self.bytes);
        raw.into()
    }

    pub(super) fn decode(raw: Bytes) -> Result<Self, Error> {
        let parts = || {
            let (stamp, rest) = raw.split_first_chunk::<STAMP>()?;
            let (expires_at, _) = rest.split_first_chunk::<8>()?;
            Some((decode_stamp(*stamp), u64::from_be_bytes(*expires_at)))
        };
        let (stamp, expires_at) = parts().ok_or_else(|| damaged("record"))?;
        let expires_at = (expires_at != NEVER).then(|| StoreTime::from_unix_ms(expires_at));
        Ok(Self { stamp, expires_at, bytes: raw.slice(STAMP + 8..) })
    }
}

/// Names the bytes of one upload; fresh for every upload.
pub(super) type UploadId = [u8; 16];

/// What the store knows of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) upload: UploadId,
    pub(super) size: u64,
    pub(super) expires_at: StoreTime,
    pub(super) place: Place,
}

/// Where a blob's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the table of contents.
    Table,
    /// In a file of its own, with this BLAKE3 digest.
    File([u8; 32]),
}

impl Manifest {
    pub(super) fn is_live(&self, now: StoreTime) -> bool {
        self.expires_at > now
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut raw = Vec::with_capacity(16 + 8 + 8 + 32);
        raw.extend_from_slice(&self.upload);
        raw.extend_from_slice(&self.size.to_be_bytes());
        raw.extend_from_slice(&self.expires_at.unix_ms().to_be_bytes());
        if let Place::File(digest) = self.place {
            raw.extend_from_slice(&digest);
        }
        raw.into()
    }

    pub(super) fn decode(raw: &[u8]) -> Result<Self, Error> {
        let parts = || {
            let (upload, rest) = raw.split_first_chunk()?;
            let (size, rest) = rest.split_first_chunk()?;
            let (expires_at, rest) = rest.split_first_chunk()?;
            let place = match rest {
                [] => Place::Table,
                digest => Place::File(digest.try_into().ok()?),
            };
            let expires_at = StoreTime::from_unix_ms(u64::from_be_bytes(*expires_at));
            Some(Self { upload: *upload, size: u64::from_be_bytes(*size), expires_at, place })
        };
        parts().ok_or_else(|| damaged("manifest"))
    }
}

/// An entry of the due table: `key` of `table` expires at `at` if it still carries `mark`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: StoreTime,
    pub(super) table: Table,
    pub(super) key: Vec<u8>,
    pub(super) mark: Bytes,
}

impl Due {
    pub(super) fn of_record(key: &[u8], record: &Record) -> Option<Self> {
        let mark = Bytes::copy_from_slice(&encode_stamp(record.stamp));
        record.expires_at.map(|at| Self { at, table: Table::Records, key: key.to_vec(), mark })
    }

    pub(super) fn of_manifest(key: &[u8], manifest: &Manifest) -> Self {
        let mark = Bytes::copy_from_slice(&manifest.upload);
        Self { at: manifest.expires_at, table: Table::Manifests, key: key.to_vec(), mark }
    }

    pub(super) fn entry(&self) -> Vec<u8> {
        let mut entry = self.at.unix_ms().to_be_bytes().to_vec();
        entry.push(self.table as u8);
        entry.extend_from_slice(&self.key);
        entry
    }

    pub(super) fn decode(entry: &[u8], mark: Bytes) -> Result<Self, Error> {
        let parts = || {
            let (at, rest) = entry.split_first_chunk::<8>()?;
            let (table, key) = rest.split_first()?;
            let table = Table::ALL.into_iter().find(|known| *known as u8 == *table)?;
            Some((StoreTime::from_unix_ms(u64::from_be_bytes(*at)), table, key.to_vec()))
        };
        let (at, table, key) = parts().ok_or_else(|| damaged("due time"))?;
        Ok(Self { at, table, key, mark })
    }
}

fn encode_stamp(stamp: Stamp) -> [u8; STAMP] {
    let mut raw = [0; STAMP];
    raw[..8].copy_from_slice(&stamp.sequence.to_be_bytes());
    raw[8..16].copy_from_slice(&stamp.nonce);
    raw[16..].copy_from_slice(&stamp.place.to_be_bytes());
    raw
}

fn decode_stamp(raw: [u8; STAMP]) -> Stamp {
    let [s0, s1, s2, s3, s4, s5, s6, s7, nonce @ .., p0, p1] = raw;
    Stamp { sequence: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]), nonce, place: u16::from_be_bytes([p0, p1]) }
}

pub(super) fn damaged(what: &str) -> Error {
    Error::internal(format!("a stored {what} is damaged"))
}

/// What a table holds is damaged, or is written and read again as what it was read as (an instant past the last one is that).
#[cfg(any(test, fuzzing))]
pub(in crate::engine) fn fuzz(raw: &[u8]) {
    if let Ok(record) = Record::decode(Bytes::copy_from_slice(raw)) {
        assert_eq!(Record::decode(record.encode()).ok(), Some(record));
    }
    if let Ok(manifest) = Manifest::decode(raw) {
        assert_eq!(Manifest::decode(&manifest.encode()).ok(), Some(manifest));
    }
    if let Ok(due) = Due::decode(raw, Bytes::new()) {
        assert_eq!(Due::decode(&due.entry(), Bytes::new()).ok(), Some(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back() {
        let stamp = Stamp { sequence: 7, nonce: *b"nonce-12", place: 513 };
        for expires_at in [None, Some(StoreTime::from_unix_ms(0)), Some(StoreTime::from_unix_ms(u64::MAX))] {
            let record = Record { stamp, expires_at, bytes: Bytes::from_static(b"value") };
            assert_eq!(Record::decode(record.encode()).unwrap(), record);
            if let Some(due) = Due::of_record(b"key", &record) {
                assert_eq!(Due::decode(&due.entry(), due.mark.clone()).unwrap(), due);
            }
        }
        for place in [Place::Table, Place::File([5; 32])] {
            let manifest = Manifest { upload: [3; 16], size: 10, expires_at: StoreTime::from_unix_ms(9), place };
            assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
            let due = Due::of_manifest(b"", &manifest);
            assert_eq!(Due::decode(&due.entry(), due.mark.clone()).unwrap(), due);
        }
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let record = Record { stamp: Stamp { sequence: 1, nonce: [0; 8], place: 0 }, expires_at: None, bytes: Bytes::new() };
        let expires_at = StoreTime::from_unix_ms(9);
        let manifest = Manifest { upload: [3; 16], size: 10, expires_at, place: Place::File([5; 32]) };
        for length in 0..record.encode().len() {
            assert!(Record::decode(record.encode().slice(..length)).is_err());
        }
        for length in (0..manifest.encode().len()).filter(|length| *length != 32) {
            assert!(Manifest::decode(&manifest.encode()[..length]).is_err());
        }
        for length in 0..=8 {
            assert!(Due::decode(&[0; 9][..length], Bytes::new()).is_err());
        }
        assert!(Due::decode(&[255; 9], Bytes::new()).is_err());
    }

    #[test]
    fn scopes_do_not_overlap() {
        let (a, ab) = (Scope::new("a"), Scope::new("ab"));
        assert_eq!(ab.name(&a.key(b"b1")), None);
        assert_eq!(a.name(&ab.key(b"1")), None);
        assert_eq!(a.name(&a.key(b"b1")), Some(&b"b1"[..]));
    }
}
