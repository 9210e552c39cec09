//! Instants and durations as numbers.

use zlink_store::{Error, Retention, StoreTime, limits};

use crate::options::whole;

/// Unix milliseconds.
pub(crate) fn ms(time: StoreTime) -> i64 {
    // At most 8.64e15.
    i64::try_from(time.unix_ms()).unwrap_or(i64::MAX)
}

/// Milliseconds that something is to live.
pub(crate) fn retention(ms: i64) -> Result<Retention, Error> {
    let limits = format_args!("a whole number of ms in 1..={}", limits::MAX_RETENTION_MS);
    Retention::from_ms(whole("retention", ms, limits)?)
}
