//! The engine on Redis (spec: redis.md).

mod client;
pub(crate) mod config;
pub mod host;
mod native;
mod transport;
mod url;

use std::sync::Arc;

use self::config::RedisConfig;
use self::host::HostClient;
pub(crate) use self::url::decoded;
use super::{LocationEngine, RelocationEngine, StoreOptions};
use crate::contract::Error;

/// What carries a store's commands.
pub(crate) enum Source<'a> {
    /// Connections of our own, shared with every store of an equal configuration.
    Native(&'a RedisConfig),
    /// A client that somebody else owns.
    Host(&'a Arc<dyn HostClient>),
}

/// A Location Store's engine; no I/O.
pub(crate) fn location(source: Source<'_>, options: &StoreOptions) -> Result<Arc<dyn LocationEngine>, Error> {
    let _ = (source, options);
    Err(Error::internal("being built"))
}

/// A Relocation Store's engine; no I/O.
pub(crate) fn relocation(source: Source<'_>, options: &StoreOptions) -> Result<Arc<dyn RelocationEngine>, Error> {
    let _ = (source, options);
    Err(Error::internal("being built"))
}
