//! One private Redis for both sides, and what fills it.

use std::process::Command;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, IntoConnectionInfo};
use zlink_store::{Key, LocationStore, Mutation, RelocationStore, StoreOptions, WriteRequest};
use zlink_test_servers::RedisServer;

use crate::rounds::Outcome;

/// What every record holds.
pub const VALUE: [u8; 256] = [b'v'; 256];

/// The server, pinned to a core of its own if `tests/bench/pinned` names one.
#[derive(Debug)]
pub struct Rig {
    server: RedisServer,
    core: Option<String>,
}

impl Rig {
    /// Starts it.
    ///
    /// # Errors
    /// If it does not start, or cannot be pinned.
    pub fn start() -> Outcome<Self> {
        let server = RedisServer::start(&[])?;
        let core = std::env::var("ZLINK_BENCH_SERVER_CORE").ok();
        if let Some(core) = &core {
            let pinned = Command::new("taskset").args(["-a", "-c", "-p", core, &server.pid().to_string()]).output()?;
            if !pinned.status.success() {
                return Err(String::from_utf8_lossy(&pinned.stderr).into());
            }
        }
        Ok(Self { server, core })
    }

    /// What is measured, and how it is configured.
    pub fn about(&self) -> Vec<String> {
        let version = self.info("server", "redis_version").unwrap_or_default();
        let core = self.core.as_ref().map_or("any core".to_owned(), |core| format!("core {core}"));
        vec![
            format!("Rust, Redis {version} without persistence on loopback and on {core}"),
            "redis-rs 1.8, defaults: one multiplexed connection, nodelay, defaults otherwise".to_owned(),
            "redis-rs 1.8, tuned: the same without a response timeout, with a pipeline buffer of 1,024 commands and a write boundary of 64 KiB".to_owned(),
        ]
    }

    /// A field of `INFO`.
    ///
    /// # Errors
    /// If there is none.
    pub fn info(&self, section: &str, field: &str) -> Outcome<String> {
        let info = self.server.say(&["INFO", section]).text();
        let found = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(found.ok_or_else(|| format!("INFO {section} has no {field}"))?.trim().to_owned())
    }

    /// Seconds of CPU that the server used so far.
    ///
    /// # Errors
    /// If it does not tell.
    pub fn server_cpu(&self) -> Outcome<f64> {
        Ok(self.info("cpu", "used_cpu_sys")?.parse::<f64>()? + self.info("cpu", "used_cpu_user")?.parse::<f64>()?)
    }

    /// Where it listens on the loopback address.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Nothing is left in it.
    pub fn clear(&self) {
        self.server.say(&["FLUSHALL"]);
    }

    /// A Location Store of ours.
    ///
    /// # Errors
    /// If it does not open.
    pub fn locations(&self) -> Outcome<LocationStore> {
        Ok(LocationStore::open(&self.server.url(), options("bench")?)?)
    }

    /// A Relocation Store of ours.
    ///
    /// # Errors
    /// If it does not open.
    pub fn blobs(&self) -> Outcome<RelocationStore> {
        Ok(RelocationStore::open(&self.server.url(), options("bench-blobs")?)?)
    }

    /// redis-rs, as its documentation advises for throughput if `tuned`.
    ///
    /// # Errors
    /// If it does not connect.
    pub async fn rival(&self, tuned: bool) -> Outcome<MultiplexedConnection> {
        let info = self.server.url().into_connection_info()?;
        let settings = info.tcp_settings().clone().set_nodelay(true);
        let client = redis::Client::open(info.set_tcp_settings(settings))?;
        let mut config = AsyncConnectionConfig::new();
        if tuned {
            config = config.set_response_timeout(None).set_pipeline_buffer_size(1_024).set_write_backpressure_boundary(64 << 10);
        }
        Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// redis-rs for values that take their time.
    ///
    /// # Errors
    /// If it does not connect.
    pub async fn patient(&self) -> Outcome<MultiplexedConnection> {
        let mut rival = self.rival(false).await?;
        rival.set_response_timeout(Duration::from_mins(1));
        Ok(rival)
    }
}

fn options(prefix: &str) -> Outcome<StoreOptions> {
    Ok(StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::with_prefix(prefix)? })
}

/// A name of 30 bytes.
pub fn name(which: usize) -> String {
    format!("actor/{which:024}")
}

/// Puts `count` records, and as many plain strings.
///
/// # Errors
/// If one of them is refused.
pub async fn fill(store: &LocationStore, rival: &MultiplexedConnection, count: usize) -> Outcome<()> {
    for from in (0..count).step_by(1_000) {
        let group = from..(from + 1_000).min(count);
        let mut request = WriteRequest::new();
        let mut plain = redis::cmd("MSET");
        for which in group {
            request = request.mutation(Mutation::put(Key::new(name(which))?, &VALUE[..]));
            plain.arg(name(which)).arg(&VALUE[..]);
        }
        store.write(request).await?;
        let () = plain.query_async(&mut rival.clone()).await?;
    }
    Ok(())
}
