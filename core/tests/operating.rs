//! How the server is set: what the stores bear, and what they warn of.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::{Debug, Write};
use std::sync::{Mutex, Once};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, Key, LocationStore, LockOptions, Mutation, Project, ProjectId, ProjectOptions,
    ReadResult, ReleaseResult, RelocationStore, Retention, StoreOptions, WriteRequest, limits,
};
use zlink_test_servers::{Action, Proxy, RedisServer, rights};

/// The warnings of this process so far.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().starts_with("zlink_store")
    }

    fn event(&self, event: &Event<'_>) {
        let mut said = Said(String::new());
        event.record(&mut said);
        WARNINGS.lock().unwrap().push(said.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Said(String);

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
}

/// How often a server with that policy was warned of. The name is nobody else's.
fn warned(policy: &str) -> usize {
    WARNINGS.lock().unwrap().iter().filter(|said| said.contains(policy)).count()
}

/// Opens both stores on a server with that policy, and uses them.
async fn use_stores(policy: &str, parameters: &str) {
    let server = RedisServer::start(&["--maxmemory-policy", policy]).unwrap();
    let url = format!("{}{parameters}", server.url());
    let options = || StoreOptions::with_prefix("p").unwrap();
    let location = LocationStore::open(&*url, options()).unwrap();
    let relocation = RelocationStore::open(&*url, options()).unwrap();
    for _ in 0..3 {
        location.write(WriteRequest::new().mutation(Mutation::put(Key::new("k").unwrap(), "v"))).await.unwrap();
        relocation.read(BlobReference::new("r").unwrap()).await.unwrap();
    }
    let asked = || server.say(&["INFO", "commandstats"]).text().contains("cmdstat_info:");
    if parameters.is_empty() {
        until(asked).await;
    }
}

async fn until(mut there: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if there() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within ten seconds");
}

#[tokio::test]
async fn a_server_that_may_evict_is_warned_of_once() {
    listen();
    use_stores("allkeys-random", "").await;
    until(|| warned("allkeys-random") > 0).await;
    // What is meant, and what is harmless, says nothing; and each server would have been heard before the last one.
    use_stores("allkeys-lru", "?allow_eviction=true").await;
    use_stores("noeviction", "").await;
    use_stores("volatile-random", "").await;
    until(|| warned("volatile-random") > 0).await;
    for (policy, times) in [("allkeys-random", 1), ("allkeys-lru", 0), ("\"noeviction\"", 0), ("volatile-random", 1)] {
        assert_eq!(warned(policy), times, "{policy}: {:?}", WARNINGS.lock().unwrap());
    }
}

#[tokio::test]
async fn who_may_not_listen_for_releases_is_warned_of_and_waits_all_the_same() {
    listen();
    let server = RedisServer::start(&[]).unwrap();
    for (number, (missing, said)) in
        [("+subscribe", "SUBSCRIBE"), ("&zlink-project:wake:*", "the store's channels"), ("+publish", "")].into_iter().enumerate()
    {
        let rules: Vec<_> = rights::of_data().into_iter().filter(|rule| *rule != missing).collect();
        let words: Vec<_> = ["ACL", "SETUSER", "app", "reset", "on", ">secret"].into_iter().chain(rules).collect();
        assert_eq!(server.say(&words).text(), "OK");
        let url = server.url().replace("redis://", "redis://app:secret@");
        let id = ProjectId::new("w", format!("p{number}")).unwrap();
        let project = Project::open(&*url, id, ProjectOptions::default()).unwrap();
        let options = |wait_ms| LockOptions { wait_ms, ..LockOptions::default() };
        let lease = project.locks().acquire("lock", options(0)).await.unwrap().unwrap();
        let waiting = tokio::spawn(project.locks().acquire("lock", options(10_000)));
        if said.is_empty() {
            until(|| server.say(&["PUBSUB", "CHANNELS"]).items().len() == 1).await;
        } else {
            until(|| warned(said) > 0).await;
        }
        assert_eq!(lease.release().await.unwrap(), ReleaseResult::Released);
        let next = waiting.await.unwrap().unwrap().expect("its turn comes");
        assert_eq!(next.release().await.unwrap(), ReleaseResult::Released);
        project.close().await;
    }
}

#[tokio::test]
async fn who_may_not_listen_is_warned_of_once_until_that_changes() {
    listen();
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::to(server.port()).unwrap();
    let refuse = || {
        proxy.judge(|request| match request.name().as_str() {
            "SUBSCRIBE" => Action::line("-NOPERM this user has no permissions to run the 'told_apart' command"),
            _ => Action::Pass,
        });
    };
    let project = Project::open(&*proxy.url(), ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    let options = |wait_ms| LockOptions { wait_ms, ..LockOptions::default() };
    let _lease = project.locks().acquire("lock", options(0)).await.unwrap().unwrap();
    let waiting = tokio::spawn(project.locks().acquire("lock", options(10_000)));
    // Whenever the other lines are connected anew, somebody tries to listen again.
    for (warnings, listens) in [(1, 0), (1, 0), (1, 0), (1, 1), (2, 0), (2, 0)] {
        if listens == 0 {
            refuse()
        } else {
            proxy.pass()
        }
        let tried = proxy.seen("SUBSCRIBE");
        proxy.cut_all();
        until(|| proxy.seen("SUBSCRIBE") > tried).await;
        until(|| server.say(&["PUBSUB", "CHANNELS"]).items().len() == listens).await;
        until(|| warned("TOLD_APART") >= warnings).await;
        assert_eq!(warned("TOLD_APART"), warnings);
    }
    waiting.abort();
}

#[tokio::test]
async fn the_least_proto_max_bulk_len_that_redis_takes_is_enough() {
    let server = RedisServer::start(&["--proto-max-bulk-len", "1mb"]).unwrap();
    let options = || StoreOptions::with_prefix("p").unwrap();
    let location = LocationStore::open(&*server.url(), options()).unwrap();
    let key = |name: &str| Key::new(name).unwrap();
    let value = vec![7; limits::MAX_VALUE];
    let alone = WriteRequest::new().mutation(Mutation::put(key("a"), value.clone()));
    let several = alone.clone().mutation(Mutation::put(key("b"), value.clone())).mutation(Mutation::delete(key("c")));
    for request in [alone, several] {
        location.write(request).await.unwrap();
        let ReadResult::Found(found) = location.read(key("a")).await.unwrap() else { panic!("missing") };
        assert!(found.bytes == value);
    }
    let relocation = RelocationStore::open(&*server.url(), options()).unwrap();
    let reference = || BlobReference::new("r").unwrap();
    let blob = vec![7; 3 * limits::MAX_VALUE];
    let stored = relocation.put(reference(), blob.clone(), Retention::from_ms(60_000).unwrap()).await.unwrap();
    assert!(matches!(stored, BlobPutResult::Stored { .. }));
    let BlobReadResult::Found { bytes, .. } = relocation.read(reference()).await.unwrap() else { panic!("missing") };
    assert!(bytes == blob);
}
