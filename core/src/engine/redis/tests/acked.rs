//! `min_acked_replicas`: what is acknowledged is on that many replicas.

use zlink_test_servers::Settings;

use super::*;
use crate::engine::redis::client::Script;

static SET: Script = Script::writing("redis.call('SET', KEYS[1], ARGV[1]) return 'set'");
static SET_ONCE: Script = Script::writing(
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return 'found' end redis.call('SET', KEYS[1], ARGV[1]) return 'set'",
);

struct Rig {
    primary: RedisServer,
    replica: RedisServer,
    proxy: Proxy,
}

impl Rig {
    async fn new() -> Self {
        let primary = RedisServer::start(&[]).unwrap();
        let replica = RedisServer::with(Settings { replica_of: Some(primary.port()), ..Settings::default() }).unwrap();
        let proxy = Proxy::to(primary.port()).unwrap();
        let online = || primary.say(&["INFO", "replication"]).text().contains("state=online");
        until("the replica is there", online).await;
        Self { primary, replica, proxy }
    }

    fn client(&self, replicas: u32) -> Client {
        client(&format!("{}?min_acked_replicas={replicas}", self.proxy.url()))
    }
}

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn set(client: &Client, ms: u64) -> Result<Reply, Failure> {
    client.script(Line::Small, &SET, &[key("a")], &[key("1")], false, &writing(ms)).await
}

#[tokio::test]
async fn what_is_acknowledged_is_on_the_replica() {
    let rig = Rig::new().await;
    let client = rig.client(1);
    assert_eq!(set(&client, 5_000).await.unwrap(), bytes("set"));
    assert_eq!(rig.replica.say(&["GET", "a"]).text(), "1");
    set(&client, 5_000).await.unwrap();
    assert_eq!((rig.proxy.seen("EVAL"), rig.proxy.seen("EVALSHA")), (1, 1));
    assert_eq!(rig.proxy.seen("WAIT"), 2, "one per call");
    rig.primary.say(&["SCRIPT", "FLUSH"]);
    set(&client, 5_000).await.unwrap();
    assert_eq!((rig.proxy.seen("EVAL"), rig.proxy.seen("EVALSHA")), (2, 2));
}

/// The write was done, and nobody may ask whether a replica has it.
#[tokio::test]
async fn without_the_right_to_wait_nothing_is_acknowledged() {
    let rig = Rig::new().await;
    rig.primary.say(&["ACL", "SETUSER", "app", "on", ">secret", "~{app}:*", "+@all", "-wait"]);
    let url = format!("redis://app:secret@{}?min_acked_replicas=1", rig.proxy.address());
    let store = crate::LocationStore::open(&*url, crate::StoreOptions::with_prefix("app").unwrap()).unwrap();
    let put = |value: &'static str| {
        let put = crate::contract::Mutation::put(crate::contract::Key::new("k").unwrap(), value);
        store.write(crate::contract::WriteRequest::new().mutation(put))
    };
    for value in ["1", "2"] {
        let error = put(value).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Unauthenticated, Outcome::Unknown), "{error}");
        assert!(error.message().contains("command WAIT"), "{error}");
        assert!(rig.primary.say(&["GET", "{app}:r:k"]).text().ends_with(value), "the outcome is unknown since it was done");
    }
    rig.primary.say(&["ACL", "SETUSER", "app", "+wait"]);
    put("3").await.unwrap();
}

#[tokio::test]
async fn too_few_replicas_are_an_unknown_outcome() {
    let rig = Rig::new().await;
    for client in [rig.client(2), rig.client(1)] {
        if rig.primary.say(&["GET", "a"]).text() == "1" {
            rig.replica.pause().unwrap();
        }
        let (result, took) = timed(set(&client, 1_000)).await;
        let error = was_lost(result);
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
        assert!(error.message().contains("replicas"), "{error}");
        assert!(took < Duration::from_millis(1_200), "{took:?}");
        assert_eq!(rig.primary.say(&["GET", "a"]).text(), "1");
    }
    rig.replica.resume().unwrap();
}

#[tokio::test]
async fn a_wait_holds_up_nobody_else() {
    let rig = Rig::new().await;
    let client = rig.client(1);
    set(&client, 5_000).await.unwrap();
    rig.replica.pause().unwrap();
    let reads = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        timed(client.commands(Line::Small, batch(&[&["GET", "a"]]), true, &reading(5_000))).await
    };
    let (set, (read, took)) = tokio::join!(set(&client, 1_500), reads);
    assert!(set.is_err());
    assert_eq!(read.unwrap(), [bytes("1")]);
    assert!(took < Duration::from_millis(500), "reads have a connection of their own: {took:?}");
    rig.replica.resume().unwrap();
}

/// † WAIT answers at once on a connection that wrote nothing, and counts every replica.
#[tokio::test]
async fn a_look_on_a_fresh_connection_does_not_lie() {
    let rig = Rig::new().await;
    let client = rig.client(1);
    rig.replica.pause().unwrap();
    // The commit whose answer was lost: it is on the primary alone.
    rig.primary.say(&["SET", "a", "mark"]);
    let look = |ms| {
        let client = client.clone();
        async move { client.look(vec![vec![key("GET"), key("a")]], &key("witness"), &reading(ms)).await }
    };
    let error = was_lost(look(1_000).await);
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
    rig.replica.resume().unwrap();
    assert_eq!(look(10_000).await.unwrap(), [bytes("mark")]);
    assert_eq!(rig.replica.say(&["GET", "a"]).text(), "mark");
    assert!((1..=60).contains(&rig.primary.say(&["TTL", "witness"]).number()), "it goes by itself");
}

/// † A call that is repeated, finds its own work done and writes nothing waits for the replicas all the same.
#[tokio::test]
async fn a_repeated_call_that_finds_its_work_done_does_not_lie() {
    let rig = Rig::new().await;
    let client = rig.client(1);
    rig.replica.pause().unwrap();
    rig.primary.say(&["SET", "a", "mine"]);
    let again = |ms| {
        let client = client.clone();
        async move { client.script_again(Line::Small, &SET_ONCE, &[key("a")], &[key("mine")], &key("witness"), &writing(ms)).await }
    };
    assert_eq!(was_lost(again(1_000).await).outcome(), Outcome::Unknown);
    rig.replica.resume().unwrap();
    assert_eq!(again(10_000).await.unwrap(), bytes("found"));
    assert_eq!(rig.replica.say(&["GET", "a"]).text(), "mine");
}

#[tokio::test]
async fn without_the_setting_nothing_waits() {
    let rig = Rig::new().await;
    let client = rig.client(0);
    set(&client, 5_000).await.unwrap();
    let found = client.look(vec![vec![key("GET"), key("a")]], &key("witness"), &reading(5_000)).await.unwrap();
    assert_eq!(found, [bytes("1")]);
    client.script_again(Line::Small, &SET_ONCE, &[key("a")], &[key("1")], &key("witness"), &writing(5_000)).await.unwrap();
    assert_eq!((rig.proxy.seen("WAIT"), rig.proxy.seen("SET"), rig.proxy.accepted()), (0, 0, 1));
}
