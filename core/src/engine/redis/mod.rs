//! The engine on Redis (spec: redis.md).

mod answers;
mod bells;
mod blob;
mod client;
pub(crate) mod config;
mod dial;
mod handshake;
pub mod host;
mod lane;
mod link;
mod location;
mod native;
mod project;
mod resp;
mod rounds;
mod script;
mod sharing;
mod slot;
mod tls;
mod transport;
mod url;
mod words;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::{blob::fuzz as fuzz_manifest, location::fuzz as fuzz_record, project::fuzz as fuzz_entry};
#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::{native::fuzz as fuzz_layout, resp::fuzz as fuzz_reply};

use std::sync::Arc;

use self::blob::RedisRelocation;
use self::client::Client;
use self::config::RedisConfig;
use self::host::HostClient;
use self::location::RedisLocation;
use self::project::RedisProject;
pub(crate) use self::url::decoded;
use super::{LocationEngine, ProjectEngine, RelocationEngine, StoreOptions};
use crate::ambient;
use crate::contract::{Error, ProjectId, limits};

/// What carries a store's commands.
pub(crate) enum Source<'a> {
    /// Connections of our own, shared with every store of an equal configuration.
    Native(&'a RedisConfig),
    /// A client that somebody else owns.
    Host(&'a Arc<dyn HostClient>),
}

/// A Location Store's engine; no I/O.
pub(crate) fn location(source: Source<'_>, options: &StoreOptions) -> Result<Arc<dyn LocationEngine>, Error> {
    has_prefix(options)?;
    let client = client(source)?;
    Ok(Arc::new(RedisLocation::new(client, &options.key_prefix, ambient::system())))
}

/// A Relocation Store's engine; no I/O.
pub(crate) fn relocation(source: Source<'_>, options: &StoreOptions) -> Result<Arc<dyn RelocationEngine>, Error> {
    has_prefix(options)?;
    let client = client(source)?;
    Ok(Arc::new(RedisRelocation::new(client, options.key_prefix.clone(), ambient::system())))
}

/// The engine of a project's state and locks; no I/O.
pub(crate) fn project(source: Source<'_>, id: &ProjectId) -> Result<Arc<dyn ProjectEngine>, Error> {
    Ok(Arc::new(RedisProject::new(client(source)?, id, ambient::system())))
}

/// A server may be anybody's, so a store never spreads over its whole key space.
fn has_prefix(options: &StoreOptions) -> Result<(), Error> {
    if options.key_prefix.as_str().is_empty() {
        let said = format!("must be 1..={} bytes of UTF-8 for a store on Redis, got 0", limits::MAX_KEY_PREFIX);
        return Err(Error::argument("keyPrefix", said));
    }
    Ok(())
}

fn client(source: Source<'_>) -> Result<Client, Error> {
    match source {
        Source::Native(config) => {
            config.validate()?;
            Ok(Client::new(Arc::new(sharing::Lease::take(config))))
        }
        Source::Host(client) => Ok(Client::new(Arc::new(host::Hosted::new(Arc::clone(client))))),
    }
}

#[cfg(test)]
mod tests;
