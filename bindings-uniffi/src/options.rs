//! How stores are opened, and numbers on their way in.

use zlink_store::{Error, KeyPrefix, limits};

use crate::error::StoreError;

/// How a store is opened.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct StoreOptions {
    /// The store's name space, at most 256 bytes of UTF-8 without braces; needed on Redis.
    #[uniffi(default = "")]
    pub key_prefix: String,
    /// The operation timeout in milliseconds, 1..=2^31−1; 5,000 if left out.
    #[uniffi(default = None)]
    pub operation_timeout_ms: Option<i64>,
}

/// How a project is opened.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct ProjectOptions {
    /// The operation timeout in milliseconds, 1..=2^31−1; 5,000 if left out.
    #[uniffi(default = None)]
    pub operation_timeout_ms: Option<i64>,
}

impl StoreOptions {
    pub(crate) fn into_core(self) -> Result<zlink_store::StoreOptions, StoreError> {
        let mut options = zlink_store::StoreOptions { key_prefix: KeyPrefix::new(self.key_prefix)?, ..Default::default() };
        if let Some(ms) = self.operation_timeout_ms {
            options.operation_timeout_ms = operation_timeout(ms)?;
        }
        Ok(options)
    }
}

impl ProjectOptions {
    pub(crate) fn into_core(self) -> Result<zlink_store::ProjectOptions, StoreError> {
        let options = zlink_store::ProjectOptions::default();
        Ok(match self.operation_timeout_ms {
            Some(ms) => options.with_operation_timeout_ms(operation_timeout(ms)?),
            None => options,
        })
    }
}

fn operation_timeout(ms: i64) -> Result<u64, Error> {
    whole("operationTimeout", ms, format_args!("1..={} ms", limits::MAX_OPERATION_TIMEOUT_MS))
}

/// Numbers come signed, so that a negative one is told apart here; the other limits are the core's to check.
pub(crate) fn whole(argument: &str, given: i64, limits: impl std::fmt::Display) -> Result<u64, Error> {
    u64::try_from(given).map_err(|_| Error::argument(argument, format!("must be {limits}, got {given}")))
}

/// A number that may be left out.
pub(crate) fn optional(argument: &str, given: Option<i64>, limits: impl std::fmt::Display) -> Result<Option<u64>, Error> {
    given.map(|given| whole(argument, given, limits)).transpose()
}
