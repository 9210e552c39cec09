//! Continuation tokens: the store's cursor, bound to its query by a hash of both, as base64url text.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::contract::{Cursor, Error};

/// The longest token, in bytes.
pub(super) const MAX_TOKEN: usize = 8_192;
const FORMAT: u8 = 1;
const HASH: usize = 16;

/// What a query asks for: its name and its filter's fields.
#[derive(Clone)]
pub(super) struct Fingerprint(blake3::Hasher);

impl Fingerprint {
    pub(super) fn of(query: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(query.as_bytes());
        Self(hasher)
    }

    /// Adds a field of the filter. One that is not set is not one that is empty.
    pub(super) fn field(mut self, field: Option<&[u8]>) -> Self {
        match field {
            None => _ = self.0.update(&[0]),
            Some(bytes) => _ = self.0.update(&[1]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes),
        }
        self
    }

    fn with(&self, cursor: &str) -> [u8; HASH] {
        let mut hasher = self.0.clone();
        hasher.update(cursor.as_bytes());
        let mut hash = [0; HASH];
        hasher.finalize_xof().fill(&mut hash);
        hash
    }

    pub(super) fn token(&self, cursor: &Cursor) -> String {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.with(cursor.as_str()));
        bytes.extend(cursor.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// # Errors
    /// `INVALID_ARGUMENT` if the token is none of this query's.
    pub(super) fn cursor(&self, token: &str) -> Result<Cursor, Error> {
        let parsed = || {
            let bytes = (token.len() <= MAX_TOKEN).then(|| URL_SAFE_NO_PAD.decode(token).ok())??;
            let (&FORMAT, rest) = bytes.split_first()? else { return None };
            let (hash, cursor) = rest.split_at_checked(HASH)?;
            let cursor = Cursor::from_utf8(cursor).ok()?;
            (self.with(cursor.as_str()) == hash).then_some(cursor)
        };
        parsed().ok_or_else(|| Error::argument("continuationToken", "must be what the page before of the same query gave"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_its_query_alone() {
        let query = Fingerprint::of("topology").field(Some(b"mesh")).field(None);
        let cursor = Cursor::new("c".repeat(4_096)).unwrap();
        let token = query.token(&cursor);
        assert!(token.len() <= MAX_TOKEN);
        assert_eq!(query.cursor(&token).unwrap(), cursor);
        let others = [
            Fingerprint::of("objects").field(Some(b"mesh")).field(None),
            Fingerprint::of("topology").field(Some(b"mesi")).field(None),
            Fingerprint::of("topology").field(None).field(Some(b"mesh")),
            Fingerprint::of("topology").field(Some(b"mesh")).field(Some(b"")),
        ];
        for other in others {
            assert_eq!(other.cursor(&token).unwrap_err().argument_name(), Some("continuationToken"));
        }
    }

    #[test]
    fn whatever_is_changed_of_a_token_is_noticed() {
        let query = Fingerprint::of("topology");
        let token = query.token(&Cursor::new("cursor").unwrap());
        for place in 0..token.len() {
            let mut bent = token.clone().into_bytes();
            bent[place] = if bent[place] == b'A' { b'B' } else { b'A' };
            assert!(query.cursor(std::str::from_utf8(&bent).unwrap()).is_err(), "{place}");
            assert!(query.cursor(&token[..place]).is_err(), "{place}");
        }
        for wrong in ["", "x", "\u{e4}", &"A".repeat(MAX_TOKEN + 1)] {
            assert!(query.cursor(wrong).is_err());
        }
    }
}
