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
    /// Bytes of the raw form.
    pub(crate) const SIZE: usize = 18;

    /// The form that lies in front of a record.
    pub(crate) fn to_raw(self) -> [u8; Self::SIZE] {
        let mut raw = [0; Self::SIZE];
        raw[..8].copy_from_slice(&self.sequence.to_be_bytes());
        raw[8..16].copy_from_slice(&self.nonce);
        raw[16..].copy_from_slice(&self.place.to_be_bytes());
        raw
    }

    /// What [`to_raw`](Self::to_raw) was made from.
    pub(crate) fn from_raw(raw: &[u8; Self::SIZE]) -> Self {
        let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3, n4, n5, n6, n7, p0, p1] = *raw;
        Self {
            sequence: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            nonce: [n0, n1, n2, n3, n4, n5, n6, n7],
            place: u16::from_be_bytes([p0, p1]),
        }
    }

    /// 24 characters; the only text that stands for this stamp.
    pub(crate) fn version(self) -> Version {
        let text = URL_SAFE_NO_PAD.encode(self.to_raw());
        Version::new(text).unwrap_or_else(|_| unreachable!("24 characters are within the limits"))
    }

    /// The stamp that `version` stands for; `None` for a text that no store issued, which equals no record's version.
    pub(crate) fn parse(version: &Version) -> Option<Self> {
        let mut raw = [0; Self::SIZE];
        // 18 bytes are 24 characters without spare bits, so that no two texts decode alike.
        let decoded = URL_SAFE_NO_PAD.decode_slice(version.as_bytes(), &mut raw).ok()?;
        (decoded == raw.len()).then(|| Self::from_raw(&raw))
    }
}

/// A text is the version of one stamp, or of none.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(data: &[u8]) {
    if let Ok(version) = Version::from_utf8(data)
        && let Some(stamp) = Stamp::parse(&version)
    {
        assert_eq!(stamp.version(), version);
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
