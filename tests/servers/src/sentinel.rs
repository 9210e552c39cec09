//! A primary, its replicas, and three sentinels that watch over them.

use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::access::{Access, User};
use crate::certificates::Certificates;
use crate::redis::{RedisServer, Settings, encoded};
use crate::resp::Value;

/// What the sentinels call the primary.
const MASTER: &str = "mymaster";
/// How often it is looked for what must come: a minute long.
const TRIES: usize = 3_000;
const PAUSE: Duration = Duration::from_millis(20);

/// What the servers are to be like.
#[derive(Clone, Debug)]
pub struct SentinelSettings {
    /// How many replicas.
    pub replicas: usize,
    /// TLS with client certificates: between all servers, and for clients.
    pub tls: Option<Arc<Certificates>>,
    /// The default user's password at the servers that hold data.
    pub password: Option<String>,
    /// As whom clients come there, if not as the default user.
    pub user: Option<User>,
    /// The default user's password at the sentinels.
    pub sentinel_password: Option<String>,
    /// As whom clients come there, if not as the default user.
    pub sentinel_user: Option<User>,
    /// Keeps every write (AOF, synced always).
    pub aof: bool,
    /// How long a server is silent before a sentinel takes it for down.
    pub down_after: Duration,
    /// More settings of the servers that hold data, as on `redis-server`'s command line.
    pub more: Vec<String>,
}

impl Default for SentinelSettings {
    fn default() -> Self {
        Self {
            replicas: 2,
            tls: None,
            password: None,
            user: None,
            sentinel_password: None,
            sentinel_user: None,
            aof: false,
            down_after: Duration::from_secs(1),
            more: Vec::new(),
        }
    }
}

impl SentinelSettings {
    fn of_data(&self) -> Access {
        Access { tls: self.tls.clone(), password: self.password.clone(), user: self.user.clone() }
    }

    fn of_sentinels(&self) -> Access {
        Access { tls: self.tls.clone(), password: self.sentinel_password.clone(), user: self.sentinel_user.clone() }
    }
}

/// Servers under sentinels, killed when dropped.
#[derive(Debug)]
pub struct SentinelTrio {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
    settings: SentinelSettings,
}

impl SentinelTrio {
    /// Starts them and waits until the sentinels know each other and the replicas.
    ///
    /// # Errors
    /// If `redis-server` is not installed or does not start, or they do not find each other.
    pub fn with(settings: SentinelSettings) -> io::Result<Self> {
        let data = |replica_of: Option<u16>| {
            let mut more = settings.more.clone();
            if let Some(password) = settings.password.as_ref().filter(|_| replica_of.is_none()) {
                // It will be a replica after the first failover.
                more.extend(["--masterauth".to_owned(), password.clone()]);
            }
            RedisServer::with(Settings { replica_of, more, aof: settings.aof, ..settings.of_data().settings() })
        };
        let primary = data(None)?;
        let port = primary.known_port();
        let mut servers = vec![primary];
        for _ in 0..settings.replicas {
            servers.push(data(Some(port))?);
        }
        let sentinel = Some(configuration(port, &settings));
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            sentinels.push(RedisServer::with(Settings { sentinel: sentinel.clone(), ..settings.of_sentinels().settings() })?);
        }
        let trio = Self { servers, sentinels, settings };
        trio.found_each_other()?;
        Ok(trio)
    }

    /// The URL with all sentinels, with the users, passwords and certificates.
    pub fn url(&self) -> String {
        let ports: Vec<u16> = self.sentinels.iter().map(RedisServer::known_port).collect();
        self.url_at(&ports)
    }

    /// The URL with sentinels, or proxies, at these ports.
    pub fn url_at(&self, ports: &[u16]) -> String {
        let Access { user, password, .. } = self.settings.of_sentinels();
        let name = user.as_ref().map(|user| format!("sentinel_user={}", encoded(&user.name)));
        let password = user.map(|user| user.password).or(password);
        let secret = password.map(|password| format!("sentinel_password={}", encoded(&password)));
        let more: Vec<_> = name.into_iter().chain(secret).collect();
        self.settings.of_data().url("sentinel", ports, &format!("/{MASTER}"), &more)
    }

    /// The servers that hold data; the first one began as the primary.
    pub fn servers(&mut self) -> &mut [RedisServer] {
        &mut self.servers
    }

    /// One of the servers that hold data.
    pub fn server(&self, place: usize) -> &RedisServer {
        &self.servers[place]
    }

    /// The sentinels.
    pub fn sentinels(&mut self) -> &mut [RedisServer] {
        &mut self.sentinels
    }

    /// Which of the servers is the primary, as the first sentinel that answers says.
    ///
    /// # Panics
    /// If none answers.
    pub fn primary(&self) -> usize {
        let named = self.sentinels.iter().find_map(|sentinel| {
            let answer = sentinel.talk().ok()?.say(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).ok()?;
            let Value::Array(items) = answer else { return None };
            items.get(1)?.text().parse().ok()
        });
        let named: u16 = named.unwrap_or_else(|| panic!("no sentinel names the primary"));
        self.at(named).unwrap_or_else(|| panic!("the sentinels name a server that is not ours"))
    }

    /// Waits until the sentinels name another primary than `old`, and it takes writes.
    ///
    /// # Panics
    /// If that takes more than a minute.
    pub fn promoted(&self, old: usize) -> usize {
        for _ in 0..TRIES {
            let primary = self.primary();
            let role = |answer: Value| matches!(&answer, Value::Array(items) if items[0].text() == "master");
            let answer = self.servers[primary].talk().and_then(|mut talk| talk.say(&["ROLE"]));
            if primary != old && answer.is_ok_and(role) {
                return primary;
            }
            sleep(PAUSE);
        }
        panic!("no replica was promoted");
    }

    /// Waits until every replica of the primary has what it has.
    ///
    /// # Panics
    /// If that takes more than a minute.
    pub fn in_step(&self, replicas: usize) {
        for _ in 0..TRIES {
            let info = self.servers[self.primary()].say(&["INFO", "replication"]).text();
            if info.matches("state=online").count() >= replicas {
                return;
            }
            sleep(PAUSE);
        }
        panic!("the replicas do not follow the primary");
    }

    fn at(&self, port: u16) -> Option<usize> {
        self.servers.iter().position(|server| server.known_port() == port)
    }

    fn found_each_other(&self) -> io::Result<()> {
        let sees = |sentinel: &RedisServer| {
            let told = sentinel.talk().and_then(|mut talk| talk.say(&["SENTINEL", "MASTER", MASTER]));
            let Ok(Value::Array(fields)) = told else { return false };
            let field = |name: &str| {
                fields.chunks_exact(2).find(|pair| pair[0].text() == name).map_or_else(String::new, |pair| pair[1].text())
            };
            field("num-other-sentinels") == "2"
                && field("num-slaves") == self.settings.replicas.to_string()
                && field("flags") == "master"
        };
        for _ in 0..TRIES {
            if self.sentinels.iter().all(sees) {
                return Ok(());
            }
            sleep(PAUSE);
        }
        Err(io::Error::other("the sentinels do not find each other"))
    }
}

fn configuration(port: u16, settings: &SentinelSettings) -> String {
    let down_after = settings.down_after.as_millis();
    let mut lines = vec![
        format!("sentinel monitor {MASTER} 127.0.0.1 {port} 2"),
        format!("sentinel down-after-milliseconds {MASTER} {down_after}"),
        format!("sentinel failover-timeout {MASTER} {}", 10 * down_after),
    ];
    if let Some(password) = &settings.password {
        lines.push(format!("sentinel auth-pass {MASTER} \"{password}\""));
    }
    if let Some(password) = &settings.sentinel_password {
        lines.push(format!("sentinel sentinel-pass \"{password}\""));
    }
    lines.join("\n") + "\n"
}
