//! Entries of project state.

use super::{Error, JsonText, StoreTime, limits};

/// A live entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateEntry {
    /// The value's JSON text.
    pub value: JsonText,
    /// Counts the writes since the entry was created: 1, 2, 3 … After a deletion or expiry it starts again at 1.
    pub version: u64,
    /// When it stops being there, if ever.
    pub expires_at: Option<StoreTime>,
    /// When its version 1 was written.
    pub created_at: StoreTime,
    /// When this version was written.
    pub updated_at: StoreTime,
}

/// How an entry is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateWriteOptions {
    /// 0: only if there is no entry; n > 0: only if the live entry has version n; left out: in any case.
    pub expected_version: Option<u64>,
    /// How long the entry lives from this write on, 1..=31,536,000 s; left out: it does not expire, also when it had an expiry
    /// before.
    pub ttl_seconds: Option<u64>,
}

impl StateWriteOptions {
    /// Checks both numbers.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        check_expected_version(self.expected_version)?;
        match self.ttl_seconds {
            Some(ttl) if !(1..=limits::MAX_TTL_SECONDS).contains(&ttl) => {
                let said = format!("must be a whole number of seconds in 1..={}, got {ttl}", limits::MAX_TTL_SECONDS);
                Err(Error::argument("ttlSeconds", said))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn check_expected_version(expected: Option<u64>) -> Result<(), Error> {
    match expected {
        Some(version) if version > limits::MAX_SAFE_INTEGER => {
            let said = format!("must be a whole number in 0..={}, got {version}", limits::MAX_SAFE_INTEGER);
            Err(Error::argument("expectedVersion", said))
        }
        _ => Ok(()),
    }
}

/// What became of a `set`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum StateSetResult {
    /// Written; the entry as it stands now.
    Stored(StateEntry),
    /// The expected version was not there; nothing changed.
    Conflict,
    /// The project has 100,000 live entries and this would be one more; nothing changed.
    LimitReached,
}

/// What became of a `delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum StateDeleteResult {
    /// There was an entry, and it is gone.
    Deleted,
    /// There was none.
    Missing,
    /// The expected version was not there; nothing changed.
    Conflict,
}
