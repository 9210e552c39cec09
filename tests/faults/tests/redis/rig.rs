//! What the tests share.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use zlink_store::{KeyPrefix, StoreOptions};
use zlink_test_faults::rounds;
use zlink_test_servers::{RedisServer, Settings};

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Waits for the other tests: each has the machine to itself.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().await
}

/// The timeout of [`options`].
pub(crate) const OPERATION_TIMEOUT_MS: u64 = 20_000;

/// Of stores beside a load.
pub(crate) fn options(prefix: &str) -> StoreOptions {
    let key_prefix = KeyPrefix::new(prefix).expect("a legal prefix");
    StoreOptions { key_prefix, operation_timeout_ms: OPERATION_TIMEOUT_MS }
}

/// A server that nothing is the matter with.
pub(crate) fn server() -> RedisServer {
    RedisServer::with(Settings::default()).expect("a Redis server")
}

/// A server whose acknowledged writes survive a kill.
pub(crate) fn durable_server() -> RedisServer {
    RedisServer::with(Settings { aof: true, ..Settings::default() }).expect("a Redis server")
}

/// How long a fault goes on.
pub(crate) fn long(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds * rounds()))
}
