//! What the tests of this room share: a private server, stores on it, and a raw connection beside them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, ToRedisArgs};
use zlink_test_servers::RedisServer;

use super::super::RedisLocation;
use super::super::snapshots::Entry;
use crate::ambient;
use crate::call::OperationTimeout;
use crate::contract::*;
use crate::engine::redis::client::Client;
use crate::engine::redis::config::RedisConfig;
use crate::engine::redis::sharing::Lease;
use crate::engine::redis::tests::tap::Tap;
use crate::engine::redis::transport::Transport;
use crate::{LocationStore, StoreOptions};

pub(super) struct Rig {
    pub(super) server: RedisServer,
    pub(super) store: LocationStore,
    pub(super) raw: MultiplexedConnection,
}

impl Rig {
    pub(super) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// With settings of the server.
    pub(super) async fn with(settings: &[&str]) -> Self {
        let server = RedisServer::start(settings).unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let raw = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        let store = LocationStore::open(&*server.url(), StoreOptions::with_prefix("p").unwrap()).unwrap();
        Self { server, store, raw }
    }

    /// Another store on the same data, as another process has it.
    pub(super) fn other(&self) -> LocationStore {
        LocationStore::open(&*self.server.url(), StoreOptions::with_prefix("p").unwrap()).unwrap()
    }

    /// A store that the test can reach into; without `transactions` as through somebody else's client.
    pub(super) fn tapped(&self, transactions: bool) -> (LocationStore, Arc<Tap>) {
        tapped(&self.server.url(), transactions)
    }

    /// The same, with a URL that says more.
    pub(super) fn tapped_at(&self, url: &str) -> (LocationStore, Arc<Tap>) {
        tapped(url, true)
    }

    /// A raw command; the arguments are split at spaces.
    pub(super) async fn raw<T: FromRedisValue>(&self, command: &str) -> T {
        ask(&self.raw, command).await
    }

    /// When a key expires, to the millisecond; Redis 6.2 tells only how long that is from now.
    pub(super) async fn expiry(&self, key: &str) -> u64 {
        loop {
            let mut both = redis::pipe();
            both.atomic().cmd("TIME").cmd("PTTL").arg(key).cmd("TIME");
            let asked = both.query_async(&mut self.raw.clone()).await.unwrap();
            let (before, left, after): ((u64, u64), u64, (u64, u64)) = asked;
            let ms = |(seconds, micros): (u64, u64)| seconds * 1_000 + micros / 1_000;
            if ms(before) == ms(after) {
                return ms(before) + left;
            }
        }
    }

    /// The raw entries of the snapshot list.
    pub(super) async fn snapshots(&self) -> Vec<Vec<u8>> {
        self.raw("LRANGE {p}:S 0 -1").await
    }

    /// The snapshot list.
    pub(super) async fn entries(&self) -> Vec<Entry> {
        self.snapshots().await.iter().map(|raw| Entry::decode(raw).unwrap()).collect()
    }

    /// An engine whose timer does not run, and its client.
    pub(super) fn engine(&self) -> (RedisLocation, Client) {
        let transport = Lease::take(&RedisConfig::parse(&self.server.url()).unwrap());
        let client = Client::new(Arc::new(transport));
        let engine = RedisLocation::new(client.clone(), &KeyPrefix::new("p").unwrap(), ambient::system());
        engine.0.reaper.never();
        (engine, client)
    }

    /// Stops the server while the operations of `start` begin: what they send waits together.
    pub(super) async fn paused<T>(&self, start: impl FnOnce() -> T) -> T {
        self.server.pause().unwrap();
        let started = start();
        settle().await;
        self.server.resume().unwrap();
        started
    }

    /// Changes the raw entries of the snapshot list.
    pub(super) async fn edit_snapshots(&self, edit: impl Fn(usize, &mut Vec<u8>)) {
        edit_snapshots(&self.raw, edit).await;
    }

    /// Moves the start of every snapshot `ms` into the past.
    pub(super) async fn age_snapshots(&self, ms: u64) {
        age(&self.raw, ms).await;
    }

    pub(super) async fn put(&self, text: &str, value: &str) -> Version {
        put(&self.store, text, value).await
    }

    pub(super) async fn get(&self, text: &str) -> Option<String> {
        get(&self.store, text).await
    }
}

fn tapped(url: &str, transactions: bool) -> (LocationStore, Arc<Tap>) {
    let tap = Tap::new(Arc::new(Lease::take(&RedisConfig::parse(url).unwrap())), transactions);
    (over(Arc::clone(&tap) as _), tap)
}

/// A store over a transport.
pub(super) fn over(transport: Arc<dyn Transport>) -> LocationStore {
    let prefix = KeyPrefix::new("p").unwrap();
    let engine = RedisLocation::new(Client::new(transport), &prefix, ambient::system());
    LocationStore::on(Arc::new(engine), OperationTimeout::new(limits::DEFAULT_OPERATION_TIMEOUT_MS).unwrap())
}

/// A raw command on a raw connection; the arguments are split at spaces.
pub(super) async fn ask<T: FromRedisValue>(raw: &MultiplexedConnection, command: &str) -> T {
    let words: Vec<&str> = command.split(' ').collect();
    ask_of(raw, &words).await
}

/// A raw command of any bytes.
pub(super) async fn ask_of<T: FromRedisValue, A: ToRedisArgs>(raw: &MultiplexedConnection, words: &[A]) -> T {
    let mut command = redis::Cmd::new();
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command.query_async(&mut raw.clone()).await.unwrap()
}

/// Changes the raw entries of the snapshot list.
pub(super) async fn edit_snapshots(raw: &MultiplexedConnection, edit: impl Fn(usize, &mut Vec<u8>)) {
    // All or nothing: a store works on the list meanwhile.
    const EXCHANGE: &str = "
        if redis.call('LLEN', KEYS[1]) * 2 ~= #ARGV then return 0 end
        for i = 1, #ARGV, 2 do if redis.call('LINDEX', KEYS[1], (i - 1) / 2) ~= ARGV[i] then return 0 end end
        for i = 2, #ARGV, 2 do redis.call('LSET', KEYS[1], (i - 2) / 2, ARGV[i]) end
        return 1";
    loop {
        let entries: Vec<Vec<u8>> = ask(raw, "LRANGE {p}:S 0 -1").await;
        let mut words: Vec<Vec<u8>> = ["EVAL", EXCHANGE, "1", "{p}:S"].map(|word| word.as_bytes().to_vec()).into();
        for (at, entry) in entries.into_iter().enumerate() {
            let mut edited = entry.clone();
            edit(at, &mut edited);
            words.extend([entry, edited]);
        }
        if ask_of::<bool, _>(raw, &words).await {
            return;
        }
    }
}

/// Moves the start of every snapshot `ms` into the past.
pub(super) async fn age(raw: &MultiplexedConnection, ms: u64) {
    edit_snapshots(raw, |_, entry| {
        let start = u64::from_be_bytes(entry[8..16].try_into().unwrap()) - ms;
        set_start(entry, start);
    })
    .await;
}

/// Sets the start of a raw entry.
pub(super) fn set_start(entry: &mut [u8], start: u64) {
    entry[8..16].copy_from_slice(&start.to_be_bytes());
}

pub(super) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(super) fn ms(ms: u64) -> Retention {
    Retention::from_ms(ms).unwrap()
}

pub(super) async fn put(store: &LocationStore, text: &str, value: &str) -> Version {
    let request = WriteRequest::new().mutation(Mutation::put(key(text), value.to_owned()));
    let (versions, _) = applied(store.write(request).await);
    versions.into_iter().next().unwrap()
}

pub(super) async fn put_for(store: &LocationStore, text: &str, value: &str, retention: u64) {
    let request = WriteRequest::new().mutation(Mutation::put_for(key(text), value.to_owned(), ms(retention)));
    applied(store.write(request).await);
}

pub(super) async fn delete(store: &LocationStore, text: &str) {
    applied(store.write(WriteRequest::new().mutation(Mutation::delete(key(text)))).await);
}

pub(super) fn applied(result: Result<WriteResult, Error>) -> (Vec<Version>, StoreTime) {
    match result.unwrap() {
        WriteResult::Applied { put_versions, store_now } => {
            (put_versions.into_iter().map(|put| put.version).collect(), store_now)
        }
        WriteResult::Conflict { .. } => panic!("a conflict"),
    }
}

pub(super) fn conflicts(result: Result<WriteResult, Error>) -> bool {
    matches!(result.unwrap(), WriteResult::Conflict { .. })
}

pub(super) async fn get(store: &LocationStore, text: &str) -> Option<String> {
    match store.read(key(text)).await.unwrap() {
        ReadResult::Found(value) => Some(String::from_utf8(value.bytes.to_vec()).unwrap()),
        ReadResult::Missing { .. } => None,
    }
}

/// A page; `None` if the scan is expired.
pub(super) async fn page(store: &LocationStore, request: ScanRequest) -> Option<ScanPage> {
    match store.scan(request).await.unwrap() {
        ScanResult::Page(page) => Some(page),
        ScanResult::Expired => None,
    }
}

/// Keys and values of a page.
pub(super) fn shown(page: &ScanPage) -> Vec<(String, String)> {
    let items = page.items.iter();
    items.map(|item| (item.key.to_string(), String::from_utf8(item.value.bytes.to_vec()).unwrap())).collect()
}

/// All pages of the scan behind `page`.
pub(super) async fn rest(store: &LocationStore, prefix: &str, limit: u32, page: &ScanPage) -> Option<Vec<(String, String)>> {
    let mut items = Vec::new();
    let mut cursor = page.next_cursor.clone();
    while let Some(next) = cursor {
        let page = self::page(store, ScanRequest::new(prefix, limit).after(next)).await?;
        assert!(!page.items.is_empty(), "only a scan of nothing has an empty page");
        items.extend(shown(&page));
        cursor = page.next_cursor;
    }
    Some(items)
}

/// Lets every task of this test that can go on do so.
pub(super) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Waits until a store has sent another command than `before`.
pub(super) async fn sent(store: &LocationStore, before: u64) {
    until(async || store.stats().commands_sent > before).await;
}

/// Polls until `condition` holds; fails after ten seconds.
pub(super) async fn until<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    let deadline = ambient::monotonic() + Duration::from_secs(10);
    while !condition().await {
        assert!(ambient::monotonic() < deadline, "did not happen within ten seconds");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
