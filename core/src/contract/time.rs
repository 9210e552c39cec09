//! Instants and durations of the contract, in whole milliseconds.

use std::fmt;

use super::{Error, limits};

/// An instant of the engine's clock: Unix milliseconds, 0..=8.64e15.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreTime(u64);

impl StoreTime {
    /// Takes Unix milliseconds; later instants than 8.64e15 (the last of a JavaScript `Date`) become that one.
    pub fn from_unix_ms(ms: u64) -> Self {
        Self(ms.min(limits::MAX_TIME_MS))
    }

    /// Unix milliseconds.
    pub fn unix_ms(self) -> u64 {
        self.0
    }

    /// This instant + `retention`, saturating at the last instant.
    #[must_use]
    pub fn plus(self, retention: Retention) -> Self {
        Self::from_unix_ms(self.0.saturating_add(retention.0))
    }
}

impl fmt::Debug for StoreTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// How long a record or blob lives: 1..=2^53−1 milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Retention(u64);

impl Retention {
    /// Checks and takes milliseconds.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` outside 1..=2^53−1.
    pub fn from_ms(ms: u64) -> Result<Self, Error> {
        if (1..=limits::MAX_RETENTION_MS).contains(&ms) {
            return Ok(Self(ms));
        }
        Err(Error::argument("retention", format!("must be a whole number of ms in 1..={}, got {ms}", limits::MAX_RETENTION_MS)))
    }

    /// Milliseconds.
    pub fn as_ms(self) -> u64 {
        self.0
    }
}
