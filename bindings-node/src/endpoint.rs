//! What JavaScript says about a store to be opened.

use std::path::PathBuf;
use std::sync::Arc;

use napi_derive::napi;
use zlink_store::packed::wire::number;
use zlink_store::packed::{Outlet, Store};
use zlink_store::{
    Address, Endpoint, Error, LocationStore, Pem, Project, ProjectId, ProjectOptions, RedisConfig, RelocationStore, StoreOptions,
    Tls, limits,
};

use crate::host::JsClient;
use crate::replies::Replies;

/// A store to be opened. Exactly one of `memory`, `path`, `redis` and `client` is there.
#[napi(object, object_to_js = false)]
pub struct StoreSettings {
    /// Whether it is a Relocation Store.
    pub relocation: bool,
    /// The data lives in memory: of this store alone (an empty text), or of all stores in the process that give this name.
    pub memory: Option<String>,
    /// The folder of an embedded store.
    pub path: Option<String>,
    /// Connections of our own.
    pub redis: Option<RedisSettings>,
    /// The number of the user's Redis client.
    pub client: Option<u32>,
    /// The store's name space.
    pub key_prefix: Option<String>,
    /// The operation timeout.
    pub operation_timeout_ms: Option<f64>,
}

/// How a Redis deployment is reached: a URL, what goes beside it, or parts.
#[napi(object, object_to_js = false)]
pub struct RedisSettings {
    /// Any Redis form of a store's URL.
    pub url: Option<String>,
    /// Host name or IP address.
    pub host: Option<String>,
    /// TCP port.
    pub port: Option<f64>,
    /// A unix socket.
    pub path: Option<String>,
    /// The ACL user.
    pub username: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database index.
    pub database: Option<f64>,
    /// What `CLIENT LIST` shows.
    pub name: Option<String>,
    /// Longest time for one connection attempt.
    pub connect_timeout_ms: Option<f64>,
    /// Whether to speak RESP3.
    pub resp3: Option<bool>,
    /// TLS settings.
    pub tls: Option<TlsSettings>,
}

/// TLS settings; certificates and keys are PEM texts.
#[napi(object, object_to_js = false)]
pub struct TlsSettings {
    /// The CA certificates to trust instead of the system's.
    pub ca: Option<String>,
    /// The client certificate and its chain.
    pub cert: Option<String>,
    /// The client certificate's key.
    pub key: Option<String>,
    /// The name to verify instead of the host's.
    pub servername: Option<String>,
    /// Whether to skip verification.
    pub insecure: bool,
}

/// A project to be opened.
#[napi(object, object_to_js = false)]
pub struct ProjectSettings {
    /// Any URL of a store.
    pub url: String,
    /// The workspace.
    pub workspace: String,
    /// The project.
    pub project: String,
    /// The operation timeout.
    pub operation_timeout_ms: Option<f64>,
}

impl ProjectSettings {
    pub(crate) fn open(self) -> Result<Store, Error> {
        let id = ProjectId::new(self.workspace, self.project)?;
        let mut options = ProjectOptions::default();
        if let Some(ms) = self.operation_timeout_ms {
            options = options.with_operation_timeout_ms(operation_timeout(ms)?);
        }
        Project::open(&self.url, id, options).map(Store::Project)
    }
}

fn operation_timeout(ms: f64) -> Result<u64, Error> {
    let timeout = whole(ms).filter(|ms| (1..=limits::MAX_OPERATION_TIMEOUT_MS).contains(ms));
    timeout.ok_or_else(|| {
        let said = format!("must be a whole number in 1..={}, got {ms}", limits::MAX_OPERATION_TIMEOUT_MS);
        Error::argument("operationTimeoutMs", said)
    })
}

impl StoreSettings {
    pub(crate) fn open(self, outlet: Outlet, replies: &Arc<Replies>) -> Result<Store, Error> {
        let mut options = StoreOptions::with_prefix(self.key_prefix.unwrap_or_default())?;
        if let Some(ms) = self.operation_timeout_ms {
            options.operation_timeout_ms = operation_timeout(ms)?;
        }
        let endpoint = match (self.path, self.redis, self.client) {
            (Some(path), ..) => Endpoint::File(PathBuf::from(path)),
            (_, Some(redis), _) => Endpoint::Redis(Box::new(redis.config()?)),
            (.., Some(number)) => Endpoint::Host(Arc::new(JsClient { outlet, replies: Arc::clone(replies), number })),
            _ => Endpoint::Memory(self.memory.filter(|name| !name.is_empty())),
        };
        Ok(if self.relocation {
            Store::Relocation(RelocationStore::open(endpoint, options)?)
        } else {
            Store::Location(LocationStore::open(endpoint, options)?)
        })
    }
}

impl RedisSettings {
    /// A URL gives the address, and goes before what stands beside it.
    fn config(self) -> Result<RedisConfig, Error> {
        let mut config = match &self.url {
            Some(url) => RedisConfig::parse(url)?,
            None => RedisConfig::single(self.address()?),
        };
        if config.username.is_none() && config.password.is_none() {
            config.username = self.username;
            config.password = self.password;
        }
        if let Some(database) =
            self.database.map(|number| within("clientOptions.database", number, 0, u32::MAX.into())).transpose()?
            && config.db == 0
        {
            config.db = u32::try_from(database).unwrap_or_default();
        }
        config.client_name = config.client_name.or(self.name);
        let longest = limits::MAX_OPERATION_TIMEOUT_MS;
        let timeout =
            self.connect_timeout_ms.map(|ms| within("clientOptions.socket.connectTimeout", ms, 1, longest)).transpose()?;
        config.connect_timeout_ms = config.connect_timeout_ms.or(timeout);
        config.resp3 |= self.resp3.unwrap_or_default();
        if let Some(tls) = self.tls {
            if self.url.is_some() && config.tls.is_none() {
                return Err(Error::argument(
                    "clientOptions.socket.tls",
                    "must not be true beside a url without TLS (write rediss://)",
                ));
            }
            config.tls = Some(tls.beside(config.tls.unwrap_or_default()));
        }
        config.validate().map_err(in_node_words)?;
        Ok(config)
    }

    fn address(&self) -> Result<Address, Error> {
        if let Some(path) = &self.path {
            return Ok(Address::Unix(PathBuf::from(path)));
        }
        let port = within("clientOptions.socket.port", self.port.unwrap_or(6379.0), 1, u16::MAX.into())?;
        let host = self.host.clone().unwrap_or_else(|| "localhost".to_owned());
        Ok(Address::Tcp(host, u16::try_from(port).unwrap_or_default()))
    }
}

impl TlsSettings {
    fn beside(self, url: Tls) -> Tls {
        let pem = |text: Option<String>| text.map(|text| Pem::Text(text.into_bytes()));
        Tls {
            ca: url.ca.or(pem(self.ca)),
            cert: url.cert.or(pem(self.cert)),
            key: url.key.or(pem(self.key)),
            server_name: url.server_name.or(self.servername),
            insecure: url.insecure || self.insecure,
        }
    }
}

fn within(argument: &str, number: f64, least: u64, most: u64) -> Result<u64, Error> {
    whole(number)
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| Error::argument(argument, format!("must be a whole number in {least}..={most}, got {number}")))
}

/// A number of JavaScript as a whole one, if it is exactly one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
fn whole(given: f64) -> Option<u64> {
    let exact = given.fract() == 0.0 && (0.0..=number(limits::MAX_RETENTION_MS)).contains(&given);
    exact.then_some(given as u64)
}

/// The core's names of Redis settings, as a user of Node.js knows them.
fn in_node_words(error: Error) -> Error {
    let Some(name) = error.argument_name() else { return error };
    let ours = match name {
        "host" => "clientOptions.socket.host",
        "port" => "clientOptions.socket.port",
        "path" => "clientOptions.socket.path",
        "tls" => "clientOptions.socket.tls",
        "db" => "clientOptions.database",
        "client_name" => "clientOptions.name",
        _ => return error,
    };
    let problem = error.message().strip_prefix(name).unwrap_or(error.message()).trim_start();
    Error::argument(ours, problem)
}
