//! A key of a table in memory.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Longest key that lies in the map's own nodes: with its length it fills 48 bytes.
const SHORT: usize = 46;

/// The bytes of a key. Usual ones lie in the nodes of the map, so that a search does not go elsewhere for each key that it
/// compares: with many records, that is what a read costs.
#[derive(Clone)]
pub(super) enum Name {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Arc<[u8]>),
}

impl From<&[u8]> for Name {
    fn from(key: &[u8]) -> Self {
        match u8::try_from(key.len()) {
            Ok(length) if key.len() <= SHORT => {
                let mut bytes = [0; SHORT];
                bytes[..key.len()].copy_from_slice(key);
                Self::Short { length, bytes }
            }
            _ => Self::Long(key.into()),
        }
    }
}

impl std::ops::Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Name").field(&self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_keeps_its_bytes_and_their_order() {
        let keys: Vec<Vec<u8>> =
            (0..=SHORT + 2).flat_map(|length| [vec![0; length], vec![7; length], vec![0xff; length]]).collect();
        for left in &keys {
            assert_eq!(&*Name::from(&left[..]), &left[..]);
            for right in &keys {
                assert_eq!(Name::from(&left[..]).cmp(&Name::from(&right[..])), left.cmp(right));
            }
        }
        assert_eq!(size_of::<Name>(), 48);
    }
}
