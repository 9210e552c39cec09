//! Test servers for tests in any language: see `--help`.

mod control;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value as Json, json};
use zlink_test_servers::{Certificates, Cluster, ClusterSettings, Proxy, RedisServer, SentinelSettings, SentinelTrio, Settings};

use control::{Control, Servers};

/// Starts what tests run against, prints one line of JSON that says where it is, and ends everything when its standard input
/// ends. Until then each line on standard input is a command, answered by one line of JSON: {"ok":true,…} or {"error":"…"}.
///
/// Commands for a server (`single`):
///   kill                  as kill -9; `restart` starts it again on the same ports with the same data
///   pause, resume         SIGSTOP, SIGCONT
///   say ARG…              says one command (`say ["SET","a b","c"]` as JSON, if an argument has a space); {"reply":…}
///   clients               how many connections it has, the helper's own aside; {"clients":N}
///
/// Commands for several servers (`sentinel`, `cluster`), which are numbered from 0:
///   server N COMMAND      a command for a server, as above; `sentinel N COMMAND` for a sentinel
///   primary               which server is the primary; {"primary":N}
///   promoted OLD          waits until it is another one than OLD
///   slot KEY, owner SLOT  {"slot":N}, {"owner":N}
///   promoted SLOT OLD     waits until another node than OLD has the slot
///   move SLOT N           moves a slot to another primary, with its keys
///
/// Commands for the proxy (`single --proxy`, `fake`); NAME is a command's name or *, WAY is requests or replies:
///   proxy once NAME SKIP ACTION    does ACTION to the next NAME after SKIP more of them
///   proxy always NAME ACTION       does ACTION to every NAME from now on
///   proxy pass                     forgets what `once` and `always` said
///   proxy delay WAY MS             everything that way arrives so much later (0: at once)
///   proxy throttle BYTES           at most so many bytes per second each way (0: any)
///   proxy cut-after WAY BYTES      closes the connection when so many bytes more have gone that way
///   proxy cut                      closes all connections
///   proxy swallow, proxy heal      nothing passes and nothing is closed; `heal` lets new connections work again
///   proxy refuse on|off            closes new connections at once
///   proxy target PORT              sends new connections to another server
///   proxy stats                    {"open":N,"accepted":N,"commands":{NAME:N}}
///   proxy record, proxy recorded   keeps every command; gives them back as arrays of base64 since the last time
/// ACTION is one of: cut-before cut-inside cut-after drop-reply lose-reply stall-inside stall-reply cut-reply delay-reply:MS
/// answer:LINE
/// (answer:-LOADING later, answer:+OK, answer::1, answer:$-1).
#[derive(Parser)]
#[command(version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// One Redis server. Prints url, port, pid and folder; with the options also tlsUrl, tlsPort, ca, cert, key, unixUrl,
    /// socket, proxyUrl, proxyPort.
    Single(Single),
    /// A primary, two replicas and three sentinels. Prints url and ports.
    Sentinel(Group),
    /// A Cluster of three shards with a replica each. Prints url and ports, first those of the primaries.
    Cluster(Group),
    /// A server that answers only what it is told to (`proxy always …`); +OK to AUTH, SELECT and CLIENT, +PONG to PING, and an
    /// unknown-command error to the rest. Prints url and port.
    Fake,
}

/// What servers that belong together have in common.
#[derive(Args)]
struct Group {
    /// TLS with client certificates, between the servers and for clients.
    #[arg(long)]
    tls: bool,
    /// The default user's password; the sentinels have it too.
    #[arg(long)]
    password: Option<String>,
    /// Keeps every write on disk before it is acknowledged (AOF, always).
    #[arg(long)]
    aof: bool,
}

#[derive(Args)]
struct Single {
    /// Listens with TLS too, with a CA of its own.
    #[arg(long)]
    tls: bool,
    /// Wants a client certificate on the TLS port.
    #[arg(long, requires = "tls")]
    tls_clients: bool,
    /// Listens on a unix socket too.
    #[arg(long)]
    unix: bool,
    /// Listens on ::1 too.
    #[arg(long)]
    ipv6: bool,
    /// The default user's password.
    #[arg(long)]
    password: Option<String>,
    /// An ACL user: name and rules in one argument, such as "app >secret ~app:* +get".
    #[arg(long = "user", value_name = "NAME RULES")]
    users: Vec<String>,
    /// Keeps every write on disk before it is acknowledged (AOF, always).
    #[arg(long)]
    aof: bool,
    /// Most memory in bytes, without eviction.
    #[arg(long)]
    maxmemory: Option<u64>,
    /// The port of the server of which this one is to be a replica.
    #[arg(long)]
    replica_of: Option<u16>,
    /// Puts a proxy in front of the server's TCP port.
    #[arg(long)]
    proxy: bool,
    /// More settings as on redis-server's command line, behind `--`.
    #[arg(last = true)]
    more: Vec<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli.kind).and_then(|(mut control, told)| serve(&mut control, &told)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zlink-test-servers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(kind: Kind) -> io::Result<(Control, Json)> {
    let single = match kind {
        Kind::Single(single) => single,
        Kind::Fake => {
            let proxy = Proxy::fake(control::fallback)?;
            let told = json!({ "kind": "fake", "url": proxy.url(), "port": proxy.port() });
            return Ok((Control::new(Servers::None, Some(proxy)), told));
        }
        Kind::Sentinel(Group { tls, password, aof }) => {
            let sentinel_password = password.clone();
            let settings =
                SentinelSettings { tls: certificates(tls)?, password, sentinel_password, aof, ..SentinelSettings::default() };
            let mut trio = SentinelTrio::with(settings)?;
            let ports: Vec<u16> = trio.servers().iter().map(RedisServer::port).collect();
            let told = json!({ "kind": "sentinel", "url": trio.url(), "ports": ports });
            return Ok((Control::new(Servers::Sentinel(trio), None), told));
        }
        Kind::Cluster(Group { tls, password, aof }) => {
            let settings = ClusterSettings { tls: certificates(tls)?, password, aof, ..ClusterSettings::default() };
            let mut cluster = Cluster::with(settings)?;
            let ports: Vec<u16> = cluster.nodes().iter().map(RedisServer::port).collect();
            let told = json!({ "kind": "cluster", "url": cluster.url(), "ports": ports });
            return Ok((Control::new(Servers::Cluster(cluster), None), told));
        }
    };
    let users = single.users.iter().map(|user| {
        let (name, rules) = user.split_once(' ').unwrap_or((user, ""));
        (name.to_owned(), rules.to_owned())
    });
    let with_proxy = single.proxy;
    let settings = Settings {
        tls: certificates(single.tls)?,
        tls_clients: single.tls_clients,
        unix: single.unix,
        ipv6: single.ipv6,
        users: users.collect(),
        password: single.password,
        aof: single.aof,
        maxmemory: single.maxmemory,
        replica_of: single.replica_of,
        more: single.more,
        ..Settings::default()
    };
    let unix = settings.unix;
    let tls = settings.tls.is_some();
    let server = RedisServer::with(settings)?;
    let mut told =
        json!({ "kind": "single", "url": server.url(), "port": server.port(), "pid": server.pid(), "folder": server.folder() });
    if tls {
        let certificates = server.certificates();
        told["tlsUrl"] = json!(server.tls_url());
        told["tlsPort"] = json!(server.tls_port());
        told["ca"] = json!(certificates.ca());
        told["cert"] = json!(certificates.client.cert);
        told["key"] = json!(certificates.client.key);
    }
    if unix {
        told["unixUrl"] = json!(server.unix_url());
        told["socket"] = json!(server.socket());
    }
    let proxy = if with_proxy { Some(Proxy::to(server.port())?) } else { None };
    if let Some(proxy) = &proxy {
        told["proxyUrl"] = json!(server.url_at(&proxy.address()));
        told["proxyPort"] = json!(proxy.port());
    }
    Ok((Control::new(Servers::One(server), proxy), told))
}

fn certificates(wanted: bool) -> io::Result<Option<Arc<Certificates>>> {
    if wanted { Certificates::make().map(|made| Some(Arc::new(made))) } else { Ok(None) }
}

fn serve(control: &mut Control, told: &Json) -> io::Result<()> {
    say(told)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        say(&match control.obey(line.trim()) {
            Ok(mut answer) => {
                answer["ok"] = json!(true);
                answer
            }
            Err(problem) => json!({ "error": problem }),
        })?;
    }
    Ok(())
}

fn say(told: &Json) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{told}")?;
    out.flush()
}
