//! Private Redis servers.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::resp::Value;
use crate::talk::Talk;

/// A sentinel's configuration file.
const SENTINEL: &str = "sentinel.conf";

/// What a server is to be like. The default: TCP on the loopback address, nothing kept on disk.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Listens with TLS too.
    pub tls: Option<Arc<Certificates>>,
    /// Wants a client certificate on the TLS port.
    pub tls_clients: bool,
    /// Speaks TLS to other servers too, and has them and clients know it by its TLS port.
    pub tls_among: bool,
    /// Listens on a unix socket too, in a folder with a space in its name.
    pub unix: bool,
    /// Listens on `::1` too.
    pub ipv6: bool,
    /// The default user's password.
    pub password: Option<String>,
    /// ACL users: name and rules, such as `("app", ">secret ~app:* +get")`.
    pub users: Vec<(String, String)>,
    /// Keeps every write (AOF, synced always), so that nothing acknowledged is lost by a kill.
    pub aof: bool,
    /// Most memory in bytes, without eviction.
    pub maxmemory: Option<u64>,
    /// The port of the server of which this one is a replica; its TLS port with `tls_among`.
    pub replica_of: Option<u16>,
    /// A node of a Cluster, which is not made yet.
    pub cluster: bool,
    /// A sentinel with this configuration file, which it rewrites.
    pub sentinel: Option<String>,
    /// More settings, as on `redis-server`'s command line: name, value, name, value.
    pub more: Vec<String>,
}

/// A private `redis-server`, killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    folder: TempDir,
    port: u16,
    tls_port: Option<u16>,
    settings: Settings,
}

impl RedisServer {
    /// Starts a server with `more` command-line settings.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn start(more: &[&str]) -> io::Result<Self> {
        Self::with(Settings { more: more.iter().map(|&setting| setting.to_owned()).collect(), ..Settings::default() })
    }

    /// Starts a server on free ports and waits until it answers.
    ///
    /// # Errors
    /// If `redis-server` is not installed or does not start.
    pub fn with(settings: Settings) -> io::Result<Self> {
        let folder = TempDir::with_prefix("a redis ")?;
        let mut last = io::Error::other("no port is free");
        if let Some(sentinel) = &settings.sentinel {
            fs::write(folder.path().join(SENTINEL), sentinel)?;
        }
        for _ in 0..10 {
            let port = if settings.cluster { free_port_of_node()? } else { free_port()? };
            let tls_port = match &settings.tls {
                Some(_) if settings.cluster => Some(free_port_of_node()?),
                Some(_) => Some(free_port()?),
                None => None,
            };
            match launch(folder.path(), port, tls_port, &settings) {
                Ok(process) => return Ok(Self { process, folder, port, tls_port, settings }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The TLS port.
    ///
    /// # Panics
    /// If the server has none.
    pub fn tls_port(&self) -> u16 {
        self.tls_port.unwrap_or_else(|| panic!("the server was started without TLS"))
    }

    /// The port by which other servers know it, and tell clients where it is.
    pub(crate) fn known_port(&self) -> u16 {
        self.tls_port.filter(|_| self.settings.tls_among).unwrap_or(self.port)
    }

    /// The certificates of its TLS port.
    ///
    /// # Panics
    /// If the server has none.
    pub fn certificates(&self) -> &Certificates {
        self.settings.tls.as_deref().unwrap_or_else(|| panic!("the server was started without TLS"))
    }

    /// The URL of database 0, with the default user's password.
    pub fn url(&self) -> String {
        self.url_at(&format!("127.0.0.1:{}", self.port))
    }

    /// The URL of database 0 at another address, such as a proxy's.
    pub fn url_at(&self, address: &str) -> String {
        match &self.settings.password {
            Some(password) => format!("redis://:{}@{address}", encoded(password)),
            None => format!("redis://{address}"),
        }
    }

    /// The URL of database 0 by TLS, with the CA and, if the server wants one, a client certificate.
    ///
    /// # Panics
    /// If the server has no TLS port.
    pub fn tls_url(&self) -> String {
        let certificates = self.certificates();
        let plain = self.url_at(&format!("localhost:{}", self.tls_port()));
        format!("rediss{}?{}", &plain["redis".len()..], certificates.parameters(self.settings.tls_clients))
    }

    /// The unix socket's path.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// The URL of database 0 by the unix socket.
    pub fn unix_url(&self) -> String {
        let login = self.settings.password.as_ref().map_or_else(String::new, |password| format!(":{}@", encoded(password)));
        format!("redis+unix://{login}{}", path_text(&self.socket()))
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A connection for what the test itself has to say.
    ///
    /// # Errors
    /// If the server does not run.
    pub fn talk(&self) -> io::Result<Talk> {
        talk_to(self.port, &self.settings)
    }

    /// Says one command on a connection of its own.
    ///
    /// # Panics
    /// If the server does not run.
    pub fn say(&self, command: &[&str]) -> Value {
        let answer = self.talk().and_then(|mut talk| talk.say(command));
        answer.unwrap_or_else(|error| panic!("the server does not answer: {error}"))
    }

    /// How many clients are connected, this call's own aside.
    ///
    /// # Panics
    /// If the server does not run.
    pub fn clients(&self) -> usize {
        self.say(&["CLIENT", "LIST", "TYPE", "NORMAL"]).text().lines().filter(|line| !line.trim().is_empty()).count() - 1
    }

    /// Kills the server as `kill -9` does.
    ///
    /// # Errors
    /// If the process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(|_| ())
    }

    /// Starts it again on the same ports and folder after [`kill`](Self::kill).
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process = launch(self.folder.path(), self.port, self.tls_port, &self.settings)?;
        Ok(())
    }

    /// Stops the process where it stands (SIGSTOP): sockets stay open, nothing is answered.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets it go on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// If it does not run.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.pid()).map_err(io::Error::other)?;
        kill(Pid::from_raw(pid), signal).map_err(io::Error::from)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may be dead already, which is what is wanted.
        let _ = self.kill();
    }
}

/// Percent-encoded for a URL.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

pub(crate) fn path_text(path: &Path) -> String {
    encoded(&path.to_string_lossy()).replace("%2F", "/")
}

/// A connection of the default user: without its password a server that still loads would not say so.
fn talk_to(port: u16, settings: &Settings) -> io::Result<Talk> {
    let mut talk = Talk::to(("127.0.0.1", port))?;
    if let Some(password) = &settings.password {
        talk.say(&["AUTH", password])?;
    }
    Ok(talk)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The nodes of a Cluster talk to each other on the port 10,000 above.
fn free_port_of_node() -> io::Result<u16> {
    for _ in 0..100 {
        let port = free_port()?;
        if let Some(bus) = port.checked_add(10_000)
            && TcpListener::bind(("127.0.0.1", bus)).is_ok()
        {
            return Ok(port);
        }
    }
    Err(io::Error::other("no two ports are free for a node of a Cluster"))
}

fn launch(folder: &Path, port: u16, tls_port: Option<u16>, settings: &Settings) -> io::Result<Child> {
    let mut command = Command::new("redis-server");
    if settings.sentinel.is_some() {
        command.arg(folder.join(SENTINEL)).arg("--sentinel");
    }
    command.args(["--port", &port.to_string(), "--save", "", "--daemonize", "no", "--dir"]).arg(folder);
    command.args(["--bind", "127.0.0.1"]).args(settings.ipv6.then_some("::1"));
    // A test starts many at once and uses few clients of each.
    command.args(["--repl-diskless-sync-delay", "0"]);
    if let (Some(certificates), Some(tls_port)) = (&settings.tls, tls_port) {
        command.args([
            "--tls-port",
            &tls_port.to_string(),
            "--tls-auth-clients",
            if settings.tls_clients { "yes" } else { "no" },
        ]);
        let identity = if settings.tls_among { &certificates.node } else { &certificates.server };
        command.arg("--tls-ca-cert-file").arg(certificates.ca());
        command.arg("--tls-cert-file").arg(&identity.cert).arg("--tls-key-file").arg(&identity.key);
        if settings.tls_among {
            command.args(["--tls-replication", "yes"]);
            command.args(settings.cluster.then_some(["--tls-cluster", "yes"]).iter().flatten());
        }
    }
    if settings.unix {
        command.arg("--unixsocket").arg(folder.join("redis.sock"));
    }
    if let Some(password) = &settings.password {
        command.args(["--requirepass", password]);
    }
    for (name, rules) in &settings.users {
        command.args(["--user", name, "on"]).args(rules.split_ascii_whitespace());
    }
    if settings.cluster {
        command.args(["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
    }
    if settings.aof {
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    }
    if let Some(bytes) = settings.maxmemory {
        command.args(["--maxmemory", &bytes.to_string(), "--maxmemory-policy", "noeviction"]);
    }
    if let Some(primary) = settings.replica_of {
        command.args(["--replicaof", "127.0.0.1", &primary.to_string()]);
        command.args(settings.password.as_ref().map_or(&[][..], |_| &["--masterauth"][..])).args(&settings.password);
    }
    let mut process = command.args(&settings.more).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    for _ in 0..1_000 {
        if process.try_wait()?.is_some() {
            return Err(io::Error::other("redis-server ended at once (port taken, or a setting that it does not know)"));
        }
        // While it loads its data it answers, but not with data.
        let answer = talk_to(port, settings).and_then(|mut talk| talk.say(&["GET", "x"]));
        if answer.is_ok_and(|answer| !matches!(&answer, Value::Error(text) if text.starts_with("LOADING"))) {
            // Another test's server may have taken the port, and answers while this one still finds that out.
            let own = format!("process_id:{}\r", process.id());
            let told = talk_to(port, settings).and_then(|mut talk| talk.say(&["INFO", "server"]));
            match told {
                Ok(told) if told.text().contains(&own) => return Ok(process),
                _ => {
                    process.kill()?;
                    process.wait()?;
                    return Err(io::Error::other("another server has the port"));
                }
            }
        }
        sleep(Duration::from_millis(10));
    }
    process.kill()?;
    process.wait()?;
    Err(io::Error::other("redis-server does not answer"))
}
