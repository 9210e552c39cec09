//! The blob engine against a real server.

mod acks;
mod contract;
mod cuts;
mod expiry;
mod lost;
mod racing;

use std::sync::Arc;
use std::time::Duration;

use zlink_test_servers::RedisServer;

use super::RedisRelocation;
use super::manifest::SEGMENT;
use super::put::AT_ONCE;
use crate::ambient;
use crate::call::Call;
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, KeyPrefix, Payload, Retention, StoreTime,
};
use crate::engine::redis::client::Client;
use crate::engine::redis::config::{Address, RedisConfig};
use crate::engine::redis::native::Native;
use crate::engine::redis::tests::tap::Tap;
use crate::engine::{Engine, RelocationEngine};

/// A size for each way to put a blob: nothing, one segment, several at once, and a few at a time.
const WAYS: [usize; 4] = [0, 10, 3 * SEGMENT, AT_ONCE + 1];
const TIMEOUT: Duration = Duration::from_secs(20);
const MINUTE: u64 = 60_000;

/// A server of the test's own, and plain looks at it behind the store's back.
struct Rig {
    server: RedisServer,
}

impl Rig {
    fn start(extra: &[&str]) -> Self {
        Self { server: RedisServer::start(extra).unwrap() }
    }

    /// A store with connections of its own. Its scripts are known to the server, so that a test meets no NOSCRIPT.
    fn store(&self) -> Store {
        self.open(true)
    }

    /// A store that uses somebody else's client.
    fn hosted(&self) -> Store {
        self.open(false)
    }

    fn open(&self, transactions: bool) -> Store {
        let store = Store::new(RedisConfig::single(Address::Tcp("127.0.0.1".to_owned(), self.server.port())), transactions);
        run(async {
            for size in [1, 2 * SEGMENT - 1] {
                store.put("warm", bytes(size), 1_000).await.unwrap();
                store.renew("warm", 1_000).await.unwrap();
                store.read("warm").await.unwrap();
                store.delete("warm").await.unwrap();
            }
        });
        until("the warm-up has left nothing", || self.keys().is_empty());
        store.tap.seen();
        store
    }

    fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let mut connection = redis::Client::open(self.server.url()).unwrap().get_connection().unwrap();
        redis::cmd(command[0]).arg(&command[1..]).query(&mut connection).unwrap()
    }

    /// Sends a command as it is.
    fn send<T: redis::FromRedisValue>(&self, command: &[bytes::Bytes]) -> T {
        let mut connection = redis::Client::open(self.server.url()).unwrap().get_connection().unwrap();
        let mut built = redis::Cmd::new();
        for arg in command {
            built.arg(&arg[..]);
        }
        built.query(&mut connection).unwrap()
    }

    fn keys(&self) -> Vec<String> {
        self.ask(&["KEYS", "*"])
    }

    fn keys_like(&self, part: &str) -> Vec<String> {
        self.keys().into_iter().filter(|key| key.contains(part)).collect()
    }

    /// The segments of what is visible.
    fn segments(&self) -> Vec<String> {
        self.keys().into_iter().filter(|key| key.contains(":bs:") || key.ends_with(":b0")).collect()
    }

    /// When a key expires, to the millisecond, or 0 if it is gone; Redis 6.2 tells only how long that is from now.
    fn expiry(&self, key: &str) -> u64 {
        let mut connection = redis::Client::open(self.server.url()).unwrap().get_connection().unwrap();
        loop {
            let mut both = redis::pipe();
            both.atomic().cmd("TIME").cmd("PTTL").arg(key).cmd("TIME");
            let (before, left, after): ((u64, u64), i64, (u64, u64)) = both.query(&mut connection).unwrap();
            let ms = |(seconds, micros): (u64, u64)| seconds * 1_000 + micros / 1_000;
            if left == -2 {
                return 0;
            }
            if ms(before) == ms(after) {
                return ms(before) + u64::try_from(left).unwrap_or_else(|_| panic!("{key} never expires"));
            }
        }
    }

    fn now(&self) -> u64 {
        let (seconds, micros): (u64, u64) = self.ask(&["TIME"]);
        seconds * 1_000 + micros / 1_000
    }
}

/// The engine, with plain arguments.
#[derive(Clone)]
struct Store {
    engine: RedisRelocation,
    tap: Arc<Tap>,
}

impl Store {
    fn new(config: RedisConfig, transactions: bool) -> Self {
        let tap = Tap::new(Arc::new(Native::new(config)), transactions);
        let prefix = KeyPrefix::new("t").unwrap();
        let engine = RedisRelocation::new(Client::new(Arc::clone(&tap) as _), prefix, ambient::system());
        Self { engine, tap }
    }

    async fn now(&self) -> StoreTime {
        self.engine.ping(Call::reading(ambient::monotonic() + TIMEOUT)).await.unwrap()
    }

    async fn put(&self, name: &str, payload: impl Into<Payload>, ms: u64) -> Result<BlobPutResult, Error> {
        self.engine.put(reference(name), payload.into(), retention(ms), writing()).await
    }

    async fn read(&self, name: &str) -> Result<BlobReadResult, Error> {
        self.engine.read(reference(name), Call::reading(ambient::monotonic() + TIMEOUT)).await
    }

    /// The bytes, or `None` if the blob is missing.
    async fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        match self.read(name).await.unwrap() {
            BlobReadResult::Found { bytes, .. } => Some(bytes.into()),
            BlobReadResult::Missing { .. } => None,
        }
    }

    async fn has(&self, name: &str) -> bool {
        self.bytes(name).await.is_some()
    }

    async fn renew(&self, name: &str, ms: u64) -> Result<BlobRenewResult, Error> {
        self.engine.renew(reference(name), retention(ms), writing()).await
    }

    async fn delete(&self, name: &str) -> Result<(), Error> {
        self.engine.delete(reference(name), writing()).await
    }
}

fn writing() -> Call {
    Call::writing(ambient::monotonic() + TIMEOUT)
}

fn reference(text: &str) -> BlobReference {
    BlobReference::new(text).unwrap()
}

fn retention(ms: u64) -> Retention {
    Retention::from_ms(ms).unwrap()
}

/// Bytes that differ from segment to segment.
fn bytes(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..size).map(|_| next()).collect()
}

/// The same bytes but for the last one.
fn other(bytes: &[u8]) -> Vec<u8> {
    let mut other = bytes.to_vec();
    match other.last_mut() {
        Some(last) => *last ^= 1,
        None => other.push(0),
    }
    other
}

fn stored(put: &BlobPutResult) -> (StoreTime, StoreTime) {
    match put {
        BlobPutResult::Stored { expires_at, store_now } => (*expires_at, *store_now),
        other => panic!("not stored: {other:?}"),
    }
}

/// Runs a test's future to its end.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(100), future).await.expect("the test hangs") })
}

/// Polls until it is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = ambient::monotonic() + Duration::from_secs(30);
    while !so() {
        assert!(ambient::monotonic() < deadline, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
