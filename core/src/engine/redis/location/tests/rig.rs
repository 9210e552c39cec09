//! What the tests of this room share: a private server, stores on it, and a raw connection beside them.

use std::future::Future;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, ToRedisArgs};
use zlink_test_servers::RedisServer;

use crate::ambient;
use crate::contract::*;
use crate::{LocationStore, StoreOptions};

pub(super) struct Rig {
    pub(super) server: RedisServer,
    pub(super) store: LocationStore,
    raw: MultiplexedConnection,
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

    /// A raw command; the arguments are split at spaces.
    pub(super) async fn raw<T: FromRedisValue>(&self, command: &str) -> T {
        let words: Vec<&str> = command.split(' ').collect();
        self.raw_of(&words).await
    }

    /// A raw command of any bytes.
    pub(super) async fn raw_of<T: FromRedisValue, A: ToRedisArgs>(&self, words: &[A]) -> T {
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        command.query_async(&mut self.raw.clone()).await.unwrap()
    }

    /// The raw entries of the snapshot list.
    pub(super) async fn snapshots(&self) -> Vec<Vec<u8>> {
        self.raw("LRANGE {p}:S 0 -1").await
    }

    /// Moves the start of every snapshot `ms` into the past.
    pub(super) async fn age_snapshots(&self, ms: u64) {
        for (at, mut entry) in self.snapshots().await.into_iter().enumerate() {
            let start = u64::from_be_bytes(entry[8..16].try_into().unwrap()) - ms;
            entry[8..16].copy_from_slice(&start.to_be_bytes());
            self.raw_of::<(), &[u8]>(&[b"LSET", b"{p}:S", at.to_string().as_bytes(), &entry]).await;
        }
    }

    pub(super) async fn put(&self, text: &str, value: &str) -> Version {
        put(&self.store, text, value).await
    }

    pub(super) async fn get(&self, text: &str) -> Option<String> {
        get(&self.store, text).await
    }
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

/// Polls until `condition` holds; fails after ten seconds.
pub(super) async fn until<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    let deadline = ambient::monotonic() + Duration::from_secs(10);
    while !condition().await {
        assert!(ambient::monotonic() < deadline, "did not happen within ten seconds");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
