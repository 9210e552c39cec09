//! Sentinel: who the primary is, and what happens when it is another one.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use zlink_test_servers::{SentinelSettings, SentinelTrio, Settings};

use super::*;
use crate::LocationStore;
use crate::contract::{Condition, Key, Mutation, ReadResult, WriteRequest, WriteResult};
use crate::engine::StoreOptions;

const LINES: [Line; 3] = [Line::Small, Line::Acked, Line::Blobs];

fn trio(settings: SentinelSettings) -> SentinelTrio {
    SentinelTrio::with(settings).unwrap()
}

/// What claims to be a sentinel and names whom it is told.
fn naming(port: &Arc<AtomicU16>) -> Proxy {
    let port = Arc::clone(port);
    Proxy::fake(move |request| match request.name().as_str() {
        "SENTINEL" => match port.load(Ordering::SeqCst) {
            0 => Action::line("*-1"),
            port => {
                let text = |text: &str| zlink_test_servers::Value::Bytes(text.as_bytes().to_vec());
                Action::value(&zlink_test_servers::Value::Array(vec![text("127.0.0.1"), text(&port.to_string())]))
            }
        },
        name => Action::line(&format!("-ERR unknown command '{name}'")),
    })
    .unwrap()
}

fn url_of(sentinels: &[Proxy]) -> String {
    let hosts: Vec<_> = sentinels.iter().map(Proxy::address).collect();
    format!("redis+sentinel://{}/m", hosts.join(","))
}

fn secrets() -> SentinelSettings {
    let secret = |text: &str| Some(text.to_owned());
    SentinelSettings { password: secret("of data"), sentinel_password: secret("of sentinels"), ..SentinelSettings::default() }
}

/// Puts new records until `stop`: a conflict would be a false one.
async fn puts(store: LocationStore, stop: Arc<AtomicBool>) -> (u32, Vec<Error>) {
    let (mut applied, mut failed) = (0, Vec::new());
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let key = Key::new(format!("k/{number}")).unwrap();
        let put = WriteRequest::new().condition(Condition::Missing { key: key.clone() }).mutation(Mutation::put(key, "v"));
        match store.write(put).await {
            Ok(WriteResult::Applied { .. }) => applied += 1,
            Ok(WriteResult::Conflict { .. }) => panic!("a conflict of k/{number}, which nobody else puts"),
            Err(error) => failed.push(error),
        }
    }
    (applied, failed)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_is_found_and_followed_with_both_passwords() {
    let _turn = turn().await;
    let mut trio = trio(secrets());
    let native = native(&format!("{}&client_name=ours", trio.url()));
    for line in LINES {
        let ping = native.send(line, Slot::default(), Arc::new(batch(&[&["SET", "a", "1"]])), &writing(10_000)).await;
        assert_eq!(ping.unwrap(), [bytes("OK")]);
    }
    let clients = trio.servers()[0].say(&["CLIENT", "LIST"]).text();
    assert_eq!(clients.matches("name=ours").count(), 3, "one connection for each line, at the primary: {clients}");
    let store = LocationStore::open(&*trio.url(), StoreOptions::with_prefix("p").unwrap()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(puts(store.clone(), Arc::clone(&stop)));
    until("the load is at work", || trio.server(0).say(&["EXISTS", "{p}:r:k/20"]).number() == 1).await;
    trio.in_step(2);
    trio.servers()[0].kill().unwrap();
    let promoted = tokio::task::block_in_place(|| trio.promoted(0));
    // Stated in docs/operations.md: five seconds behind the promotion, a store works.
    let (works, took) = timed(store.read(Key::new("k/0").unwrap())).await;
    assert!(matches!(works.unwrap(), ReadResult::Found(_)));
    assert!(took < Duration::from_secs(5), "{took:?} after the promotion of {promoted}");
    stop.store(true, Ordering::SeqCst);
    let (applied, failed) = load.await.unwrap();
    assert!(applied >= 20, "{applied}");
    for error in failed {
        assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error}");
    }
    for line in LINES {
        let get = native.send(line, Slot::default(), Arc::new(batch(&[&["GET", "a"]])), &reading(10_000)).await;
        assert_eq!(get.unwrap(), [bytes("1")]);
    }
}

#[tokio::test]
async fn what_no_sentinel_will_ever_say_ends_at_once() {
    let _turn = turn().await;
    let trio = trio(secrets());
    let alone = RedisServer::start(&[]).unwrap();
    let wrong_name = trio.url().replace("/mymaster", "/other");
    let wrong_password = trio.url().replace("of%20sentinels", "hunter2");
    let no_password = trio.url().split_once('?').unwrap().0.to_owned();
    let no_sentinel = format!("redis+sentinel://127.0.0.1:{}/mymaster", alone.port());
    let wrong_data_password = trio.url().replace("of%20data", "hunter2");
    for (url, code, said) in [
        (wrong_name, Code::Unavailable, "'other'"),
        (wrong_password, Code::Unauthenticated, "sentinel_password"),
        (no_password, Code::Unauthenticated, "sentinel_password"),
        (no_sentinel, Code::Incompatible, "it is no sentinel"),
        (wrong_data_password, Code::Unauthenticated, "refused the user or the password"),
    ] {
        let (result, took) = timed(one(&native(&url), &["PING"], &writing(30_000))).await;
        let error = not_sent(result);
        assert_eq!((error.code(), error.outcome()), (code, Outcome::NotApplied), "{url}: {error}");
        assert!(error.message().contains(said) && !error.message().contains("hunter2"), "{url}: {error}");
        assert!(took < Duration::from_secs(10), "nothing to wait for: {took:?}");
    }
}

#[tokio::test]
async fn one_sentinel_that_knows_is_enough() {
    let _turn = turn().await;
    let mut trio = trio(SentinelSettings { replicas: 0, ..SentinelSettings::default() });
    trio.sentinels()[0].kill().unwrap();
    trio.sentinels()[1].pause().unwrap();
    let (pong, took) = timed(one(&native(&trio.url()), &["PING"], &reading(20_000))).await;
    assert_eq!(pong.unwrap(), bytes("PONG"));
    assert!(took < Duration::from_secs(5), "{took:?}");
    trio.sentinels()[1].resume().unwrap();
    let ports: Vec<u16> = trio.sentinels().iter().map(RedisServer::port).collect();
    drop(trio);
    let native = native(&format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{}/mymaster", ports[0], ports[1]));
    let error = not_sent(one(&native, &["PING"], &writing(600)).await);
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("'mymaster'") && error.message().contains("refused"), "{error}");
}

/// Which step it was that took too long: here the primary is not to blame, nor TLS.
#[tokio::test]
async fn sentinels_that_disagree_once_we_are_connected_are_named() {
    let (_server, proxy) = pair();
    let proxy = Arc::new(proxy);
    let agreed = naming(&Arc::new(AtomicU16::new(proxy.port())));
    let primary = Arc::clone(&proxy);
    let other = Proxy::fake(move |_| {
        let text = |text: &str| zlink_test_servers::Value::Bytes(text.as_bytes().to_vec());
        // Another one as soon as somebody is connected there.
        let port = if primary.open() == 0 { primary.port() } else { 1 };
        Action::value(&zlink_test_servers::Value::Array(vec![text("127.0.0.1"), text(&port.to_string())]))
    });
    let sentinels = [agreed, other.unwrap()];
    let url = format!("{}?connect_timeout_ms=300", url_of(&sentinels));
    let error = not_sent(one(&native(&url), &["PING"], &writing(1_000)).await);
    assert_eq!(error.outcome(), Outcome::NotApplied);
    assert!(error.message().contains("sentinel") && !error.message().contains("TLS"), "{error}");
    assert!(proxy.seen("HELLO") > 0, "it came as far as that");
}

/// An old primary that is cut off from its sentinels, or demoted without a word, answers all the same.
#[tokio::test]
async fn a_primary_that_most_sentinels_have_left_is_left() {
    let _turn = turn().await;
    let (old, new) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    let named = [old.port(), old.port(), old.port()].map(|port| Arc::new(AtomicU16::new(port)));
    let sentinels = named.each_ref().map(naming);
    let native = native(&url_of(&sentinels));
    for line in LINES {
        native.send(line, Slot::default(), Arc::new(batch(&[&["PING"]])), &reading(5_000)).await.unwrap();
    }
    let at = async || {
        let mut ports = Vec::new();
        for line in LINES {
            let get = batch(&[&["CONFIG", "GET", "port"]]);
            let mut replies = native.send(line, Slot::default(), Arc::new(get), &reading(5_000)).await.unwrap();
            let Reply::Array(items) = replies.remove(0) else { panic!("no port") };
            ports.push(items[1].clone());
        }
        ports
    };
    let all_at = |server: &RedisServer| vec![bytes(&server.port().to_string()); 3];
    // One that is cut off itself may be wrong.
    named[0].store(new.port(), Ordering::SeqCst);
    let looks = sentinels[2].seen("SENTINEL");
    while sentinels[2].seen("SENTINEL") < looks + 3 {
        assert_eq!(at().await, all_at(&old));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    named[1].store(new.port(), Ordering::SeqCst);
    for _ in 0..500 {
        if at().await == all_at(&new) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The one that is wrong now is not asked first any more.
    for _ in 0..50 {
        assert_eq!(at().await, all_at(&new));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_replica_that_is_named_is_not_taken() {
    let _turn = turn().await;
    let primary = RedisServer::start(&[]).unwrap();
    let replica = RedisServer::with(Settings { replica_of: Some(primary.port()), ..Settings::default() }).unwrap();
    let named = Arc::new(AtomicU16::new(replica.port()));
    let sentinel = naming(&named);
    let native = native(&url_of(std::slice::from_ref(&sentinel)));
    let error = not_sent(one(&native, &["SET", "a", "1"], &writing(500)).await);
    assert!(error.message().contains("replica"), "{error}");
    let waiting = one(&native, &["SET", "a", "1"], &writing(10_000));
    let (set, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        named.store(primary.port(), Ordering::SeqCst);
    });
    assert_eq!(set.unwrap(), bytes("OK"));
}

/// An old primary that was started again, with nothing in it, takes itself for the primary until the sentinels tell it otherwise, and
/// some of these learn later than others that another one was promoted.
#[tokio::test]
async fn an_old_primary_that_came_back_empty_is_not_taken() {
    let _turn = turn().await;
    let (mut old, new) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    new.say(&["SET", "a", "1"]);
    for (behind, not_promoted_yet) in [(1, false), (2, false), (2, true)] {
        let named = [old.port(), old.port(), old.port()].map(|port| Arc::new(AtomicU16::new(port)));
        let sentinels = named.each_ref().map(naming);
        let native = native(&url_of(&sentinels));
        old.say(&["SET", "a", "1"]);
        for line in LINES {
            native.send(line, Slot::default(), Arc::new(batch(&[&["PING"]])), &reading(5_000)).await.unwrap();
        }
        // Those that are asked first are behind.
        named[behind..].iter().for_each(|named| named.store(new.port(), Ordering::SeqCst));
        old.kill().unwrap();
        if not_promoted_yet {
            new.say(&["REPLICAOF", "127.0.0.1", "1"]);
        } else {
            old.restart().unwrap();
        }
        let get = async {
            for line in LINES {
                let read = native.send(line, Slot::default(), Arc::new(batch(&[&["GET", "a"]])), &reading(10_000)).await;
                assert_eq!(read.unwrap(), [bytes("1")], "{behind} of 3 sentinels are behind");
            }
        };
        let learn = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            if not_promoted_yet {
                // Neither was to be had so far.
                old.restart().unwrap();
                tokio::time::sleep(Duration::from_millis(300)).await;
                new.say(&["REPLICAOF", "NO", "ONE"]);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            named.iter().for_each(|named| named.store(new.port(), Ordering::SeqCst));
        };
        tokio::join!(get, learn);
    }
}

/// One that has missed a failover names the old primary for good, which is there and takes itself for the primary; the right one
/// is not to be had for a moment.
#[tokio::test]
async fn one_that_is_behind_for_good_does_not_outvote_the_others() {
    let _turn = turn().await;
    let (old, mut new) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    for agreed_before in [true, false] {
        let named = [new.port(), new.port(), if agreed_before { new.port() } else { old.port() }];
        let named = named.map(|port| Arc::new(AtomicU16::new(port)));
        let sentinels = named.each_ref().map(naming);
        let native = native(&url_of(&sentinels));
        let port_of_new = bytes(&new.port().to_string());
        let all_at_new = async |native: &Native| {
            for line in LINES {
                let port = Arc::new(batch(&[&["CONFIG", "GET", "port"]]));
                let mut replies = native.send(line, Slot::default(), port, &reading(10_000)).await.unwrap();
                let Reply::Array(items) = replies.remove(0) else { panic!("no port") };
                assert_eq!(items[1], port_of_new, "agreed before: {agreed_before}");
            }
        };
        all_at_new(&native).await;
        named[2].store(old.port(), Ordering::SeqCst);
        new.kill().unwrap();
        let error = one(&native, &["PING"], &reading(300)).await;
        assert!(error.is_err(), "{error:?}");
        new.restart().unwrap();
        all_at_new(&native).await;
    }
}

#[tokio::test]
async fn of_as_many_on_each_side_the_one_that_is_to_be_had_is_right() {
    let _turn = turn().await;
    let (mut gone, there) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    gone.kill().unwrap();
    for named in [[gone.port(), there.port()], [there.port(), gone.port()]] {
        let sentinels = named.map(|port| naming(&Arc::new(AtomicU16::new(port))));
        let native = native(&url_of(&sentinels));
        let set = one(&native, &["SET", "a", &named[0].to_string()], &writing(10_000)).await;
        assert_eq!(set.unwrap(), bytes("OK"));
        assert_eq!(there.say(&["GET", "a"]).text(), named[0].to_string());
    }
}
