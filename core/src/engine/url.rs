//! Engines are found by URL (spec: architecture.md, Engines are found by URL).

use std::path::PathBuf;
use std::sync::Arc;

use super::redis::config::RedisConfig;
use super::redis::host::HostClient;
use super::{LocationEngine, ProjectEngine, RelocationEngine, embedded, redis};
use crate::contract::{Error, KeyPrefix, ProjectId, limits};

/// Where a store keeps its data.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Endpoint {
    /// In memory: private to the store (`None`), or shared by name in the process.
    Memory(Option<String>),
    /// In a folder.
    File(PathBuf),
    /// On Redis or Valkey.
    Redis(Box<RedisConfig>),
    /// On Redis through a client that somebody else owns.
    Host(Arc<dyn HostClient>),
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The store's name space; needed on Redis, empty by default elsewhere.
    pub key_prefix: KeyPrefix,
    /// The operation timeout in milliseconds, 1..=2^31−1; 5,000 by default.
    pub operation_timeout_ms: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { key_prefix: KeyPrefix::default(), operation_timeout_ms: limits::DEFAULT_OPERATION_TIMEOUT_MS }
    }
}

impl StoreOptions {
    /// The defaults, under a key prefix.
    ///
    /// # Errors
    /// As [`KeyPrefix::new`].
    pub fn with_prefix(prefix: impl Into<String>) -> Result<Self, Error> {
        Ok(Self { key_prefix: KeyPrefix::new(prefix)?, ..Self::default() })
    }
}

impl Endpoint {
    /// Understands `memory:` (private), `memory:name` (shared in the process), `file:/path/to/folder` (`file:///path` too;
    /// names and paths are percent-decoded) and the Redis forms of [`RedisConfig::parse`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: which part is wrong, with the password left out.
    pub fn parse(url: &str) -> Result<Self, Error> {
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory(None)),
            Some(("memory", name)) => local(name, "name").map(|name| Self::Memory(Some(name))),
            Some(("file", path)) => {
                let path = match path.strip_prefix("//").map(|rest| rest.strip_prefix("localhost").unwrap_or(rest)) {
                    Some(rest) if !rest.starts_with('/') => {
                        return Err(Error::argument("url", "names a host; a folder is file:/path or file:///path"));
                    }
                    Some(rest) => rest,
                    None => path,
                };
                if path == "~" || path.starts_with("~/") {
                    let said =
                        "begins with ~, which a shell would expand: write the whole path (or %7E, for a folder of that name)";
                    return Err(Error::argument("url", said));
                }
                match local(path, "path")? {
                    path if path.contains('\0') => Err(Error::argument("url", "has a NUL in its path")),
                    path => Ok(Self::File(PathBuf::from(path))),
                }
            }
            _ => RedisConfig::parse(url).map(|config| Self::Redis(Box::new(config))),
        }
    }

    pub(crate) fn open_location(&self, options: &StoreOptions) -> Result<Arc<dyn LocationEngine>, Error> {
        match self {
            Self::Memory(name) => Ok(embedded::memory_location(name.as_deref(), &options.key_prefix)),
            Self::File(path) => embedded::file_location(path, &options.key_prefix),
            Self::Redis(config) => redis::location(redis::Source::Native(config), options),
            Self::Host(client) => redis::location(redis::Source::Host(client), options),
        }
    }

    pub(crate) fn open_relocation(&self, options: &StoreOptions) -> Result<Arc<dyn RelocationEngine>, Error> {
        match self {
            Self::Memory(name) => Ok(embedded::memory_relocation(name.as_deref(), &options.key_prefix)),
            Self::File(path) => embedded::file_relocation(path, &options.key_prefix),
            Self::Redis(config) => redis::relocation(redis::Source::Native(config), options),
            Self::Host(client) => redis::relocation(redis::Source::Host(client), options),
        }
    }

    pub(crate) fn open_project(&self, id: &ProjectId) -> Result<Arc<dyn ProjectEngine>, Error> {
        match self {
            Self::Memory(name) => Ok(embedded::memory_project(name.as_deref(), id)),
            Self::File(path) => embedded::file_project(path, id),
            Self::Redis(config) => redis::project(redis::Source::Native(config), id),
            Self::Host(client) => redis::project(redis::Source::Host(client), id),
        }
    }
}

fn local(text: &str, part: &str) -> Result<String, Error> {
    if text.contains(['?', '#']) {
        let said = format!("has '?' or '#' in its {part} (write %3F, %23); memory: and file: take no parameters");
        return Err(Error::argument("url", said));
    }
    match redis::decoded(text, part)? {
        text if text.starts_with('/') && part == "name" => {
            Err(Error::argument("url", "must be memory: (private) or memory:name, without slashes in front"))
        }
        text if text.is_empty() => Err(Error::argument("url", format!("has an empty {part}"))),
        text => Ok(text),
    }
}

impl TryFrom<&str> for Endpoint {
    type Error = Error;

    fn try_from(url: &str) -> Result<Self, Error> {
        Self::parse(url)
    }
}

impl TryFrom<&String> for Endpoint {
    type Error = Error;

    fn try_from(url: &String) -> Result<Self, Error> {
        Self::parse(url)
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests;
