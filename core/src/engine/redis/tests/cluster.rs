//! Cluster: every batch goes where its slot is, wherever that goes.

use std::sync::atomic::{AtomicBool, Ordering};

use zlink_test_servers::{Cluster, ClusterSettings};

use super::*;
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Condition, Key, LockOptions, Mutation, ProjectId, ReadResult,
    ReleaseResult, Retention, ScanRequest, ScanResult, StateSetResult, StateWriteOptions, WriteRequest, WriteResult,
};
use crate::engine::StoreOptions;
use crate::engine::redis::client::Script;
use crate::{LocationStore, Project, ProjectOptions, RelocationStore};

static COUNT: Script = Script::writing("return redis.call('INCR', KEYS[1]) -- for the tests of Clusters");

const LINES: [Line; 3] = [Line::Small, Line::Acked, Line::Blobs];

fn of_primaries(more: &[&str]) -> Cluster {
    let more = more.iter().map(|&setting| setting.to_owned()).collect();
    Cluster::with(ClusterSettings { replicas: 0, more, ..ClusterSettings::default() }).unwrap()
}

/// A name whose hash tag lies in one of the three shards, as they were made.
fn tag_in(shard: u16, unlike: &str) -> String {
    let tags = (0..).map(|number| format!("{unlike}{number}"));
    let mut tags = tags.filter(|tag| 3 * u32::from(Slot::of(tag.as_bytes()).number()) / 16_384 == u32::from(shard));
    tags.next().unwrap()
}

fn location(url: &str, prefix: &str, ms: u64) -> LocationStore {
    let options = StoreOptions { operation_timeout_ms: ms, ..StoreOptions::with_prefix(prefix).unwrap() };
    LocationStore::open(url, options).unwrap()
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Creates a record that nobody else creates: a conflict would be a false one.
async fn create(store: &LocationStore, name: &str) -> Result<(), Error> {
    let put = Mutation::put(key(name), name.to_owned());
    match store.write(WriteRequest::new().condition(Condition::Missing { key: key(name) }).mutation(put)).await? {
        WriteResult::Applied { .. } => Ok(()),
        WriteResult::Conflict { .. } => panic!("a conflict of {name}, which nobody else creates"),
    }
}

/// Reads a record that is there: a missing one would be false.
async fn see(store: &LocationStore, name: &str) -> Result<(), Error> {
    match store.read(key(name)).await? {
        ReadResult::Found(value) => {
            assert_eq!(value.bytes, name);
            Ok(())
        }
        ReadResult::Missing { .. } => panic!("{name} is missing"),
    }
}

/// It was too late for another attempt. On a busy machine the deadline can come while one is under way: nobody knows then.
fn refused(result: Result<(), Error>, said: &str) {
    let error = result.unwrap_err();
    if error.code() != Code::Timeout {
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied), "{error}");
        assert!(error.message().contains(said), "{error}");
    }
}

async fn works(store: &LocationStore, name: &str) {
    create(store, name).await.unwrap();
    see(store, name).await.unwrap();
    let scanned = store.scan(ScanRequest::new(name, 10)).await.unwrap();
    assert!(matches!(&scanned, ScanResult::Page(page) if page.items.len() == 1), "{scanned:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_where_its_slot_is() {
    let _turn = turn().await;
    let secret = Some("of all nodes".to_owned());
    let cluster = Cluster::with(ClusterSettings { password: secret, ..ClusterSettings::default() }).unwrap();
    // A seed that nobody answers at, and a replica.
    let nobody = RedisServer::start(&[]).unwrap().port();
    let url = cluster.url_at(&[nobody, cluster.node(4).port()]);
    let transport = native(&format!("{url}?client_name=ours"));
    for shard in 0..3 {
        let tag = tag_in(shard, "t");
        for line in LINES {
            let set = batch(&[&["SET", &tag, "1"]]);
            let set = transport.send(line, Slot::of(tag.as_bytes()), Arc::new(set), &writing(10_000)).await;
            assert_eq!(set.unwrap(), [bytes("OK")]);
        }
        let node = cluster.node(usize::from(shard));
        assert_eq!(node.say(&["GET", &tag]).text(), "1");
        assert_eq!(node.say(&["CLIENT", "LIST"]).text().matches("name=ours").count(), 3, "one connection for each line");
        works(&location(&url, &tag, 10_000), "k").await;
    }
    blobs_on_all_shards(&cluster, &url).await;
    waiters_are_woken(&url).await;
    let acked = location(&format!("{url}?min_acked_replicas=1"), "acked", 10_000);
    works(&acked, "k").await;
    let error = create(&location(&format!("{url}?min_acked_replicas=2"), "acked", 800), "l").await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error}");
}

async fn blobs_on_all_shards(cluster: &Cluster, url: &str) {
    let sizes = || (0..3).map(|node| cluster.node(node).say(&["DBSIZE"]).number()).collect::<Vec<_>>();
    let before = sizes();
    let store = RelocationStore::open(url, StoreOptions::with_prefix("b").unwrap()).unwrap();
    let retention = Retention::from_ms(60_000).unwrap();
    let named = |number: u32| BlobReference::new(format!("blob/{number}")).unwrap();
    for number in 0..24 {
        let bytes = vec![7; if number % 4 == 0 { 900_000 } else { 1_000 }];
        let put = store.put(named(number), bytes.clone(), retention).await.unwrap();
        assert!(matches!(put, BlobPutResult::Stored { .. }), "{put:?}");
        let again = store.put(named(number), bytes.clone(), retention).await.unwrap();
        assert!(matches!(again, BlobPutResult::AlreadyStored { .. }), "{again:?}");
        let read = store.read(named(number)).await.unwrap();
        assert!(matches!(read, BlobReadResult::Found { bytes: read, .. } if read == bytes));
        let renewed = store.renew(named(number), retention).await.unwrap();
        assert!(matches!(renewed, BlobRenewResult::Renewed { .. }), "{renewed:?}");
    }
    assert!(before.iter().zip(sizes()).all(|(before, now)| *before < now), "{before:?} {:?}", sizes());
    for number in 0..24 {
        store.delete(named(number)).await.unwrap();
        assert!(matches!(store.read(named(number)).await.unwrap(), BlobReadResult::Missing { .. }));
    }
    store.ping().await.unwrap();
}

/// What is published at one node is heard at another: each round the waiters listen anew, anywhere.
async fn waiters_are_woken(url: &str) {
    let id = || ProjectId::new("w", "p").unwrap();
    let process = |name: &str| Project::open(&*format!("{url}?client_name={name}"), id(), ProjectOptions::default()).unwrap();
    let holder = process("holder");
    for round in 0..4 {
        let waiter = process(&format!("waiter-{round}"));
        let options = |wait| LockOptions { wait_ms: wait, ..LockOptions::default() };
        let lease = holder.locks().acquire("lock", options(0)).await.unwrap().unwrap();
        let locks = waiter.locks();
        let waiting = locks.acquire("lock", options(10_000));
        let release = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert_eq!(lease.release().await.unwrap(), ReleaseResult::Released);
        };
        let (got, ()) = tokio::join!(async { waiting.await.unwrap() }, release);
        assert_eq!(got.unwrap().release().await.unwrap(), ReleaseResult::Released);
        waiter.close().await;
    }
    holder.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_slot_is_followed_and_each_call_is_made_once() {
    let _turn = turn().await;
    let cluster = Arc::new(of_primaries(&[]));
    let client = client(&cluster.url()).at(b"n");
    let slot = Slot::of(b"n").number();
    let stop = Arc::new(AtomicBool::new(false));
    let counting = {
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            let mut counted = 0;
            while !stop.load(Ordering::SeqCst) {
                let reply = client.script(Line::Small, &COUNT, &[Bytes::from_static(b"n")], &[], false, &writing(10_000)).await;
                counted += 1;
                assert_eq!(reply.unwrap(), Reply::Int(counted));
            }
            (counted, client)
        })
    };
    for to in [0, 1, 2, 1, 0] {
        let cluster = Arc::clone(&cluster);
        let moving = move || {
            if cluster.owner(slot) != to {
                cluster.move_slot(slot, to);
            }
        };
        tokio::task::spawn_blocking(moving).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::SeqCst);
    let (counted, client) = counting.await.unwrap();
    assert_eq!(client.counters().reconnects.load(Ordering::Relaxed), 0, "none was lost");
    assert!(counted > 10, "{counted}");
    assert_eq!(cluster.node(0).say(&["GET", "n"]).text(), counted.to_string(), "each was done once");
}

/// Keys lie on either side for a while: single ones can be read, all others wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_slot_is_moving() {
    let _turn = turn().await;
    let cluster = of_primaries(&[]);
    let store = location(&cluster.url(), "p", 20_000);
    let hasty = location(&cluster.url(), "p", 700);
    let project = Project::open(&*cluster.url(), ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    let state = project.state().namespace("n").unwrap();
    let blobs = RelocationStore::open(&*cluster.url(), StoreOptions::with_prefix("b").unwrap()).unwrap();
    let blob = BlobReference::new("blob").unwrap();
    let content = Bytes::from(vec![3; 700_000]);
    blobs.put(blob.clone(), content.clone(), Retention::from_ms(600_000).unwrap()).await.unwrap();
    let set = state.set("entry", "1", StateWriteOptions::default()).await.unwrap();
    assert!(matches!(set, StateSetResult::Stored(_)), "{set:?}");
    for number in 0..40 {
        create(&store, &format!("k/{number}")).await.unwrap();
    }
    let tag_of_blob = {
        let keys = (0..3).flat_map(|node| cluster.node(node).say(&["KEYS", "{b:*}:b"]).items().to_vec());
        keys.map(|key| key.text()).next().unwrap()
    };
    for tag in ["{p}", "zlink-project{1:w:p}", &tag_of_blob] {
        let slot = Slot::of(tag.as_bytes()).number();
        let from = cluster.owner(slot);
        let to = (from + 1) % 3;
        cluster.begin_move(slot, to);
        loop {
            let moved = cluster.move_keys(slot, from, to, if tag == "{p}" { 9 } else { 1 });
            let reads = (0..40).map(async |number| {
                let name = format!("k/{number}");
                see(&store, &name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            });
            let nothing = async {
                assert!(matches!(store.read(key("never")).await.unwrap(), ReadResult::Missing { .. }));
            };
            tokio::join!(futures_util::future::join_all(reads), nothing);
            if tag == "{p}" && moved > 0 {
                match hasty.scan(ScanRequest::new("k/", 100)).await {
                    // The last keys had gone by then.
                    Ok(ScanResult::Page(page)) => assert_eq!(page.items.len(), 40, "part of what is there"),
                    Ok(ScanResult::Expired) => panic!("a first page is never expired"),
                    Err(error) => refused(Err(error), "TRYAGAIN"),
                }
            }
            assert!(state.get("entry").await.unwrap().is_some());
            let read = blobs.read(blob.clone()).await.unwrap();
            assert!(matches!(read, BlobReadResult::Found { bytes, .. } if bytes == content));
            if moved == 0 {
                break;
            }
        }
        if tag == "{p}" {
            // A new record's keys lie on both sides: neither applied nor refused.
            refused(create(&hasty, "late").await, "TRYAGAIN");
        }
        let created = async { if tag == "{p}" { create(&store, "waits").await } else { Ok(()) } };
        let ends = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            tokio::task::block_in_place(|| cluster.end_move(slot, from, to));
        };
        let (created, scanned, ()) = tokio::join!(created, store.scan(ScanRequest::new("k/", 100)), ends);
        created.unwrap();
        let scanned = scanned.unwrap();
        assert!(matches!(&scanned, ScanResult::Page(page) if page.items.len() == 40), "{scanned:?}");
    }
    for number in 0..40 {
        see(&store, &format!("k/{number}")).await.unwrap();
    }
    works(&store, "z/behind").await;
    see(&store, "waits").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_fails_over_and_the_others_do_not_notice() {
    let _turn = turn().await;
    let more = ["--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"].map(str::to_owned).into();
    let mut cluster = Cluster::with(ClusterSettings { more, ..ClusterSettings::default() }).unwrap();
    let url = cluster.url();
    let tags = [0, 1, 2].map(|shard| tag_in(shard, "s"));
    let stores = tags.each_ref().map(|tag| location(&url, tag, 5_000));
    for store in &stores {
        works(store, "before").await;
    }
    cluster.settled().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let loads = stores.each_ref().map(|store| tokio::spawn(load(store.clone(), Arc::clone(&stop))));
    tokio::time::sleep(Duration::from_millis(300)).await;
    cluster.nodes()[1].kill().unwrap();
    let slot = Slot::of(tags[1].as_bytes()).number();
    let promoted = tokio::task::block_in_place(|| cluster.promoted(slot, 1));
    let (seen, took) = timed(see(&stores[1], "before")).await;
    seen.unwrap();
    // Stated in docs/operations.md.
    assert!(took < Duration::from_secs(5), "{took:?} after the promotion of {promoted}");
    works(&stores[1], "after").await;
    // The stores share their connections; the one that was lost was made again elsewhere.
    assert_eq!(stores.each_ref().map(|store| store.stats().reconnects), [1, 1, 1]);
    stop.store(true, Ordering::SeqCst);
    for (shard, load) in loads.into_iter().enumerate() {
        let (acknowledged, failed) = load.await.unwrap();
        assert!(acknowledged > 5, "{acknowledged}");
        for error in failed {
            assert!(shard == 1 && matches!(error.code(), Code::Unavailable | Code::Timeout), "in shard {shard}: {error}");
        }
    }
}

/// Creates records, and reads one that was there long before and so is on the replica.
async fn load(store: LocationStore, stop: Arc<AtomicBool>) -> (u32, Vec<Error>) {
    let (mut acknowledged, mut failed) = (0, Vec::new());
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        match create(&store, &format!("k/{number}")).await {
            Ok(()) => acknowledged += 1,
            Err(error) => failed.push(error),
        }
        failed.extend(see(&store, "before").await.err());
    }
    (acknowledged, failed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_down_is_waited_for() {
    let _turn = turn().await;
    let mut cluster = of_primaries(&["--appendonly", "yes"]);
    let tag = tag_in(0, "d");
    let (store, hasty) = (location(&cluster.url(), &tag, 30_000), location(&cluster.url(), &tag, 1_500));
    works(&store, "before").await;
    cluster.nodes()[2].kill().unwrap();
    let down = || cluster.node(0).say(&["CLUSTER", "INFO"]).text().contains("cluster_state:fail");
    until("the others notice", down).await;
    refused(create(&hasty, "late").await, "CLUSTERDOWN");
    refused(see(&hasty, "before").await, "CLUSTERDOWN");
    let waits = async { tokio::join!(create(&store, "waits"), see(&store, "before")) };
    let ((created, seen), ()) = tokio::join!(waits, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tokio::task::block_in_place(|| cluster.nodes()[2].restart().unwrap());
    });
    created.unwrap();
    seen.unwrap();
}

#[tokio::test]
async fn what_is_no_cluster_or_refuses_us_says_so_at_once() {
    let _turn = turn().await;
    let alone = RedisServer::start(&[]).unwrap();
    let users = vec![("app".to_owned(), ">apps ~* +@all -cluster".to_owned())];
    let password = Some("right".to_owned());
    let settings = zlink_test_servers::Settings { cluster: true, password, users, ..Default::default() };
    let node = RedisServer::with(settings).unwrap();
    for (login, port, code, said) in [
        ("", alone.port(), Code::Incompatible, "no node of a Cluster"),
        (":hunter2@", node.port(), Code::Unauthenticated, "password"),
        ("app:apps@", node.port(), Code::Unauthenticated, "CLUSTER"),
    ] {
        let native = native(&format!("redis+cluster://{login}127.0.0.1:{port}"));
        let (result, took) = timed(one(&native, &["PING"], &writing(30_000))).await;
        let error = not_sent(result);
        assert_eq!((error.code(), error.outcome()), (code, Outcome::NotApplied), "{error}");
        assert!(error.message().contains(said) && !error.message().contains("hunter2"), "{error}");
        assert!(took < Duration::from_secs(10), "nothing to wait for: {took:?}");
    }
}
