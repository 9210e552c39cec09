//! Through a client that somebody else owns.

use std::collections::VecDeque;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::engine::redis::client::Script;
use crate::engine::redis::host::{HostClient, Hosted};

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
