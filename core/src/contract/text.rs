//! Opaque texts: keys, versions, cursors, references and key prefixes. Each knows its limits and nothing else.

use std::fmt;
use std::sync::Arc;

use super::{Error, limits};

/// A text that was checked when it was made.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = $what]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}
pub(super) use checked_text;

macro_rules! opaque_text {
    ($(#[$doc:meta])* $name:ident, $argument:literal, $min:literal ..= $max:expr) => {
        checked_text! { $(#[$doc])* $name, "The text." }

        impl $name {
            /// Checks the length and takes the text as it is: no normalisation, byte order, case-sensitive.
            ///
            /// # Errors
            /// `INVALID_ARGUMENT` if the text is shorter or longer than the limit.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, Error> {
                let text = text.into();
                check_length($argument, text.len(), $min, $max)?;
                Ok(Self(text))
            }

            /// Like [`new`](Self::new), from bytes that must be UTF-8.
            ///
            /// # Errors
            /// `INVALID_ARGUMENT` if the bytes are no UTF-8 or outside the limit.
            pub fn from_utf8(bytes: &[u8]) -> Result<Self, Error> {
                let text = std::str::from_utf8(bytes)
                    .map_err(|_| Error::argument($argument, "must be valid Unicode (no lone surrogate)"))?;
                Self::new(text)
            }

            /// The text's bytes.
            pub fn as_bytes(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }
    };
}

opaque_text! {
    /// A key of the Location Store: 1..=1,024 bytes of UTF-8, any code point, compared byte by byte.
    Key, "key", 1..=limits::MAX_KEY
}
opaque_text! {
    /// A version issued by a store: 1..=4,096 bytes of UTF-8, compared as exact text and otherwise opaque.
    Version, "version", 1..=limits::MAX_VERSION
}
opaque_text! {
    /// Where a scan goes on: 1..=4,096 bytes of UTF-8, issued by a store.
    Cursor, "cursor", 1..=limits::MAX_VERSION
}
opaque_text! {
    /// A blob's reference, issued by the caller: 1..=4,096 bytes of UTF-8.
    BlobReference, "reference", 1..=limits::MAX_REFERENCE
}

/// The name space of one store within an engine: at most 256 bytes of UTF-8 without `{` and `}`.
///
/// Embedded stores may leave it empty (the default); Redis stores may not, which opening one checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyPrefix(String);

impl KeyPrefix {
    /// Checks and takes a key prefix.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is longer than 256 bytes or holds a brace (a brace would choose the slot of a Redis Cluster).
    pub fn new(prefix: impl Into<String>) -> Result<Self, Error> {
        let prefix = prefix.into();
        check_length("keyPrefix", prefix.len(), 0, limits::MAX_KEY_PREFIX)?;
        if prefix.contains(['{', '}']) {
            return Err(Error::argument("keyPrefix", "must not contain '{' or '}'"));
        }
        Ok(Self(prefix))
    }

    /// The prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(super) fn check_length(argument: &str, length: usize, min: usize, max: usize) -> Result<(), Error> {
    if (min..=max).contains(&length) {
        return Ok(());
    }
    Err(Error::argument(argument, format!("must be {min}..={max} bytes of UTF-8, got {length}")))
}
