//! How a Redis deployment is reached.

use std::fmt;
use std::path::PathBuf;

use crate::contract::{Error, limits};

/// Most replicas that a commit can wait for.
pub(crate) const MAX_ACKED_REPLICAS: u32 = 1_000;

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
    /// Whether to speak RESP3 instead of RESP2. A server that refuses RESP3 is spoken to in RESP2 all the same.
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
        password: Option<Secret>,
    },
    /// Some nodes of a Cluster.
    Cluster(Vec<Address>),
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(pub String);

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host name or IP address (an IPv6 one without brackets), and port.
    Tcp(String, u16),
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(_) => f.write_str("unix socket"),
        }
    }
}

/// TLS settings. Files are read when the first connection is made, and again for each connection, so that renewed
/// certificates are taken up.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// The CA certificates to trust instead of the system's.
    pub ca: Option<Pem>,
    /// The client certificate and its chain; needs `key`.
    pub cert: Option<Pem>,
    /// The client certificate's key; needs `cert`.
    pub key: Option<Pem>,
    /// The name to ask for and to verify instead of the host's.
    pub server_name: Option<String>,
    /// Whether to skip verification of the server's certificate altogether.
    pub insecure: bool,
}

/// Certificates or a key in PEM form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Pem {
    /// A file that holds them.
    File(PathBuf),
    /// The PEM text itself.
    Text(Vec<u8>),
}

impl RedisConfig {
    /// A plain connection to one server with the defaults.
    pub fn single(address: Address) -> Self {
        Self::of(Server::Single(address))
    }

    pub(super) fn of(server: Server) -> Self {
        Self {
            server,
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

    /// Checks what the types leave open; opening a store does it. A parsed URL has passed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: which setting is wrong. Passwords are left out.
    pub fn validate(&self) -> Result<(), Error> {
        self.check().map_err(|(part, problem)| Error::argument(part, problem))
    }

    /// The setting that is wrong, and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let addresses = match &self.server {
            Server::Single(address) => std::slice::from_ref(address),
            Server::Sentinel { sentinels, master, .. } => {
                if master.is_empty() {
                    return Err(("master", "must name the primary".to_owned()));
                }
                sentinels
            }
            Server::Cluster(nodes) => {
                if self.db != 0 {
                    return Err(("db", format!("must be 0 in a Cluster, got {}", self.db)));
                }
                nodes
            }
        };
        if addresses.is_empty() {
            return Err(("host", "must not be empty".to_owned()));
        }
        let single = matches!(self.server, Server::Single(_));
        for address in addresses {
            match address {
                Address::Tcp(host, _) if host.is_empty() => return Err(("host", "must not be empty".to_owned())),
                Address::Tcp(_, 0) => return Err(("port", "must be 1..=65535, got 0".to_owned())),
                Address::Tcp(..) => {}
                Address::Unix(_) if !single => return Err(("host", "must not be a unix socket here".to_owned())),
                Address::Unix(_) if self.tls.is_some() => return Err(("tls", "does not go over a unix socket".to_owned())),
                Address::Unix(path) if path.as_os_str().is_empty() => return Err(("path", "must not be empty".to_owned())),
                Address::Unix(_) => {}
            }
        }
        if let Some(timeout) = self.connect_timeout_ms
            && !(1..=limits::MAX_OPERATION_TIMEOUT_MS).contains(&timeout)
        {
            let said = format!("must be 1..={} ms, got {timeout}", limits::MAX_OPERATION_TIMEOUT_MS);
            return Err(("connect_timeout_ms", said));
        }
        if self.min_acked_replicas > MAX_ACKED_REPLICAS {
            let said = format!("must be 0..={MAX_ACKED_REPLICAS}, got {}", self.min_acked_replicas);
            return Err(("min_acked_replicas", said));
        }
        // What Redis itself takes: no spaces, no line ends, nothing special.
        if let Some(name) = &self.client_name
            && (name.is_empty() || !name.bytes().all(|byte| (b'!'..=b'~').contains(&byte)))
        {
            return Err(("client_name", "must be printable ASCII without spaces".to_owned()));
        }
        self.tls.as_ref().map_or(Ok(()), Tls::check)
    }
}

impl Tls {
    fn check(&self) -> Result<(), (&'static str, String)> {
        match (&self.cert, &self.key) {
            (Some(_), None) => return Err(("tls_key", "must be given with tls_cert".to_owned())),
            (None, Some(_)) => return Err(("tls_cert", "must be given with tls_key".to_owned())),
            _ => {}
        }
        if let Some(name) = &self.server_name
            && rustls::pki_types::ServerName::try_from(name.as_str()).is_err()
        {
            return Err(("tls_server_name", "must be a DNS name or an IP address".to_owned()));
        }
        Ok(())
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, username, password, db, tls, client_name, min_acked_replicas, resp3, .. } = self;
        f.debug_struct("RedisConfig")
            .field("server", server)
            .field("username", username)
            .field("password", &password.as_ref().map(|_| "…"))
            .field("db", db)
            .field("tls", tls)
            .field("client_name", client_name)
            .field("min_acked_replicas", min_acked_replicas)
            .field("resp3", resp3)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ca, cert, key, server_name, insecure } = self;
        f.debug_struct("Tls")
            .field("ca", ca)
            .field("cert", cert)
            .field("key", key)
            .field("server_name", server_name)
            .field("insecure", insecure)
            .finish()
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text(…)"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
