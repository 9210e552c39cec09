//! The text form of a scan's cursor, the same for both engines.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::contract::{Cursor, Key};

const FORMAT: u8 = 1;
const FIXED: usize = 1 + 8 + 16 + 8 + 8;
const CHECK: usize = 8;

/// Where a scan goes on. At most 1,500 characters, so that callers can wrap it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The snapshot's id.
    pub(crate) snapshot: [u8; 16],
    /// The commit sequence that the snapshot fixed.
    pub(crate) sequence: u64,
    /// The last key that was given out; the page starts behind it.
    pub(crate) last: Key,
}

impl Position {
    /// `store` names the store (engine, place and key prefix, the same from every process), `prefix` is the scan's.
    pub(crate) fn cursor(&self, store: &[u8], prefix: &str) -> Cursor {
        let mut raw = Vec::with_capacity(FIXED + self.last.as_bytes().len() + CHECK);
        raw.push(FORMAT);
        raw.extend(hash(store));
        raw.extend(self.snapshot);
        raw.extend(self.sequence.to_be_bytes());
        raw.extend(hash(prefix.as_bytes()));
        raw.extend(self.last.as_bytes());
        raw.extend(hash(&raw));
        Cursor::new(URL_SAFE_NO_PAD.encode(raw)).unwrap_or_else(|_| unreachable!("1,097 bytes are within the limits"))
    }

    /// `None` for a cursor that this store did not issue for this prefix: the scan is `expired`.
    pub(crate) fn parse(cursor: &Cursor, store: &[u8], prefix: &str) -> Option<Self> {
        let raw = URL_SAFE_NO_PAD.decode(cursor.as_bytes()).ok()?;
        let (body, check) = raw.split_last_chunk::<CHECK>()?;
        if *check != hash(body) {
            return None;
        }
        let (fixed, last) = body.split_at_checked(FIXED)?;
        let (format, fixed) = fixed.split_first()?;
        let (of_store, fixed) = fixed.split_first_chunk::<8>()?;
        let (snapshot, fixed) = fixed.split_first_chunk::<16>()?;
        let (sequence, fixed) = fixed.split_first_chunk::<8>()?;
        if *format != FORMAT || *of_store != hash(store) || fixed != hash(prefix.as_bytes()) {
            return None;
        }
        let last = Key::from_utf8(last).ok()?;
        Some(Self { snapshot: *snapshot, sequence: u64::from_be_bytes(*sequence), last })
    }
}

fn hash(bytes: &[u8]) -> [u8; 8] {
    let mut short = [0; 8];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut short);
    short
}

/// A text is the cursor of one place in one scan, or of none.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(data: &[u8]) {
    let taken = |text: &[u8]| {
        let Ok(cursor) = Cursor::from_utf8(text) else { return };
        if let Some(position) = Position::parse(&cursor, b"store", "pre") {
            assert_eq!(position.cursor(b"store", "pre"), cursor);
            assert_eq!(Position::parse(&cursor, b"store", "other"), None);
            assert_eq!(Position::parse(&cursor, b"other", "pre"), None);
        }
    };
    taken(data);
    // With a checksum that holds, and with the names of store and prefix too.
    let checked = |body: &[u8]| taken(URL_SAFE_NO_PAD.encode([body, &hash(body)].concat()).as_bytes());
    checked(data);
    if let Some((fields, last)) = data.split_first_chunk::<24>() {
        checked(&[&[FORMAT][..], &hash(b"store"), fields, &hash(b"pre"), last].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_its_own_only_and_whole() {
        let last = Key::new("k".repeat(1_024)).unwrap();
        let position = Position { snapshot: [7; 16], sequence: 9, last };
        let cursor = position.cursor(b"store", "pre");
        assert!(cursor.as_str().len() < 3_072, "callers wrap a cursor");
        assert_eq!(Position::parse(&cursor, b"store", "pre"), Some(position));
        assert_eq!(Position::parse(&cursor, b"other", "pre"), None);
        assert_eq!(Position::parse(&cursor, b"store", "pr"), None);
        for at in 0..cursor.as_str().len() {
            let mut bent = cursor.as_bytes().to_vec();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(Position::parse(&Cursor::from_utf8(&bent).unwrap(), b"store", "pre"), None, "bent at {at}");
            if at > 0 {
                assert_eq!(Position::parse(&Cursor::from_utf8(&bent[..at]).unwrap(), b"store", "pre"), None);
            }
        }
    }
}
