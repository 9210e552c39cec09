//! Where a key lies in a Cluster.

use crc::{CRC_16_XMODEM, Crc};

/// A slot of a Cluster. What has no key may go to any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot(u16);

/// How many there are.
pub(super) const SLOTS: u16 = 16_384;

static CHECKSUM: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

impl Slot {
    /// The slot of a key: that of its hash tag, if it has one.
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(CHECKSUM.checksum(tag(key).unwrap_or(key)) % SLOTS)
    }

    pub(super) fn number(self) -> u16 {
        self.0
    }
}

/// What stands between the first `{` and the first `}` behind it, unless that is nothing.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let (_, behind) = key.split_at(key.iter().position(|byte| *byte == b'{')?);
    let inside = &behind[1..];
    let inside = &inside[..inside.iter().position(|byte| *byte == b'}')?];
    (!inside.is_empty()).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_as_every_cluster_counts_them() {
        // What CLUSTER KEYSLOT says of these.
        for (key, slot) in [
            ("", 0),
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{foo}.bar", 12_182),
            ("x{foo}{bar}", 12_182),
            ("foo{}{bar}", 8_363),
            ("foo{{bar}}zap", 4_015),
            ("{", 4_092),
            ("}{a}", 15_495),
        ] {
            assert_eq!(Slot::of(key.as_bytes()), Slot(slot), "{key}");
        }
    }
}
