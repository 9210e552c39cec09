//! The names of a store's engine keys: all under one hash tag, so that one store is one slot and every commit is atomic.

use bytes::{BufMut, Bytes, BytesMut};

use crate::contract::{Key, KeyPrefix};

/// The newest layout that this version understands, as [`Layout::format`] holds it.
pub(super) const FORMAT: &[u8] = b"1";

/// A snapshot's id, made by the client that starts it.
pub(super) type SnapshotId = [u8; 16];

/// The names of one store's keys.
pub(super) struct Layout {
    stem: Bytes,
    /// The layout's format number.
    pub(super) format: Bytes,
    /// The commit sequence.
    pub(super) sequence: Bytes,
    /// The index of names.
    pub(super) index: Bytes,
    /// The due times.
    pub(super) due: Bytes,
    /// The snapshots, oldest first.
    pub(super) snapshots: Bytes,
    /// A key that never exists: deleting it lifts a script's memory check.
    pub(super) nothing: Bytes,
    /// A key for nothing but a write that replicas acknowledge.
    pub(super) witness: Bytes,
}

impl Layout {
    pub(super) fn new(prefix: &KeyPrefix) -> Self {
        let stem = Bytes::from(format!("{{{}}}:", prefix.as_str()));
        let key = |name: &[u8]| Bytes::from([&stem[..], name].concat());
        Self {
            format: key(b"f"),
            sequence: key(b"n"),
            index: key(b"i"),
            due: key(b"x"),
            snapshots: key(b"S"),
            nothing: key(b"z"),
            witness: key(b"w"),
            stem,
        }
    }

    /// A record.
    pub(super) fn record(&self, key: &[u8]) -> Bytes {
        self.key(b"r:", None, key)
    }

    /// What a snapshot's epoch saved.
    pub(super) fn undo(&self, id: &SnapshotId) -> Bytes {
        self.key(b"u:", Some(id), b"")
    }

    /// Where a large record goes that a snapshot's epoch saved.
    pub(super) fn moved(&self, id: &SnapshotId, key: &[u8]) -> Bytes {
        self.key(b"u:", Some(id), key)
    }

    /// The list of the names that were moved.
    pub(super) fn moved_names(&self, id: &SnapshotId) -> Bytes {
        self.key(b"v:", Some(id), b"")
    }

    fn key(&self, kind: &[u8], id: Option<&SnapshotId>, name: &[u8]) -> Bytes {
        let mut key = BytesMut::with_capacity(self.stem.len() + kind.len() + 33 + name.len());
        key.put_slice(&self.stem);
        key.put_slice(kind);
        if let Some(id) = id {
            for byte in id {
                key.put_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            if !name.is_empty() {
                key.put_u8(b':');
            }
        }
        key.put_slice(name);
        key.freeze()
    }
}

const HEX: [u8; 16] = *b"0123456789abcdef";

/// What a cursor calls this store, the same from every process and language.
pub(super) fn store_name(prefix: &KeyPrefix) -> Vec<u8> {
    format!("redis location {}", prefix.as_str()).into_bytes()
}

/// A name as it stands in the index; none for bytes that are no key of ours.
pub(super) fn name(raw: &[u8]) -> Option<Key> {
    Key::from_utf8(raw).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hash_tag_whatever_the_key() {
        let layout = Layout::new(&KeyPrefix::new("app:1").unwrap());
        assert_eq!(layout.record("}{a{b}".as_bytes()), "{app:1}:r:}{a{b}");
        assert_eq!(layout.undo(&[0xa5; 16]), format!("{{app:1}}:u:{}", "a5".repeat(16)));
        assert_eq!(layout.moved(&[1; 16], b"k"), format!("{{app:1}}:u:{}:k", "01".repeat(16)));
        assert_eq!(layout.snapshots, "{app:1}:S");
    }
}
