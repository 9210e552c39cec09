//! The text form of a version, the same for both engines: commit sequence, commit nonce, place of the put in its commit.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::contract::Version;

/// What makes a put unique for ever: the sequence grows with every commit, the nonce is fresh for each commit (so a sequence
/// that runs again after lost writes gives other versions), the place tells the puts of one commit apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) sequence: u64,
    pub(crate) nonce: [u8; 8],
    pub(crate) place: u16,
}

impl Stamp {
    /// 24 characters; the only text that stands for this stamp.
    pub(crate) fn version(self) -> Version {
        let mut raw = [0; 18];
        raw[..8].copy_from_slice(&self.sequence.to_be_bytes());
        raw[8..16].copy_from_slice(&self.nonce);
        raw[16..].copy_from_slice(&self.place.to_be_bytes());
        let text = URL_SAFE_NO_PAD.encode(raw);
        Version::new(text).unwrap_or_else(|_| unreachable!("24 characters are within the limits"))
    }

    /// The stamp that `version` stands for; `None` for a text that no store issued, which equals no record's version.
    pub(crate) fn parse(version: &Version) -> Option<Self> {
        let mut raw = [0; 18];
        // 18 bytes are 24 characters without spare bits, so that no two texts decode alike.
        let decoded = URL_SAFE_NO_PAD.decode_slice(version.as_bytes(), &mut raw).ok()?;
        if decoded != raw.len() {
            return None;
        }
        let (sequence, rest) = raw.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (place, _) = rest.split_first_chunk()?;
        Some(Self { sequence: u64::from_be_bytes(*sequence), nonce: *nonce, place: u16::from_be_bytes(*place) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_for_its_stamp_alone() {
        let stamp = Stamp { sequence: u64::MAX - 1, nonce: *b"\x00\xff234567", place: 2_047 };
        let version = stamp.version();
        assert_eq!(version.as_str().len(), 24);
        assert_eq!(Stamp::parse(&version), Some(stamp));
        for other in ["", "x", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA\u{e9}"] {
            if let Ok(other) = Version::new(other) {
                assert_eq!(Stamp::parse(&other), None, "{other}");
            }
        }
    }
}
