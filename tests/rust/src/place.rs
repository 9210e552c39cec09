//! Where stores are opened: one engine, and a spot in it that no other test uses.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, io, process};

use parking_lot::Mutex;
use tempfile::TempDir;
use zlink_store::{Error, KeyPrefix, LocationStore, Project, ProjectId, ProjectOptions, RelocationStore, StoreOptions};
use zlink_test_servers::{Cluster, ClusterSettings, RedisServer, SentinelSettings, SentinelTrio, Value};

/// Operation timeout of the tests: long, so that a busy machine fails nothing.
pub const TIMEOUT_MS: u64 = 30_000;

/// The engines that every test of this crate runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// In memory.
    Memory,
    /// In a folder.
    File,
    /// On a Redis server.
    Redis,
    /// On Redis servers behind sentinels.
    Sentinel,
    /// On a Redis Cluster.
    Cluster,
}

impl Engine {
    /// The kinds of engines.
    pub const ALL: [Self; 3] = [Self::Memory, Self::File, Self::Redis];
    /// The ways in which several Redis servers are one.
    pub const TOPOLOGIES: [Self; 2] = [Self::Sentinel, Self::Cluster];

    /// What the engine and Rust can do, or need, beyond others (`tests/conformance/README.md`, Capabilities).
    pub fn capabilities(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["json-text"],
            Self::File => &["json-text", "survives-reopen"],
            Self::Redis | Self::Sentinel | Self::Cluster => &["json-text", "survives-reopen", "needs-key-prefix"],
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Redis => "redis",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        })
    }
}

/// Makes places. Holds the Redis servers, which end with it.
#[derive(Debug)]
pub struct Places {
    redis: RedisServer,
    /// How the stores reach it.
    redis_url: String,
    sentinel: OnceLock<SentinelTrio>,
    cluster: OnceLock<Cluster>,
    made: AtomicUsize,
}

impl Places {
    /// Starts what the engines need.
    ///
    /// # Errors
    /// If `redis-server` does not start.
    pub fn start() -> io::Result<Self> {
        let redis = RedisServer::start(&[])?;
        Ok(Self { redis_url: redis.url(), redis, sentinel: OnceLock::new(), cluster: OnceLock::new(), made: AtomicUsize::new(0) })
    }

    /// As [`start`](Self::start); on Redis the stores come as a user with `rules`, in which `{app}` and `{app:` stand for the
    /// keys of the stores.
    ///
    /// # Errors
    /// If `redis-server` does not start, or does not take the rules.
    pub fn start_with_rights(rules: &str) -> io::Result<Self> {
        let mut places = Self::start()?;
        let rules = rules.replace("{app", &format!("{{{}-*", process::id()));
        let words: Vec<&str> =
            ["ACL", "SETUSER", "somebody", "on", ">secret"].into_iter().chain(rules.split_whitespace()).collect();
        match places.redis.say(&words) {
            Value::Error(said) => Err(io::Error::other(said)),
            _ => {
                places.redis_url = places.redis_url.replace("redis://", "redis://somebody:secret@");
                Ok(places)
            }
        }
    }

    /// A new place.
    ///
    /// # Errors
    /// If a temporary folder cannot be made.
    pub fn new_place(&self, engine: Engine) -> io::Result<Place> {
        let unique = format!("{}-{}", process::id(), self.made.fetch_add(1, Ordering::Relaxed));
        let mut place = Place { url: String::new(), in_front: String::new(), folder: None };
        match engine {
            Engine::Memory => place.url = format!("memory:{unique}"),
            Engine::File => {
                let folder = TempDir::new()?;
                place.url = format!("file:{}", folder.path().display());
                place.folder = Some(folder);
            }
            Engine::Redis => {
                place.url.clone_from(&self.redis_url);
                place.in_front = format!("{unique}.");
            }
            Engine::Sentinel => {
                place.url = started(&self.sentinel, || SentinelTrio::with(SentinelSettings::default()))?.url();
                place.in_front = format!("{unique}.");
            }
            Engine::Cluster => {
                place.url = started(&self.cluster, || Cluster::with(ClusterSettings::default()))?.url();
                place.in_front = format!("{unique}.");
            }
        }
        Ok(place)
    }
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

    /// A project of a workspace of this place, or, `exact`, of the workspace of that very name.
    ///
    /// # Errors
    /// As [`ProjectId::new`] and [`Project::open`].
    pub fn project(&self, workspace: &str, exact: bool, project: &str, operation_timeout_ms: u64) -> Result<Project, Error> {
        let in_front = if exact { "" } else { &self.in_front };
        let id = ProjectId::new(format!("{in_front}{workspace}"), project)?;
        Project::open(&self.url, id, ProjectOptions::default().with_operation_timeout_ms(operation_timeout_ms))
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
