//! Where stores are opened: one engine, and a spot in it that no other test uses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fmt, io, process};

use parking_lot::Mutex;
use tempfile::TempDir;
use zlink_store::{Error, KeyPrefix, LocationStore, Project, ProjectId, ProjectOptions, RelocationStore, StoreOptions};
use zlink_test_servers::{
    Certificates, Cluster, ClusterSettings, RedisServer, SentinelSettings, SentinelTrio, Settings, User, Value, rights,
};

/// Operation timeout of the tests: long, so that a busy machine fails nothing.
pub const TIMEOUT_MS: u64 = 30_000;

/// The engines that every test of this crate runs against, and the ways in which Redis is secured and put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// In memory.
    Memory,
    /// In a folder.
    File,
    /// On a Redis server, without any protection, in RESP2.
    Redis,
    /// On a Redis server by TLS with a client certificate, as a user with the least rights, in RESP3.
    Secured,
    /// On Redis servers behind sentinels, by TLS with a client certificate, as users with the least rights, in RESP2.
    Sentinel,
    /// On a Redis Cluster by TLS with a client certificate, as a user with the least rights, in RESP3.
    Cluster,
    /// On a server of another kind as a user with the least rights: the oldest Redis in RESP2, all others in RESP3.
    Other(&'static str),
}

impl Engine {
    /// The kinds of engines.
    pub const ALL: [Self; 3] = [Self::Memory, Self::File, Self::Redis];
    /// The ways to Redis beside the plain one.
    pub const WAYS: [Self; 3] = [Self::Secured, Self::Sentinel, Self::Cluster];

    /// What the engine and Rust can do, or need, beyond others (`tests/conformance/README.md`, Capabilities).
    pub fn capabilities(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["json-text"],
            Self::File => &["json-text", "survives-reopen"],
            _ => &["json-text", "survives-reopen", "needs-key-prefix"],
        }
    }

    fn speaks_resp3(self) -> bool {
        match self {
            Self::Other(server) => server != OLDEST,
            _ => matches!(self, Self::Secured | Self::Cluster),
        }
    }
}

/// What the oldest Redis is called.
const OLDEST: &str = "redis-6.2";

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::File => f.write_str("file"),
            Self::Redis => f.write_str("redis"),
            Self::Secured => f.write_str("redis-tls-acl-resp3"),
            Self::Sentinel => f.write_str("sentinel-tls-acl"),
            Self::Cluster => f.write_str("cluster-tls-acl-resp3"),
            Self::Other(server) => write!(f, "{server}-acl{}", if self.speaks_resp3() { "-resp3" } else { "" }),
        }
    }
}

/// Makes places. Holds the Redis servers, which end with it.
#[derive(Debug, Default)]
pub struct Places {
    redis: OnceLock<RedisServer>,
    secured: OnceLock<RedisServer>,
    sentinel: OnceLock<SentinelTrio>,
    cluster: OnceLock<Cluster>,
    made: AtomicUsize,
}

impl Places {
    /// A new place. What its engine needs is started with the first one.
    ///
    /// # Errors
    /// If a temporary folder cannot be made, or a server does not start.
    pub fn new_place(&self, engine: Engine) -> io::Result<Place> {
        let unique = format!("{}-{}", process::id(), self.made.fetch_add(1, Ordering::Relaxed));
        let mut place = Place { url: String::new(), in_front: format!("{unique}."), folder: None };
        match engine {
            Engine::Memory => place.url = format!("memory:{unique}"),
            Engine::File => {
                let folder = TempDir::new()?;
                place.url = format!("file:{}", folder.path().display());
                place.folder = Some(folder);
            }
            Engine::Redis => place.url = started(&self.redis, || RedisServer::start(&[]))?.url(),
            Engine::Secured => {
                place.url = as_somebody(&started(&self.secured, || with_somebody(Some(certificates()?), &rules()))?.tls_url());
            }
            Engine::Other(server) => {
                let known = |rule: &String| server != OLDEST || !rule.ends_with("_ro");
                let rules: Vec<_> = rules().into_iter().filter(known).collect();
                place.url = as_somebody(&started(&self.redis, || with_somebody(None, &rules))?.url());
            }
            Engine::Sentinel => place.url = started(&self.sentinel, sentinels)?.url(),
            Engine::Cluster => place.url = started(&self.cluster, nodes)?.url(),
        }
        if matches!(engine, Engine::Memory | Engine::File) {
            place.in_front.clear();
        } else {
            let mark = if place.url.contains('?') { '&' } else { '?' };
            place.url += &format!("{mark}protocol={}", if engine.speaks_resp3() { 3 } else { 2 });
        }
        Ok(place)
    }

    /// A place on Redis for a user of its own, who has the least rights, but one.
    ///
    /// # Errors
    /// If the server does not start, or does not take the rules.
    pub fn new_place_without(&self, rule: &str) -> io::Result<Place> {
        let server = started(&self.redis, || RedisServer::start(&[]))?;
        let unique = format!("{}-{}", process::id(), self.made.fetch_add(1, Ordering::Relaxed));
        let (rules, secret) = (rules(), format!(">{SECRET}"));
        let rules = rules.iter().map(String::as_str).filter(|other| *other != rule);
        let words: Vec<_> = ["ACL", "SETUSER", &unique, "on", &secret].into_iter().chain(rules).collect();
        if let Value::Error(said) = server.say(&words) {
            return Err(io::Error::other(said));
        }
        let url = format!("redis://{unique}:{SECRET}@127.0.0.1:{}", server.port());
        Ok(Place { url, in_front: format!("{unique}."), folder: None })
    }
}

const SOMEBODY: &str = "somebody";
const SECRET: &str = "s3cret";

/// The least rights: on the keys of places, and of the scenarios that name key prefixes of their own.
fn rules() -> Vec<String> {
    let of_places = format!("{{{}-*", process::id());
    let of_scenarios = ["p*", "é*", "R*", "with?space", "?", "a:b/c*"].map(|prefix| format!("~{{{prefix}"));
    let of_scenarios = of_scenarios.iter().flat_map(|prefix| [format!("{prefix}}}:*"), format!("{prefix}:*")]);
    rights::of_data().iter().map(|rule| rule.replace("{app", &of_places)).chain(of_scenarios).collect()
}

fn somebody(rules: &[String]) -> User {
    User { name: SOMEBODY.to_owned(), password: SECRET.to_owned(), rules: rules.join(" ") }
}

fn with_somebody(tls: Option<Arc<Certificates>>, rules: &[String]) -> io::Result<RedisServer> {
    let (tls_clients, password) = (tls.is_some(), Some("of admins".to_owned()));
    RedisServer::with(Settings { tls, tls_clients, password, users: vec![somebody(rules).setting()], ..Settings::default() })
}

/// The URL of a server for its user instead of its default user.
fn as_somebody(url: &str) -> String {
    url.split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1)))
        .map_or_else(|| url.to_owned(), |(scheme, rest)| format!("{scheme}://{SOMEBODY}:{SECRET}@{rest}"))
}

fn certificates() -> io::Result<Arc<Certificates>> {
    Certificates::make().map(Arc::new)
}

fn sentinels() -> io::Result<SentinelTrio> {
    let asks = User { name: "asks".to_owned(), password: "why".to_owned(), rules: rights::of_sentinels().join(" ") };
    SentinelTrio::with(SentinelSettings {
        tls: Some(certificates()?),
        password: Some("of admins".to_owned()),
        user: Some(somebody(&rules())),
        sentinel_password: Some("of sentinels".to_owned()),
        sentinel_user: Some(asks),
        ..SentinelSettings::default()
    })
}

fn nodes() -> io::Result<Cluster> {
    let more = rights::of_cluster().into_iter().map(str::to_owned);
    let rules: Vec<_> = rules().into_iter().chain(more).collect();
    Cluster::with(ClusterSettings {
        tls: Some(certificates()?),
        password: Some("of admins".to_owned()),
        user: Some(somebody(&rules)),
        ..ClusterSettings::default()
    })
}

/// What starts when it is first needed.
fn started<T>(servers: &OnceLock<T>, start: impl FnOnce() -> io::Result<T>) -> io::Result<&T> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _turn = STARTING.lock();
    match servers.get() {
        Some(servers) => Ok(servers),
        None => {
            let new = start()?;
            Ok(servers.get_or_init(|| new))
        }
    }
}

/// One spot: stores opened here with equal prefixes see the same data.
#[derive(Debug)]
pub struct Place {
    url: String,
    in_front: String,
    folder: Option<TempDir>,
}

impl Place {
    /// A place in memory, which needs no server.
    pub fn in_memory() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        Self::at(format!("memory:in-memory-{}", MADE.fetch_add(1, Ordering::Relaxed)))
    }

    /// A place where somebody else's server is, all of it.
    pub fn at(url: String) -> Self {
        Self { url, in_front: String::new(), folder: None }
    }

    /// A location store under a key prefix of this place.
    ///
    /// # Errors
    /// As [`LocationStore::open`].
    pub fn location(&self, prefix: &str) -> Result<LocationStore, Error> {
        LocationStore::open(&self.url, self.options(prefix, TIMEOUT_MS)?)
    }

    /// A relocation store under a key prefix of this place.
    ///
    /// # Errors
    /// As [`RelocationStore::open`].
    pub fn relocation(&self, prefix: &str) -> Result<RelocationStore, Error> {
        RelocationStore::open(&self.url, self.options(prefix, TIMEOUT_MS)?)
    }

    /// A project at `url` of a workspace of this place, or, `exact`, of the workspace of that very name.
    ///
    /// # Errors
    /// As [`ProjectId::new`] and [`Project::open`].
    pub fn project(
        &self,
        url: &str,
        workspace: &str,
        exact: bool,
        project: &str,
        operation_timeout_ms: u64,
    ) -> Result<Project, Error> {
        let in_front = if exact { "" } else { &self.in_front };
        let id = ProjectId::new(format!("{in_front}{workspace}"), project)?;
        Project::open(url, id, ProjectOptions::default().with_operation_timeout_ms(operation_timeout_ms))
    }

    /// The place's URL.
    pub fn url(&self) -> &String {
        &self.url
    }

    /// Options for a key prefix that is put behind the place's own text.
    ///
    /// # Errors
    /// As [`KeyPrefix::new`].
    pub fn options(&self, prefix: &str, operation_timeout_ms: u64) -> Result<StoreOptions, Error> {
        Self::exact_options(&format!("{}{prefix}", self.in_front), operation_timeout_ms)
    }

    /// Options for a key prefix as it is.
    ///
    /// # Errors
    /// As [`KeyPrefix::new`].
    pub fn exact_options(prefix: &str, operation_timeout_ms: u64) -> Result<StoreOptions, Error> {
        Ok(StoreOptions { key_prefix: KeyPrefix::new(prefix)?, operation_timeout_ms })
    }
}
