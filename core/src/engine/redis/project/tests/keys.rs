//! What lies under our keys and what a user may do; other servers, protocols and clients.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::call::Call;
use crate::engine::Endpoint;
use crate::engine::redis::config::RedisConfig;
use crate::engine::redis::host::{Failure, HostClient, Reply};
use crate::engine::redis::native::Native;
use crate::engine::redis::transport::{Batch, Line, Slot, Transport};

fn incompatible<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{error}");
}

/// All keys with their values, but for those that count time.
fn dump(rig: &Rig) -> Vec<(String, String)> {
    let mut keys: Vec<String> = rig.say(&["KEYS", "*"]).items().iter().map(Value::text).collect();
    keys.sort();
    keys.iter().map(|key| (key.clone(), format!("{:?}", rig.say(&["DUMP", key])))).collect()
}

/// Every operation that changes something, each of which must be refused.
async fn all_refused(project: &Project, lease: &LockLease, state_too: bool) {
    let locks = project.locks();
    incompatible(locks.acquire("other", waiting(0)).await);
    incompatible(locks.acquire("k", waiting(1_000)).await);
    if state_too {
        incompatible(state(project).set("s", "2", StateWriteOptions::default()).await);
        incompatible(state(project).delete("s", None).await);
    }
    incompatible(lease.release().await);
}

#[tokio::test]
async fn foreign_types_are_found_before_anything_is_changed() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    set(&state(&project), "s", "1").await;
    let lease = take(&project.locks(), "k").await;
    for key in ["f", "l", "d", "q", "w", "h", "t"] {
        let (key, aside) = (format!("{TAG}:{key}"), format!("{TAG}:aside"));
        rig.say(&["RENAME", &key, &aside]);
        rig.say(&["SADD", &key, "foreign"]);
        let before = dump(&rig);
        all_refused(&project, &lease, key.ends_with(":f")).await;
        assert_eq!(dump(&rig), before, "{key}");
        rig.say(&["DEL", &key]);
        rig.say(&["RENAME", &aside, &key]);
    }
    release(&lease).await;

    for key in ["x", "s:1:n:s"] {
        rig.ask("DEL", key, &[]);
        rig.ask("SADD", key, &["foreign"]);
        let before = dump(&rig);
        incompatible(state(&project).set("s", "2", StateWriteOptions::default()).await);
        incompatible(state(&project).delete("s", None).await);
        assert_eq!(dump(&rig), before, "{key}");
        if key == "x" {
            rig.ask("DEL", key, &[]);
        }
    }
    assert_eq!(state(&project).get("s").await.unwrap(), None, "a read takes it for nothing");
    for foreign in ["", "hello", &"0".repeat(79), &"x".repeat(200)] {
        rig.ask("SET", "s:1:n:s", &[foreign]);
        assert_eq!(state(&project).get("s").await.unwrap(), None);
        if !foreign.is_empty() {
            incompatible(state(&project).set("s", "2", StateWriteOptions::default()).await);
        }
    }
}

#[tokio::test]
async fn a_newer_layout_is_refused_by_everything() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    set(&state(&project), "s", "1").await;
    let lease = take(&project.locks(), "k").await;
    assert_eq!(rig.ask("GET", "f", &[]).text(), "1");
    rig.ask("SET", "f", &["2"]);
    let before = dump(&rig);
    all_refused(&project, &lease, true).await;
    incompatible(state(&project).get("s").await);
    incompatible(lease.renew(None).await);
    incompatible(project.locks().attach(&lease.id()).await);
    assert_eq!(dump(&rig), before);
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    for round in 1..=3 {
        assert_eq!(set(&state(&project), "k", "1").await.version, round);
        rig.say(&["SCRIPT", "FLUSH"]);
        let lease = take(&project.locks(), "k").await;
        rig.say(&["SCRIPT", "FLUSH"]);
        renew(&lease).await;
        rig.say(&["SCRIPT", "FLUSH"]);
        release(&lease).await;
    }
}

/// A lock changes hands between two processes: the second one must wait, and be woken.
async fn hand_over(rig: &Rig, one: &Project, other: &Project) {
    let holder = take(&one.locks(), "k").await;
    let waiter = begin(other.locks().acquire("k", waiting(5_000)));
    until("it waits", || rig.waiters() == 1).await;
    release(&holder).await;
    let lease = waiter.await.unwrap().unwrap().expect("its turn comes");
    assert!(lease.fencing_token() > holder.fencing_token());
    release(&lease).await;
}

#[tokio::test]
async fn both_versions_of_resp_see_the_same() {
    let rig = Rig::start(&[]);
    let (two, three) = (rig.process_with("&protocol=2"), rig.process_with("&protocol=3"));
    let entry = set(&state(&two), "k", r#"{"a":[1,2.5,"x"]}"#).await;
    assert_eq!(state(&three).get("k").await.unwrap(), Some(entry.clone()));
    assert_eq!(set(&state(&three), "k", "null").await.version, 2);
    assert_eq!(state(&two).delete("k", Some(2)).await.unwrap(), StateDeleteResult::Deleted);
    hand_over(&rig, &two, &three).await;
    hand_over(&rig, &three, &two).await;
    let lease = take(&two.locks(), "k").await;
    let attached = three.locks().attach(&lease.id()).await.unwrap().unwrap();
    assert_eq!((attached.key(), attached.fencing_token()), ("k", lease.fencing_token()));
    release(&attached).await;
}

/// The rights that docs name, and no others.
const RIGHTS: &str = "resetchannels &zlink-project:wake:* ~zlink-project{* +time +get +mget +getrange +type +multi +exec +eval +evalsha \
    +eval_ro +evalsha_ro +set +unlink +pexpire +pexpireat +persist +exists +zadd +zrem +zcard +zcount +zscore +zrange \
    +zrangebyscore +zrangebylex +zrevrangebylex +hget +hset +hdel +hlen +hmget +publish +subscribe";

/// As many of them as the server has commands for: Redis 6.2 has no scripts that only read.
fn rights(rig: &Rig) -> impl Iterator<Item = &'static str> {
    let old = rig.say(&["COMMAND", "INFO", "EVAL_RO"]).items()[0] == zlink_test_servers::Value::Nil;
    RIGHTS.split_whitespace().filter(move |right| !(old && right.ends_with("_ro")))
}

#[tokio::test]
async fn a_user_with_the_least_rights_can_do_all_of_it() {
    let rig = Rig::start(&[]);
    let mut user = vec!["ACL", "SETUSER", "app", "on", ">secret"];
    user.extend(rights(&rig));
    rig.say(&user);
    let url = format!("redis://app:secret@{}?allow_eviction=true", rig.proxy.address());
    let open = || Project::open(&url, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    let (one, other) = (open(), rig.process());
    let options = StateWriteOptions { ttl_seconds: Some(60), expected_version: None };
    stored(state(&one).set("k", "1", options).await);
    set(&state(&one), "k", "2").await;
    assert_eq!(state(&one).get("k").await.unwrap().unwrap().version, 2);
    assert_eq!(state(&one).delete("k", None).await.unwrap(), StateDeleteResult::Deleted);
    hand_over(&rig, &other, &one).await;
    assert_eq!(rig.proxy.seen("SUBSCRIBE"), 1);
    hand_over(&rig, &one, &other).await;
    let lease = take(&one.locks(), "k").await;
    renew(&lease).await;
    drop(one.locks().acquire("k", waiting(200)).await.unwrap());
    release(&one.locks().attach(&lease.id()).await.unwrap().unwrap()).await;
    let denied = rig.say(&["ACL", "LOG"]);
    assert!(denied.items().is_empty(), "{denied:?}");

    // Without one of the rights nothing is torn: it is done, or it is not.
    set(&state(&other), "k", "1").await;
    for right in ["-set", "-zadd", "-zrem", "-unlink", "-hset", "-hdel"] {
        rig.say(&["ACL", "SETUSER", "app", right]);
        let entries = || (rig.ask("ZCARD", "x", &[]).number(), rig.say(&["KEYS", &format!("{TAG}:s:*")]).items().len());
        let set = state(&one).set("new", "1", StateWriteOptions::default()).await;
        assert_eq!(entries(), if set.is_ok() { (2, 2) } else { (1, 1) }, "{right}");
        let deleted = state(&one).delete(if set.is_ok() { "new" } else { "k" }, None).await;
        let left = i64::from(deleted.is_err()) + i64::from(set.is_ok());
        assert_eq!(entries().0, left, "{right}");
        assert_eq!(entries().1, usize::try_from(left).unwrap(), "{right}");
        self::set(&state(&other), "k", "1").await;
        let _ = state(&other).delete("new", None).await.unwrap();
        match one.locks().acquire("k", LockOptions::default()).await {
            Ok(lease) => drop(lease.unwrap().release().await),
            Err(error) => assert_eq!(error.code(), Code::Unauthenticated, "{right}"),
        }
        if let Some(lease) = other.locks().acquire("k", LockOptions::default()).await.unwrap() {
            release(&lease).await;
        } else {
            // Granted in full, and not released at all.
            assert!(matches!(right, "-hdel" | "-zrem"), "{right}");
            rig.ask("DEL", "l", &[]);
        }
        let right = right.replace('-', "+");
        rig.say(&["ACL", "SETUSER", "app", &right]);
    }
}

#[tokio::test]
async fn without_the_channel_heartbeats_find_a_free_lock() {
    let rig = Rig::start(&[]);
    let mut user = vec!["ACL", "SETUSER", "app", "on", ">secret"];
    user.extend(rights(&rig).filter(|right| !right.contains("channel") && !right.starts_with('&')));
    user.push("resetchannels");
    rig.say(&user);
    let url = format!("redis://app:secret@{}?allow_eviction=true", rig.proxy.address());
    let project = Project::open(&url, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    for _ in 0..3 {
        hand_over(&rig, &project, &project).await;
    }
    assert_eq!(rig.proxy.seen("SUBSCRIBE"), 1, "a refusal is not asked for again at once");
}

/// Somebody else's client, over a connection of ours.
#[derive(Debug)]
struct Theirs(Connections);

struct Connections(Native);

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Native")
    }
}

impl HostClient for Theirs {
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>> {
        let batch = Arc::new(Batch { commands: vec![args], atomic: false });
        let call = Call::writing(ambient::monotonic() + Duration::from_secs(5));
        let sending = self.0.0.send(Line::Small, Slot::default(), batch, &call);
        async move { sending.await.map(|mut replies| replies.remove(0)) }.boxed()
    }
}

#[tokio::test]
async fn everything_works_through_a_client_of_somebody_else() {
    let rig = Rig::start(&[]);
    let theirs = Theirs(Connections(Native::new(RedisConfig::parse(&rig.proxy.url()).unwrap())));
    let endpoint = Endpoint::Host(Arc::new(theirs));
    let project = Project::open(endpoint, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    let entry = set(&state(&project), "k", r#""x""#).await;
    assert_eq!(state(&project).get("k").await.unwrap(), Some(entry));
    assert_eq!(state(&project).get("other").await.unwrap(), None);
    assert_eq!(state(&project).delete("k", Some(1)).await.unwrap(), StateDeleteResult::Deleted);
    hand_over(&rig, &project, &rig.process()).await;
    hand_over(&rig, &rig.process(), &project).await;
    for command in ["MULTI", "WAIT"] {
        assert_eq!(rig.proxy.seen(command), 0, "never through somebody else's client");
    }
}

#[tokio::test]
async fn projects_and_stores_never_meet() {
    let rig = Rig::start(&[]);
    let open = |workspace, project| {
        let id = ProjectId::new(workspace, project).unwrap();
        Project::open(&*rig.proxy.url(), id, ProjectOptions::default()).unwrap()
    };
    let (one, other) = (open("a:b", "c"), open("a", "b:c"));
    set(&state(&one), "k", "1").await;
    assert_eq!(state(&other).get("k").await.unwrap(), None);
    let lease = take(&one.locks(), "k").await;
    assert!(other.locks().attach(&lease.id()).await.unwrap().is_none(), "whoever knows the id");
    release(&take(&other.locks(), "k").await).await;
    let keys = rig.say(&["KEYS", "*"]);
    assert!(keys.items().iter().all(|key| key.text().starts_with("zlink-project{")), "{keys:?}");
}
