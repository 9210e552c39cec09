//! The manifest of a blob: fields of fixed places, which the scripts read too.

use super::keys::{Mark, Upload};
use crate::contract::{StoreTime, limits};

/// Bytes of one segment. A little less than 256 KiB, so that the server's allocator takes 256 KiB for it: for a string of 256
/// KiB, which has a header of its own there, it takes 320 (Redis 7.0 with jemalloc: 327,752 against 262,216 bytes a segment).
pub(super) const SEGMENT: usize = 256 * 1_024 - 64;

const MAGIC: &[u8] = b"ZLB";
const FORMAT: u8 = b'1';
/// Bytes of a manifest. Times and sizes are decimal digits: 8.64e15 has 16 of them, and Lua reads them exactly.
pub(super) const LENGTH: usize = 133;

/// What a manifest says.
#[derive(Clone)]
pub(super) struct Manifest {
    pub(super) upload: Upload,
    /// BLAKE3 of the blob; with the size it stands for the bytes.
    pub(super) digest: [u8; 32],
    pub(super) size: usize,
    /// Bytes of every segment but the last.
    pub(super) segment: usize,
    pub(super) expires: StoreTime,
    /// Which change set the expiry last.
    pub(super) mark: Mark,
}

/// What lies under a manifest's key.
pub(super) enum Stored {
    Ours(Manifest),
    /// Written by a layout that this version does not know.
    Newer,
    /// Not written by us.
    Foreign,
}

impl Stored {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let Some((format, rest)) = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first) else { return Self::Foreign };
        if *format != FORMAT {
            return Self::Newer;
        }
        Manifest::parse(rest).map_or(Self::Foreign, Self::Ours)
    }
}

impl Manifest {
    fn parse(mut rest: &[u8]) -> Option<Self> {
        let rest = &mut rest;
        let manifest = Self {
            upload: Upload(take(rest)?),
            digest: take(rest)?,
            size: usize::try_from(number::<8>(rest)?).ok()?,
            segment: usize::try_from(number::<8>(rest)?).ok()?,
            expires: expires(rest)?,
            mark: Mark(take(rest)?),
        };
        (manifest.size <= limits::MAX_BLOB && manifest.segment > 0).then_some(manifest)
    }

    pub(super) fn is_live(&self, now: StoreTime) -> bool {
        self.expires > now
    }

    pub(super) fn segments(&self) -> usize {
        segments(self.size, self.segment)
    }
}

/// How many segments a blob has. An empty one has one, too.
pub(super) fn segments(size: usize, segment: usize) -> usize {
    size.div_ceil(segment).max(1)
}

/// Between the sizes and the expiry stand the times of the commit and of the last change, for whoever repeats either.
fn expires(rest: &mut &[u8]) -> Option<StoreTime> {
    let [_committed, _changed, expires] = [number::<16>(rest)?, number::<16>(rest)?, number::<16>(rest)?];
    Some(StoreTime::from_unix_ms(expires))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}

fn number<const N: usize>(rest: &mut &[u8]) -> Option<u64> {
    let digits = take::<N>(rest)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

/// What lies under a manifest's key is foreign, or newer, or a manifest that a reader can follow.
#[cfg(any(test, fuzzing))]
pub(in crate::engine) fn fuzz(raw: &[u8]) {
    let Stored::Ours(manifest) = Stored::parse(raw) else { return };
    assert!(raw.starts_with(b"ZLB1") && raw.len() >= LENGTH);
    let segments = manifest.segments();
    assert!((1..=limits::MAX_BLOB).contains(&segments), "{segments} segments");
    assert!((segments - 1) * manifest.segment <= manifest.size && segments * manifest.segment >= manifest.size);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(size: &str, expires: &str) -> Vec<u8> {
        let mut bytes = b"ZLB1".to_vec();
        bytes.extend_from_slice(&[b'u'; 22]);
        bytes.extend_from_slice(&[7; 32]);
        bytes.extend_from_slice(size.as_bytes());
        bytes.extend_from_slice(b"00262080");
        bytes.extend_from_slice(b"0001700000000000");
        bytes.extend_from_slice(b"0001700000000001");
        bytes.extend_from_slice(expires.as_bytes());
        bytes.extend_from_slice(&[b'm'; 11]);
        bytes
    }

    #[test]
    fn a_manifest_says_what_was_written() {
        let bytes = manifest("00262081", "8640000000000000");
        assert_eq!(bytes.len(), LENGTH);
        let Stored::Ours(manifest) = Stored::parse(&bytes) else { panic!("not ours") };
        assert_eq!((manifest.size, manifest.segment, manifest.segments()), (262_081, SEGMENT, 2));
        assert_eq!(manifest.expires.unix_ms(), limits::MAX_TIME_MS);
        assert!(manifest.is_live(StoreTime::from_unix_ms(limits::MAX_TIME_MS - 1)));
        assert!(!manifest.is_live(StoreTime::from_unix_ms(limits::MAX_TIME_MS)));
    }

    #[test]
    fn what_is_not_ours_is_never_read_as_ours() {
        let good = manifest("00000001", "0001700000000002");
        for cut in 0..good.len() {
            assert!(!matches!(Stored::parse(&good[..cut]), Stored::Ours(_)), "cut at {cut}");
        }
        assert!(matches!(Stored::parse(b""), Stored::Foreign));
        assert!(matches!(Stored::parse(b"hello"), Stored::Foreign));
        assert!(matches!(Stored::parse(b"ZLB2 whatever comes"), Stored::Newer));
        assert!(matches!(Stored::parse(&manifest("+0000001", "0001700000000002")), Stored::Foreign));
        assert!(matches!(Stored::parse(&manifest("99999999", "0001700000000002")), Stored::Foreign));
    }
}
