//! A Cluster of three shards, on the loopback address.

use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::access::{Access, User};
use crate::certificates::Certificates;
use crate::redis::{RedisServer, Settings};
use crate::resp::Value;

const SHARDS: usize = 3;
const SLOTS: usize = 16_384;
/// How often it is looked for what must come: a minute long.
const TRIES: usize = 3_000;
const PAUSE: Duration = Duration::from_millis(20);

/// What the nodes are to be like.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// How many replicas each primary has.
    pub replicas: usize,
    /// TLS with client certificates: between all nodes, and for clients.
    pub tls: Option<Arc<Certificates>>,
    /// The default user's password at all nodes.
    pub password: Option<String>,
    /// As whom clients come, if not as the default user.
    pub user: Option<User>,
    /// Keeps every write (AOF, synced always).
    pub aof: bool,
    /// How long a node is silent before the others take it for down.
    pub node_timeout: Duration,
    /// More settings of the nodes, as on `redis-server`'s command line.
    pub more: Vec<String>,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            replicas: 1,
            tls: None,
            password: None,
            user: None,
            aof: false,
            node_timeout: Duration::from_secs(1),
            more: Vec::new(),
        }
    }
}

impl ClusterSettings {
    fn access(&self) -> Access {
        Access { tls: self.tls.clone(), password: self.password.clone(), user: self.user.clone() }
    }
}

/// The nodes of a Cluster, killed when dropped: first the primaries, then their replicas.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
    settings: ClusterSettings,
}

impl Cluster {
    /// Starts the nodes, makes a Cluster of them, and waits until all know it.
    ///
    /// # Errors
    /// If `redis-server` is not installed or does not start, or the nodes do not find each other.
    pub fn with(settings: ClusterSettings) -> io::Result<Self> {
        let mut more = settings.more.clone();
        more.extend(["--cluster-node-timeout".to_owned(), settings.node_timeout.as_millis().to_string()]);
        if let Some(password) = &settings.password {
            more.extend(["--masterauth".to_owned(), password.clone()]);
        }
        let of_node = Settings { cluster: true, more, aof: settings.aof, ..settings.access().settings() };
        let count = SHARDS * (1 + settings.replicas);
        let nodes = (0..count).map(|_| RedisServer::with(of_node.clone())).collect::<io::Result<Vec<_>>>()?;
        let ids = nodes.iter().map(|node| node.say(&["CLUSTER", "MYID"]).text()).collect();
        let cluster = Self { nodes, ids, settings };
        cluster.make()?;
        Ok(cluster)
    }

    /// The URL with the first node of each shard, with the user, password and certificates.
    pub fn url(&self) -> String {
        let ports: Vec<u16> = self.nodes[..SHARDS].iter().map(RedisServer::known_port).collect();
        self.url_at(&ports)
    }

    /// The URL with nodes at these ports.
    pub fn url_at(&self, ports: &[u16]) -> String {
        self.settings.access().url("cluster", ports, "", &[])
    }

    /// The nodes; the first three began as primaries.
    pub fn nodes(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// One of the nodes.
    pub fn node(&self, place: usize) -> &RedisServer {
        &self.nodes[place]
    }

    /// The slot of a key.
    ///
    /// # Panics
    /// If no node answers.
    pub fn slot(&self, key: &str) -> u16 {
        let slot = self.nodes.iter().find_map(|node| node.talk().ok()?.say(&["CLUSTER", "KEYSLOT", key]).ok());
        slot.and_then(|slot| u16::try_from(slot.number()).ok()).unwrap_or_else(|| panic!("no node answers"))
    }

    /// The node that is the primary of a slot, as most nodes say that answer.
    ///
    /// # Panics
    /// If they do not agree within a minute.
    pub fn owner(&self, slot: u16) -> usize {
        self.owner_but(slot, None)
    }

    /// Waits until another node than `old` is the primary of a slot.
    ///
    /// # Panics
    /// If that takes more than a minute.
    pub fn promoted(&self, slot: u16, old: usize) -> usize {
        self.owner_but(slot, Some(old))
    }

    fn owner_but(&self, slot: u16, old: Option<usize>) -> usize {
        for _ in 0..TRIES {
            let said: Vec<_> = self.nodes.iter().filter_map(|node| self.owner_by(node, slot)).collect();
            if let Some(owner) = said.iter().find(|owner| 2 * said.iter().filter(|other| other == owner).count() > said.len())
                && Some(*owner) != old
            {
                return *owner;
            }
            sleep(PAUSE);
        }
        panic!("the nodes do not agree on a primary of slot {slot}");
    }

    fn owner_by(&self, node: &RedisServer, slot: u16) -> Option<usize> {
        let ranges = node.talk().ok()?.say(&["CLUSTER", "SLOTS"]).ok()?;
        let range = ranges.items().iter().find(|range| {
            let items = range.items();
            (items[0].number()..=items[1].number()).contains(&i64::from(slot))
        })?;
        let port = range.items()[2].items()[1].number();
        self.nodes.iter().position(|node| i64::from(node.port()) == port)
    }

    /// Begins to move a slot to another primary: keys can lie on either side from now on.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn begin_move(&self, slot: u16, to: usize) {
        let (from, slot) = (self.owner(slot), slot.to_string());
        self.done(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.ids[from]]);
        self.done(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.ids[to]]);
    }

    /// Moves up to `most` keys of a slot that is on its way; how many it were comes back.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, most: usize) -> usize {
        let keys = self.nodes[from].say(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &most.to_string()]);
        let keys: Vec<String> = keys.items().iter().map(Value::text).collect();
        if keys.is_empty() {
            return 0;
        }
        let port = self.nodes[to].known_port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "10000"];
        if let Some(password) = &self.settings.password {
            words.extend(["AUTH", password]);
        }
        words.push("KEYS");
        words.extend(keys.iter().map(String::as_str));
        let answer = self.nodes[from].say(&words).text();
        assert!(answer == "OK" || answer == "NOKEY", "MIGRATE: {answer}");
        keys.len()
    }

    /// Ends the move of a slot whose keys have all been moved.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        // Keys that came meanwhile cannot be: what is new is made on the other side.
        let text = slot.to_string();
        for node in [to, from] {
            self.done(node, &["CLUSTER", "SETSLOT", &text, "NODE", &self.ids[to]]);
        }
        self.promoted(slot, from);
    }

    /// Moves a slot to another primary, all at once.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn move_slot(&self, slot: u16, to: usize) {
        let from = self.owner(slot);
        self.begin_move(slot, to);
        while self.move_keys(slot, from, to, 100) > 0 {}
        self.end_move(slot, from, to);
    }

    fn done(&self, node: usize, command: &[&str]) {
        let answer = self.nodes[node].say(command).text();
        assert_eq!(answer, "OK", "{command:?}");
    }

    fn make(&self) -> io::Result<()> {
        for (shard, node) in self.nodes[..SHARDS].iter().enumerate() {
            let slots = (shard * SLOTS / SHARDS..(shard + 1) * SLOTS / SHARDS).map(|slot| slot.to_string());
            let mut add = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
            add.extend(slots);
            node.talk()?.say(&add)?;
        }
        for (epoch, node) in self.nodes.iter().enumerate() {
            node.say(&["CLUSTER", "SET-CONFIG-EPOCH", &(epoch + 1).to_string()]);
            node.say(&["CLUSTER", "MEET", "127.0.0.1", &self.nodes[0].known_port().to_string()]);
        }
        let known = |node: &RedisServer| {
            let told = node.say(&["CLUSTER", "NODES"]).text();
            told.lines().filter(|line| !line.contains("handshake")).count() == self.nodes.len()
        };
        self.wait("the nodes do not find each other", known)?;
        for (place, node) in self.nodes.iter().enumerate().skip(SHARDS) {
            node.say(&["CLUSTER", "REPLICATE", &self.ids[place % SHARDS]]);
        }
        self.settled()
    }

    /// Waits until every node that runs takes the Cluster for whole, with as many replicas as in the beginning.
    ///
    /// # Errors
    /// If that takes more than a minute.
    pub fn settled(&self) -> io::Result<()> {
        let whole = |node: &RedisServer| {
            let Ok(mut talk) = node.talk() else { return true };
            let mut ask = |words: &[&str]| talk.say(words).unwrap_or(Value::Nil);
            let state = ask(&["CLUSTER", "INFO"]).text();
            let slots = ask(&["CLUSTER", "SLOTS"]);
            let replicated = slots.items().iter().all(|range| range.items().len() > 2 + self.settings.replicas);
            let info = ask(&["INFO", "replication"]).text();
            let in_step = if info.contains("role:master") {
                info.matches("state=online").count() >= self.settings.replicas
            } else {
                info.contains("master_link_status:up")
            };
            state.contains("cluster_state:ok") && replicated && in_step
        };
        self.wait("the Cluster does not become whole", whole)
    }

    fn wait(&self, what: &str, there: impl Fn(&RedisServer) -> bool) -> io::Result<()> {
        for _ in 0..TRIES {
            if self.nodes.iter().all(&there) {
                return Ok(());
            }
            sleep(PAUSE);
        }
        Err(io::Error::other(what.to_owned()))
    }
}
