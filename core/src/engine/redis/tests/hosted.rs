//! Through a client that somebody else owns.

use std::collections::VecDeque;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::contract::{
    BlobReference, Key, LockOptions, Mutation, ProjectId, Retention, ScanRequest, ScanResult, StateWriteOptions, WriteRequest,
};
use crate::engine::redis::client::Script;
use crate::engine::redis::host::{HostClient, Hosted};
use crate::{Endpoint, LocationStore, Project, ProjectOptions, RelocationStore, StoreOptions};

static LOOK: Script = Script::reading("return redis.call('GET', KEYS[1])");

type Answer = Box<dyn FnOnce() -> BoxFuture<'static, Result<Reply, Failure>> + Send>;

/// Answers in order, and remembers what it was asked.
#[derive(Default)]
struct Double {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Vec<String>>>,
}

impl std::fmt::Debug for Double {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Double")
    }
}

impl Double {
    fn answer(&self, answer: Result<Reply, Failure>) {
        self.answers.lock().push_back(Box::new(|| std::future::ready(answer).boxed()));
    }
}

impl HostClient for Double {
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>> {
        self.asked.lock().push(args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect());
        match self.answers.lock().pop_front() {
            Some(answer) => answer(),
            None => std::future::pending().boxed(),
        }
    }
}

fn rig() -> (Arc<Double>, Client) {
    let double = Arc::new(Double::default());
    let client = Client::new(Arc::new(Hosted::new(Arc::clone(&double) as Arc<dyn HostClient>)));
    (double, client)
}

fn refusal(code: &str, message: &str) -> Result<Reply, Failure> {
    Ok(Reply::Error { code: code.to_owned(), message: message.to_owned() })
}

fn broken() -> Error {
    Error::new(Code::Unavailable, Outcome::Unknown, "broken")
}

#[tokio::test]
async fn only_single_commands_go_through() {
    let (double, client) = rig();
    assert!(!client.transactions());
    double.answer(Ok(bytes("PONG")));
    assert_eq!(client.commands(Line::Blobs, batch(&[&["PING"]]), true, &reading(1_000)).await.unwrap(), [bytes("PONG")]);
    let mut atomic = batch(&[&["PING"]]);
    atomic.atomic = true;
    for wrong in [batch(&[&["PING"], &["PING"]]), atomic] {
        assert_eq!(not_sent(client.commands(Line::Small, wrong, true, &reading(1_000)).await).code(), Code::Internal);
    }
    assert_eq!(double.asked.lock().len(), 1);
}

#[tokio::test]
async fn scripts_fall_back_to_text_and_to_the_old_call() {
    let (double, client) = rig();
    double.answer(refusal("ERR", "unknown command `EVALSHA_RO`, with args beginning with: "));
    double.answer(refusal("NOSCRIPT", "No matching script. Please use EVAL."));
    double.answer(Ok(bytes("v")));
    double.answer(Ok(bytes("w")));
    for expected in ["v", "w"] {
        let reply = client.script(Line::Small, &LOOK, &[Bytes::from_static(b"k")], &[], true, &reading(1_000)).await.unwrap();
        assert_eq!(reply, bytes(expected));
    }
    let names: Vec<String> = double.asked.lock().iter().map(|command| command[0].clone()).collect();
    assert_eq!(names, ["EVALSHA_RO", "EVALSHA", "EVAL", "EVALSHA"]);
}

#[tokio::test]
async fn the_deadline_holds_and_failures_keep_their_side() {
    let (double, client) = rig();
    let set = || batch(&[&["SET", "a", "1"]]);
    let call = writing(200);
    let (silent, took) = timed(client.commands(Line::Small, set(), false, &call)).await;
    assert_eq!(was_lost(silent).code(), Code::Timeout);
    assert!(took < Duration::from_millis(400));
    assert_eq!(call.outcome(), Outcome::Unknown);

    double.answer(Err(Failure::NotSent(broken())));
    let call = writing(1_000);
    assert_eq!(not_sent(client.commands(Line::Small, set(), false, &call).await).outcome(), Outcome::NotApplied);
    assert_eq!(call.outcome(), Outcome::NotApplied);

    double.answer(Err(Failure::Lost(broken())));
    assert_eq!(was_lost(client.commands(Line::Small, set(), false, &writing(1_000)).await).outcome(), Outcome::Unknown);

    double.answer(Err(Failure::Lost(broken())));
    double.answer(refusal("LOADING", "Redis is loading the dataset in memory"));
    double.answer(Ok(Reply::Nil));
    assert_eq!(client.commands(Line::Small, batch(&[&["GET", "a"]]), true, &reading(5_000)).await.unwrap(), [Reply::Nil]);
}

/// The one connection of somebody else's client, on a real server.
#[derive(Clone)]
struct Theirs(Arc<Native>);

impl std::fmt::Debug for Theirs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Theirs")
    }
}

impl HostClient for Theirs {
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>> {
        let sending =
            self.0.send(Line::Small, Slot::default(), Arc::new(Batch { commands: vec![args], atomic: false }), &writing(5_000));
        async move { sending.await.map(|mut replies| replies.remove(0)) }.boxed()
    }
}

impl Theirs {
    async fn say(&self, words: &[&str]) -> Reply {
        one(&self.0, words, &writing(5_000)).await.unwrap()
    }
}

/// A user's own optimistic transaction, which a store's operations come in between.
struct Watching {
    server: RedisServer,
    theirs: Theirs,
}

impl Watching {
    /// Does `operation` while a WATCH of the user's is pending: what happens to the watched key then must still be noticed.
    async fn during<T>(&self, what: &str, operation: impl Future<Output = Result<T, Error>>) -> T {
        self.theirs.say(&["WATCH", "watched"]).await;
        let done = operation.await.unwrap_or_else(|error| panic!("{what}: {error}"));
        self.server.say(&["SET", "watched", what]);
        self.theirs.say(&["MULTI"]).await;
        self.theirs.say(&["SET", "theirs", what]).await;
        assert_eq!(self.theirs.say(&["EXEC"]).await, Reply::Nil, "{what} consumed the WATCH");
        done
    }
}

/// † An EXEC of ours, and be it that of a read, would consume a WATCH that the user has pending on the same connection.
#[tokio::test]
async fn no_operation_consumes_a_watch_of_the_users() {
    let server = RedisServer::start(&[]).unwrap();
    let theirs = Theirs(native(&server.url()));
    let endpoint = || Endpoint::Host(Arc::new(theirs.clone()));
    let options = || StoreOptions::with_prefix("p").unwrap();
    let location = LocationStore::open(endpoint(), options()).unwrap();
    let relocation = RelocationStore::open(endpoint(), options()).unwrap();
    let project = Project::open(endpoint(), ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    let user = Watching { server, theirs };

    let key = |at: usize| Key::new(format!("k{at:03}")).unwrap();
    let puts = |range: std::ops::Range<usize>, bytes: usize| {
        range.fold(WriteRequest::new(), |request, at| request.mutation(Mutation::put(key(at), vec![1; bytes])))
    };
    user.during("ping", location.ping()).await;
    user.during("a put", location.write(puts(0..1, 10))).await;
    user.during("a commit", location.write(puts(1..100, 10))).await;
    user.during("a commit of large values", location.write(puts(100..110, 20_000))).await;
    user.during("a read", location.read(key(1))).await;
    user.during("a small scan", location.scan(ScanRequest::new("k00", 100))).await;
    let first = user.during("a first page", location.scan(ScanRequest::new("", 10))).await;
    user.during("a delete", location.write(WriteRequest::new().mutation(Mutation::delete(key(50))))).await;
    user.during("a commit that saves records", location.write(puts(51..110, 5))).await;
    let ScanResult::Page(first) = first else { panic!("expired") };
    let next = ScanRequest::new("", 1_000).after(first.next_cursor.unwrap());
    let rest = user.during("a page of what was saved", location.scan(next)).await;
    assert!(matches!(rest, ScanResult::Page(page) if page.items.len() == 100));

    for size in [10, 600_000] {
        let name = || BlobReference::new(format!("b{size}")).unwrap();
        let retention = || Retention::from_ms(60_000).unwrap();
        user.during("a put of a blob", relocation.put(name(), vec![1; size], retention())).await;
        user.during("a read of a blob", relocation.read(name())).await;
        user.during("a renewal of a blob", relocation.renew(name(), retention())).await;
        user.during("a delete of a blob", relocation.delete(name())).await;
    }

    let state = project.state().namespace("n").unwrap();
    let _ = user.during("set", state.set("k", "1", StateWriteOptions::default())).await;
    user.during("get", state.get("k")).await;
    let _ = user.during("delete", state.delete("k", None)).await;
    let lease = user.during("acquire", project.locks().acquire("l", LockOptions::default())).await.unwrap();
    user.during("attach", project.locks().attach(&lease.id())).await;
    let _ = user.during("renew", lease.renew(None)).await;
    let _ = user.during("release", lease.release()).await;
}
