//! The engine on Redis (spec: redis.md).

mod blob;
mod client;
pub(crate) mod config;
pub mod host;
mod native;
mod transport;
mod url;

use std::sync::Arc;

use self::blob::RedisRelocation;
use self::client::Client;
use self::config::RedisConfig;
use self::host::HostClient;
pub(crate) use self::url::decoded;
use super::{LocationEngine, RelocationEngine, StoreOptions};
use crate::ambient;
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
    let client = client(source)?;
    Ok(Arc::new(RedisRelocation::new(client, options.key_prefix.clone(), ambient::system())))
}

fn client(source: Source<'_>) -> Result<Client, Error> {
    match source {
        Source::Native(config) => Ok(Client::new(Arc::new(native::Native::new(config.clone())))),
        Source::Host(_) => Err(Error::internal("being built")),
    }
}
