//! How a Redis deployment is reached.

use std::fmt;
use std::path::PathBuf;

use crate::contract::Error;

/// Everything that says how a Redis deployment is reached. Stores with equal configurations share their connections.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RedisConfig {
    /// Which server or servers.
    pub server: Server,
    /// The ACL user; `None` for the default user.
    pub username: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database index.
    pub db: u32,
    /// TLS; `None` for plain connections.
    pub tls: Option<Tls>,
    /// Longest time for one connection attempt in milliseconds; the operation timeout bounds it too.
    pub connect_timeout_ms: Option<u64>,
    /// The name that `CLIENT LIST` shows, where the user may set it.
    pub client_name: Option<String>,
    /// Whether a `maxmemory-policy` that loses records is meant, so that opening does not warn.
    pub allow_eviction: bool,
    /// After a commit, wait for that many replicas; with fewer the outcome is `unknown`.
    pub min_acked_replicas: u32,
    /// Whether to speak RESP3 instead of RESP2.
    pub resp3: bool,
}

/// Which server or servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Server {
    /// One server.
    Single(Address),
    /// Sentinels that know the primary by name.
    Sentinel {
        /// The sentinels.
        sentinels: Vec<Address>,
        /// The primary's name.
        master: String,
        /// The ACL user at the sentinels.
        username: Option<String>,
        /// The password at the sentinels.
        password: Option<String>,
    },
    /// Some nodes of a Cluster.
    Cluster(Vec<Address>),
}

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host name or IP address, and port.
    Tcp(String, u16),
    /// A unix socket.
    Unix(PathBuf),
}

/// TLS settings; certificates and keys are PEM.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// The CA to trust instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// The client certificate.
    pub cert: Option<Vec<u8>>,
    /// The client certificate's key.
    pub key: Option<Vec<u8>>,
    /// The name to verify instead of the host's.
    pub server_name: Option<String>,
    /// Whether to skip verification altogether.
    pub insecure: bool,
}

impl RedisConfig {
    /// A plain connection to one server with the defaults.
    pub fn single(address: Address) -> Self {
        Self {
            server: Server::Single(address),
            username: None,
            password: None,
            db: 0,
            tls: None,
            connect_timeout_ms: None,
            client_name: None,
            allow_eviction: false,
            min_acked_replicas: 0,
            resp3: false,
        }
    }

    /// Understands the Redis forms of a store's URL.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: which part is wrong, with the password left out.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let rest = url.strip_prefix("redis://").ok_or_else(|| Error::argument("url", "has an unknown scheme"))?;
        let (host, port) = rest.split_once(':').unwrap_or((rest, "6379"));
        let port = port.parse().map_err(|_| Error::argument("url", "has a bad port"))?;
        Ok(Self::single(Address::Tcp(host.to_owned(), port)))
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig").field("db", &self.db).field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}
