//! Commits that replicas must acknowledge.

use zlink_test_servers::{Action, Proxy, RedisServer, Settings};

use super::super::commit::{COMMIT, PUT};
use super::rig::*;
use crate::contract::*;
use crate::engine::redis::tests::tap::{named, runs};
use crate::engine::redis::transport::Line;
use crate::{LocationStore, StoreOptions};

/// A replica of the rig's server, in step with it.
async fn replica(rig: &Rig) -> RedisServer {
    let replica = RedisServer::with(Settings { replica_of: Some(rig.server.port()), ..Settings::default() }).unwrap();
    until(async || rig.raw::<String>("INFO replication").await.contains("state=online")).await;
    replica
}

fn url(rig: &Rig) -> String {
    format!("{}?min_acked_replicas=1", rig.server.url())
}

/// A store that gives up early, so that a test of what is not acknowledged is short.
fn impatient(rig: &Rig) -> LocationStore {
    let options = StoreOptions { operation_timeout_ms: 1_500, ..StoreOptions::with_prefix("p").unwrap() };
    LocationStore::open(&url(rig), options).unwrap()
}

fn request(name: &str) -> WriteRequest {
    WriteRequest::new().mutation(Mutation::put(key(name), "new"))
}

fn two(name: &str) -> WriteRequest {
    request(name).mutation(Mutation::delete(key("none")))
}

fn unknown(result: Result<WriteResult, Error>) -> Error {
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::Unknown), "{error:?}");
    error
}

/// The error says that replicas are missing.
fn unacknowledged(result: Result<WriteResult, Error>) {
    let error = unknown(result);
    assert!(error.message().contains("replicas"), "{error}");
}

#[tokio::test]
async fn what_is_acknowledged_is_on_the_replica() {
    let rig = Rig::new().await;
    let replica = replica(&rig).await;
    let store = LocationStore::open(&url(&rig), StoreOptions::with_prefix("p").unwrap()).unwrap();
    for round in 0..20 {
        put(&store, "one", &round.to_string()).await;
        let copied = replica.say(&["GETRANGE", "{p}:r:one", "34", "-1"]);
        assert_eq!(copied.text(), round.to_string());
        applied(store.write(two("two")).await);
        assert_eq!(replica.say(&["EXISTS", "{p}:r:two"]).number(), 1);
        delete(&store, "two").await;
        assert_eq!(replica.say(&["EXISTS", "{p}:r:two"]).number(), 0);
    }
}

#[tokio::test]
async fn what_too_few_replicas_have_is_unknown_and_reads_go_on() {
    let rig = Rig::new().await;
    let replica = replica(&rig).await;
    let store = impatient(&rig);
    put(&store, "b", "1").await;
    applied(store.write(two("warm")).await);
    replica.pause().unwrap();
    for write in [request("c"), two("d"), WriteRequest::new().mutation(Mutation::delete(key("b")))] {
        unacknowledged(store.write(write).await);
        assert!(get(&store, "warm").await.is_some());
    }
    assert_eq!((get(&store, "b").await, get(&store, "c").await.is_some()), (None, true), "they were applied");
    replica.resume().unwrap();
}

/// † A look that finds our mark is a success only behind a write of its own and WAIT, on its own connection.
#[tokio::test]
async fn a_commit_that_a_look_finds_counts_once_replicas_have_it() {
    let rig = Rig::new().await;
    let replica = replica(&rig).await;
    for script in [&PUT, &COMMIT] {
        let (store, tap) = rig.tapped_at(&url(&rig));
        let write = |name: &str| store.write(if std::ptr::eq(script, &PUT) { request(name) } else { two(name) });
        applied(write("warm").await);
        tap.lose(runs(script));
        tap.lines();
        applied(write("a").await);
        let seen = tap.lines();
        let (line, look) = seen.iter().find(|(_, batch)| named("GETRANGE")(batch)).unwrap();
        let names: Vec<&[u8]> = look.commands.iter().map(|command| &command[0][..]).collect();
        assert_eq!((*line, &names[..]), (Line::Acked, &[&b"GETRANGE"[..], b"SET", b"WAIT"][..]));
        replica.pause().unwrap();
        tap.lose(runs(script));
        unknown(write("b").await);
        assert!(rig.get("b").await.is_some(), "it was applied, and no replica has said so");
        replica.resume().unwrap();
    }
}

/// † The same where the look's connection is a fresh one, on which WAIT alone answers at once.
#[tokio::test]
async fn a_look_on_a_fresh_connection_does_not_lie() {
    let rig = Rig::new().await;
    let replica = replica(&rig).await;
    let proxy = Proxy::to(rig.server.port()).unwrap();
    let options = StoreOptions { operation_timeout_ms: 3_000, ..StoreOptions::with_prefix("p").unwrap() };
    let store = LocationStore::open(&format!("{}?min_acked_replicas=1", proxy.url()), options).unwrap();
    put(&store, "warm", "").await;
    replica.pause().unwrap();
    let before = proxy.accepted();
    proxy.once("EVALSHA", 0, Action::DropReply);
    unknown(store.write(request("a")).await);
    assert!(proxy.accepted() > before, "on a new connection");
    assert!(rig.get("a").await.is_some());
    replica.resume().unwrap();
}

#[tokio::test]
async fn one_wait_for_each_call_on_a_line_of_writes_only() {
    let rig = Rig::new().await;
    let _replica = replica(&rig).await;
    let (store, tap) = rig.tapped_at(&url(&rig));
    for at in 0..100 {
        put(&store, &format!("k{at:02}"), "").await;
    }
    let first = page(&store, ScanRequest::new("", 50)).await.unwrap();
    delete(&store, "k60").await;
    assert!(get(&store, "k61").await.is_some());
    assert_eq!(rest(&store, "", 50, &first).await.unwrap().len(), 50);
    for (line, batch) in tap.lines() {
        let waits = batch.commands.iter().filter(|command| command[0] == "WAIT").count();
        assert_eq!(waits, usize::from(line == Line::Acked));
    }
}

/// A script cache that was emptied while replicas are missing: the call by hash does nothing, and the WAIT behind it must
/// leave time for the text and a WAIT of its own.
#[tokio::test]
async fn too_few_replicas_are_named_after_script_flush_too() {
    let rig = Rig::new().await;
    let replica = replica(&rig).await;
    let store = impatient(&rig);
    put(&store, "warm", "").await;
    applied(store.write(two("warm")).await);
    replica.pause().unwrap();
    // What WAIT on this connection waits for from here on.
    unacknowledged(store.write(request("first")).await);
    for (at, write) in [request("a"), two("b")].into_iter().enumerate() {
        rig.raw::<()>("SCRIPT FLUSH").await;
        unacknowledged(store.write(write).await);
        assert!(rig.get(["a", "b"][at]).await.is_some(), "it was applied");
    }
    replica.resume().unwrap();
}
