//! A write request as the commit script takes it: a group of keys with what is asked of each.

use std::collections::HashMap;

use bytes::Bytes;

use crate::contract::{Condition, Key, Mutation, PutVersion, Retention, StoreTime, WriteRequest, WriteResult};
use crate::engine::version::Stamp;

/// One write: all of it is applied, or nothing.
pub(super) struct Group {
    /// Fresh for each commit: the mark by which a commit is known again.
    pub(super) nonce: [u8; 8],
    pub(super) keys: Vec<Touched>,
    /// The keys that are put, in the order of the puts.
    puts: Vec<Key>,
    /// Bytes of keys and values.
    pub(super) size: usize,
}

/// What is asked of one key.
pub(super) struct Touched {
    pub(super) key: Key,
    pub(super) condition: Expected,
    pub(super) change: Change,
}

/// What must hold for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    Missing,
    /// A stamp; `None` for a version that no store issued, which no record has.
    Stamp(Option<Stamp>),
}

/// What is done to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Delete,
    Put { place: u16, bytes: Bytes, retention: Option<Retention> },
}

impl Group {
    pub(super) fn new(request: WriteRequest, nonce: [u8; 8]) -> Self {
        let WriteRequest { conditions, mutations } = request;
        let mut keys: Vec<Touched> = Vec::with_capacity(conditions.len().max(mutations.len()));
        for condition in conditions {
            let (key, condition) = match condition {
                Condition::Missing { key } => (key, Expected::Missing),
                Condition::Version { key, expected } => (key, Expected::Stamp(Stamp::parse(&expected))),
            };
            keys.push(Touched { key, condition, change: Change::Nothing });
        }
        let places: HashMap<Key, usize> = keys.iter().enumerate().map(|(at, touched)| (touched.key.clone(), at)).collect();
        let mut puts = Vec::new();
        let mut size = 0;
        for mutation in mutations {
            let (key, change) = match mutation {
                Mutation::Delete { key } => (key, Change::Delete),
                Mutation::Put { key, bytes, retention } => {
                    size += bytes.len();
                    // At most 2,048 puts.
                    let place = u16::try_from(puts.len()).unwrap_or(u16::MAX);
                    puts.push(key.clone());
                    (key, Change::Put { place, bytes, retention })
                }
            };
            match places.get(&key) {
                Some(&at) => keys[at].change = change,
                None => keys.push(Touched { key, condition: Expected::Anything, change }),
            }
        }
        size += keys.iter().map(|touched| touched.key.as_bytes().len()).sum::<usize>();
        Self { nonce, keys, puts, size }
    }

    /// Whether it puts anything: only then it may be refused for want of memory.
    pub(super) fn puts_something(&self) -> bool {
        !self.puts.is_empty()
    }

    /// The key whose record bears the commit's mark.
    pub(super) fn marked(&self) -> Option<&Key> {
        self.puts.first()
    }

    /// The result of the group, applied under `sequence` at `store_now`.
    pub(super) fn applied(self, sequence: u64, store_now: StoreTime) -> WriteResult {
        let nonce = self.nonce;
        let versions = self.puts.into_iter().zip(0..).map(|(key, place)| {
            let version = Stamp { sequence, nonce, place }.version();
            PutVersion { key, version }
        });
        WriteResult::Applied { put_versions: versions.collect(), store_now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_condition_and_a_mutation_is_one() {
        let key = |text: &str| Key::new(text).unwrap();
        let stamp = Stamp { sequence: 1, nonce: [2; 8], place: 3 };
        let request = WriteRequest::new()
            .condition(Condition::Version { key: key("a"), expected: stamp.version() })
            .condition(Condition::Missing { key: key("bb") })
            .mutation(Mutation::put(key("ccc"), "value"))
            .mutation(Mutation::put(key("a"), "x"))
            .mutation(Mutation::delete(key("d")));
        let group = Group::new(request, [9; 8]);
        let keys: Vec<&str> = group.keys.iter().map(|touched| touched.key.as_str()).collect();
        assert_eq!(keys, ["a", "bb", "ccc", "d"]);
        assert_eq!(group.keys[0].condition, Expected::Stamp(Some(stamp)));
        assert_eq!(group.keys[0].change, Change::Put { place: 1, bytes: Bytes::from_static(b"x"), retention: None });
        assert_eq!(group.keys[1].change, Change::Nothing);
        assert_eq!(group.marked(), Some(&key("ccc")));
        assert_eq!(group.size, 7 + 6);
        let WriteResult::Applied { put_versions, .. } = group.applied(7, StoreTime::from_unix_ms(1)) else { panic!() };
        let expected = [("ccc", 0), ("a", 1)]
            .map(|(text, place)| PutVersion { key: key(text), version: Stamp { sequence: 7, nonce: [9; 8], place }.version() });
        assert_eq!(put_versions, expected);
    }
}
