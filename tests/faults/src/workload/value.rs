//! Values that say which write they are of, so that a reader can tell what it sees, and whether it is whole.

use bytes::Bytes;
use zlink_store::Key;

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The write's id.
    pub(super) id: u64,
    /// The number that goes with it: a counter's, a balance.
    pub(super) number: u64,
}

/// The value that write `said.id` puts under `key`.
pub(super) fn value(key: &Key, said: Said, size: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(16 + key.as_bytes().len() + size);
    bytes.extend_from_slice(&said.id.to_be_bytes());
    bytes.extend_from_slice(&said.number.to_be_bytes());
    bytes.extend_from_slice(key.as_bytes());
    let [.., last] = said.id.to_be_bytes();
    bytes.resize(bytes.len() + size, last);
    bytes.into()
}

/// What a value says, if it is exactly one that was put under `key`.
pub(super) fn said(key: &Key, bytes: &Bytes, size: usize) -> Option<Said> {
    let id = u64::from_be_bytes(*bytes.first_chunk()?);
    let number = u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let said = Said { id, number };
    (value(key, said, size) == *bytes).then_some(said)
}

/// The bytes of a blob: content `variant` of a reference.
pub(super) fn blob(reference: usize, variant: u64, size: usize) -> Bytes {
    let mut random = fastrand::Rng::with_seed(variant * 1_000 + reference as u64);
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    bytes.into()
}
