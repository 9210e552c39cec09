//! Each right of docs/operations.md is needed: a user without it is told which one it is. That they are enough, the scenarios show
//! that run with them alone (`conformance.rs`).

use zlink_store::{
    BlobReference, Code, Error, Key, KeyPrefix, LocationStore, LockOptions, Mutation, Outcome, Project, ProjectId,
    ProjectOptions, RelocationStore, Retention, StateWriteOptions, StoreOptions, WriteRequest,
};
use zlink_test_conformance::place::{Engine, Places};
use zlink_test_conformance::scenario::{Scenario, run, scenarios};
use zlink_test_servers::{RedisServer, Settings, rights};

/// A right to run a command, and a scenario that fails without it.
const NEEDED_BY: &[(&str, &str)] = &[
    ("+time", "arguments/blob-retention-outside-its-range-is-refused"),
    ("+get", "arguments/blob-retention-outside-its-range-is-refused"),
    ("+mget", "read/a-key-never-put-is-missing"),
    ("+getrange", "arguments/blob-retention-outside-its-range-is-refused"),
    ("+strlen", "cursor/a-cursor-outlives-the-store-object-it-came-from"),
    ("+exists", "lifecycle/a-closed-relocation-store-fails-with-closed"),
    ("+type", "lifecycle/a-closed-relocation-store-fails-with-closed"),
    ("+zcard", "write/an-empty-request-is-applied"),
    ("+zscore", "with-lock/a-release-of-it-hands-the-lock-on"),
    ("+zrange", "state-json/a-refused-value-changes-nothing"),
    ("+zrangebylex", "arguments/write-of-2049-keys-is-refused"),
    ("+zrangebyscore", "arguments/encoded-size-counts-a-key-in-both-lists-once"),
    ("+lindex", "write/an-empty-request-is-applied"),
    ("+lrange", "cursor/a-truncated-or-extended-cursor-is-expired"),
    ("+llen", "cursor/a-cursor-outlives-the-store-object-it-came-from"),
    ("+hlen", "locks/a-free-lock-is-had"),
    ("+hmget", "with-lock/a-project-closed-within-is-told-in-place-of-the-result"),
    ("+eval", "locks/tokens-grow-when-everything-else-is-deleted"),
    ("+evalsha", "lifecycle/a-closed-relocation-store-fails-with-closed"),
    ("+eval_ro", "lock-expiry/an-expired-lease-is-lost"),
    ("+evalsha_ro", "locks/what-is-no-id-is-attached-to-nothing"),
    ("+multi", "arguments/blob-retention-outside-its-range-is-refused"),
    ("+exec", "arguments/blob-retention-outside-its-range-is-refused"),
    ("+incr", "read/found-has-bytes-version-and-store-now"),
    ("+incrby", "write/put-versions-follow-the-order-of-the-puts"),
    ("+set", "lifecycle/a-closed-relocation-store-fails-with-closed"),
    ("+mset", "write/put-versions-follow-the-order-of-the-puts"),
    ("+setrange", "blob/renew-sets-the-expiry-later"),
    ("+del", "arguments/same-key-once-in-conditions-and-once-in-mutations-is-fine"),
    ("+unlink", "state/the-example-of-the-reference"),
    ("+rename", "lifecycle/a-closed-relocation-store-fails-with-closed"),
    ("+pexpireat", "lifecycle/a-closed-relocation-store-fails-with-closed"),
    ("+zadd", "lifecycle/a-closed-location-store-fails-with-closed"),
    ("+zrem", "locks/a-free-lock-is-had"),
    ("+rpush", "cursor/a-truncated-or-extended-cursor-is-expired"),
    ("+lset", "cursor/a-cursor-outlives-the-store-object-it-came-from"),
    ("+ltrim", "snapshot/unfinished-scans-are-counted-over-all-clients-of-a-store"),
    ("+hset", "locks/a-free-lock-is-had"),
    ("+hget", "locks/a-free-lock-is-had"),
    ("+hdel", "locks/a-free-lock-is-had"),
    ("+pexpire", "with-lock/a-release-of-it-hands-the-lock-on"),
    ("+persist", "state/a-set-gives-back-the-entry"),
    ("+zcount", "state/a-set-gives-back-the-entry"),
    ("+zrevrangebylex", "with-lock/a-release-of-it-hands-the-lock-on"),
];
/// Without these a release wakes nobody, and who waits asks by himself: `core/tests/operating.rs`.
const OF_WAKING: [&str; 3] = ["&zlink-project:wake:*", "+publish", "+subscribe"];
/// Keys: of each kind of store.
const KEYS: [&str; 3] = ["~{app}:*", "~{app:*", "~zlink-project{*"];

fn named(name: &str) -> Scenario {
    let found = scenarios().unwrap_or_default().into_iter().find(|scenario| scenario.name == name);
    found.unwrap_or_else(|| panic!("no scenario is called {name}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_each_right_of_the_page() {
    let page = rights::of_data();
    let known = |rule: &&&str| {
        **rule == "resetchannels"
            || OF_WAKING.contains(rule)
            || KEYS.contains(rule)
            || NEEDED_BY.iter().any(|(of, _)| of == *rule)
    };
    assert_eq!(page.iter().filter(known).count(), page.len(), "the page has a right that no test takes away: {page:?}");
    let places = Places::default();
    let attempts = NEEDED_BY.iter().map(async |(rule, name)| {
        assert!(page.contains(rule), "{rule} is not on the page");
        // A script's text is only sent to a server that nobody has sent it to.
        let own = Places::default();
        let places = if matches!(*rule, "+eval" | "+eval_ro") { &own } else { &places };
        let place = places.new_place_without(rule).unwrap();
        let said = run(&named(name), &place, Engine::Redis.capabilities()).await.expect_err(rule);
        let command = format!("the ACL user may not run the command {}", rule[1..].to_uppercase());
        assert!(said.contains(&command), "without {rule} in {name}: {said}");
    });
    futures_util::future::join_all(attempts).await;
}

/// As the page has it, for the key prefix `app`.
#[tokio::test]
async fn without_the_keys_of_each_kind_of_store() {
    let server = RedisServer::start(&[]).unwrap();
    for missing in KEYS {
        let rules: Vec<_> = rights::of_data().into_iter().filter(|rule| *rule != missing).collect();
        let words: Vec<_> = ["ACL", "SETUSER", "app", "reset", "on", ">secret"].into_iter().chain(rules).collect();
        assert_eq!(server.say(&words).text(), "OK");
        let url = server.url().replace("redis://", "redis://app:secret@");
        let options = || StoreOptions { key_prefix: KeyPrefix::new("app").unwrap(), operation_timeout_ms: 10_000 };
        let records = LocationStore::open(&url, options()).unwrap();
        let blobs = RelocationStore::open(&url, options()).unwrap();
        let project = Project::open(&url, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
        let results = [
            records.read(Key::new("k").unwrap()).await.map(drop),
            blobs.read(BlobReference::new("b").unwrap()).await.map(drop),
            project.locks().acquire("l", LockOptions::default()).await.map(drop),
        ];
        for (of, result) in KEYS.iter().zip(results) {
            let told = |error: &Error| error.code() == Code::Unauthenticated && error.message().contains("the store's keys");
            if *of == missing {
                assert!(result.as_ref().is_err_and(told), "without {missing}: {result:?}");
            } else {
                assert!(result.is_ok(), "without {missing}: {result:?}");
            }
        }
        records.close().await;
        blobs.close().await;
        project.close().await;
    }
}

/// With `min_acked_replicas`. Each commit stands by the time WAIT is refused, so nobody may be told that it was not applied.
#[tokio::test]
async fn who_may_not_wait_for_replicas_is_told_so_and_commits_are_unknown() {
    let primary = RedisServer::start(&[]).unwrap();
    let replica = RedisServer::with(Settings { replica_of: Some(primary.port()), ..Settings::default() }).unwrap();
    let url = format!("redis://app:secret@127.0.0.1:{}?min_acked_replicas=1", primary.port());
    let options = || StoreOptions { key_prefix: KeyPrefix::new("app").unwrap(), operation_timeout_ms: 10_000 };
    for may_wait in [false, true] {
        let more = may_wait.then_some("+wait");
        let words: Vec<_> =
            ["ACL", "SETUSER", "app", "reset", "on", ">secret"].into_iter().chain(rights::of_data()).chain(more).collect();
        assert_eq!(primary.say(&words).text(), "OK");
        let records = LocationStore::open(&url, options()).unwrap();
        let blobs = RelocationStore::open(&url, options()).unwrap();
        let project = Project::open(&url, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
        let state = project.state().namespace("n").unwrap();
        let (key, reference) = (|| Key::new("k").unwrap(), || BlobReference::new("b").unwrap());
        let minute = Retention::from_ms(60_000).unwrap();
        let writes = [
            ("put", records.write(WriteRequest::new().mutation(Mutation::put(key(), "v"))).await.map(drop)),
            ("blob put", blobs.put(reference(), "bytes", minute).await.map(drop)),
            ("renew", blobs.renew(reference(), minute).await.map(drop)),
            ("set", state.set("k", "1", StateWriteOptions::default()).await.map(drop)),
            ("acquire", project.locks().acquire("l", LockOptions::default()).await.map(drop)),
        ];
        for (what, result) in writes {
            if may_wait {
                assert!(result.is_ok(), "{what}: {result:?}");
                continue;
            }
            let error = result.expect_err(what);
            assert_eq!((error.code(), error.outcome()), (Code::Unauthenticated, Outcome::Unknown), "{what}: {error}");
            assert!(error.message().contains("the ACL user may not run the command WAIT"), "{what}: {error}");
        }
        // What only looks waits for nobody.
        records.read(key()).await.unwrap();
        blobs.read(reference()).await.unwrap();
        state.get("k").await.unwrap();
        records.close().await;
        blobs.close().await;
        project.close().await;
    }
    drop(replica);
}
