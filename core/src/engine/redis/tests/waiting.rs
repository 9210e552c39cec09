//! F06: answers that say that nothing was done, for a while.

use super::*;
use crate::engine::redis::client::Script;

static COUNT: Script = Script::writing("return redis.call('INCR', KEYS[1]) -- for the tests of waiting");

const REFUSALS: [&str; 9] = [
    "-LOADING Redis is loading the dataset in memory",
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "-NOREPLICAS Not enough good replicas to write.",
    "-TRYAGAIN Multiple keys request during rehashing of slot",
    "-CLUSTERDOWN The cluster is down",
    "-READONLY You can't write against a read only replica.",
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "-ERR Error running script (call to f_abc): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.",
];

/// From now on everything is refused, for so long.
fn refuse(proxy: &Proxy, refusal: &'static str, ms: u64) {
    let end = ambient::monotonic() + Duration::from_millis(ms);
    proxy.judge(move |request| {
        let greeting = matches!(request.name().as_str(), "HELLO" | "CLIENT" | "INFO" | "PING");
        if greeting || ambient::monotonic() >= end { Action::Pass } else { Action::line(refusal) }
    });
}

async fn count(client: &Client, ms: u64) -> (Result<Reply, Failure>, Call) {
    let call = writing(ms);
    (client.script(Line::Small, &COUNT, &[Bytes::from_static(b"n")], &[], false, &call).await, call)
}

/// Refused until it was too late. On a busy machine the deadline can come while an attempt is under way: nobody knows then.
fn refused(result: Result<Reply, Failure>, call: &Call) {
    match result {
        Err(Failure::NotSent(error)) => {
            assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error}");
            assert_eq!((error.outcome(), call.outcome()), (Outcome::NotApplied, Outcome::NotApplied));
        }
        other => assert_eq!((was_lost(other).code(), call.outcome()), (Code::Timeout, Outcome::Unknown)),
    }
}

#[tokio::test]
async fn what_passes_within_the_time_is_waited_out() {
    for refusal in REFUSALS {
        let (server, proxy) = pair();
        let client = client(&proxy.url());
        assert!(matches!(count(&client, 5_000).await.0, Ok(Reply::Int(1))));
        refuse(&proxy, refusal, 800);
        let read = batch(&[&["GET", "n"]]);
        let (counted, read) =
            tokio::join!(count(&client, 3_000), async { client.commands(Line::Small, read, true, &reading(3_000)).await });
        assert!(matches!(counted.0, Ok(Reply::Int(2))), "{refusal}: {counted:?}");
        assert!(matches!(&read.unwrap()[..], [Reply::Bytes(_)]), "{refusal}");
        assert_eq!(server.say(&["GET", "n"]).number(), 2);
        assert_eq!(proxy.seen("SCRIPT"), 0, "nobody's script is killed");
    }
}

#[tokio::test]
async fn what_does_not_pass_in_time_is_unavailable_and_not_applied() {
    for refusal in REFUSALS {
        let (server, proxy) = pair();
        let client = client(&proxy.url());
        count(&client, 5_000).await.0.unwrap();
        refuse(&proxy, refusal, 60_000);
        let ((result, call), took) = timed(count(&client, 300)).await;
        refused(result, &call);
        assert!(took < Duration::from_millis(500), "{took:?}");
        proxy.pass();
        let (next, took) = timed(count(&client, 5_000)).await;
        assert!(matches!(next.0, Ok(Reply::Int(2))), "the same client works at once: {next:?}");
        assert!(took < Duration::from_millis(1_000), "{took:?}");
        assert_eq!(server.say(&["GET", "n"]).number(), 2);
    }
}

#[tokio::test]
async fn a_greeting_that_is_refused_is_waited_out() {
    for refusal in
        ["-LOADING Redis is loading the dataset in memory", "-BUSY Redis is busy", "-ERR max number of clients reached"]
    {
        let (_server, proxy) = pair();
        let end = ambient::monotonic() + Duration::from_millis(600);
        proxy.judge(move |_| if ambient::monotonic() < end { Action::line(refusal) } else { Action::Pass });
        let client = client(&proxy.url());
        assert!(matches!(count(&client, 5_000).await.0, Ok(Reply::Int(1))), "{refusal}");
        proxy.judge(move |_| Action::line(refusal));
        let error = not_sent(count(&self::client(&proxy.url()), 300).await.0);
        assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{refusal}: {error}");
    }
}

#[tokio::test]
async fn somebody_elses_slow_script_is_sat_out() {
    let server = RedisServer::start(&["--busy-reply-threshold", "50"]).unwrap();
    let client = client(&server.url());
    count(&client, 5_000).await.0.unwrap();
    let mut talk = server.talk().unwrap();
    talk.send(&["EVAL", "local e = redis.call('TIME')[1] + 2 while tonumber(redis.call('TIME')[1]) < e do end return 1", "0"])
        .unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (result, call) = count(&client, 300).await;
    refused(result, &call);
    assert!(matches!(count(&client, 10_000).await.0, Ok(Reply::Int(2))));
    assert_eq!(talk.hear().unwrap().number(), 1, "it was not killed");
}

#[tokio::test]
async fn a_lost_answer_is_never_forgotten() {
    let (server, proxy) = pair();
    let client = client(&proxy.url());
    count(&client, 5_000).await.0.unwrap();
    // The first attempt may be applied, the later ones surely not: what is said must not be `notApplied`.
    proxy.once("EVALSHA", 0, Action::DropReply);
    refuse(&proxy, "-LOADING Redis is loading the dataset in memory", 60_000);
    let call = writing(500);
    let result = client.script(Line::Small, &COUNT, &[Bytes::from_static(b"n")], &[], true, &call).await;
    assert_eq!(was_lost(result).outcome(), Outcome::Unknown);
    assert_eq!(call.outcome(), Outcome::Unknown);
    assert_eq!(server.say(&["GET", "n"]).number(), 2);
}

#[tokio::test]
async fn only_what_may_be_repeated_is_repeated() {
    let (server, proxy) = pair();
    let client = client(&proxy.url());
    for (repeat, expected) in [(false, 1), (true, 2)] {
        server.say(&["SET", "n", "0"]);
        let call = writing(5_000);
        client.commands(Line::Small, batch(&[&["PING"]]), true, &call).await.unwrap();
        proxy.once("INCR", 0, Action::DropReply);
        let result = client.commands(Line::Small, batch(&[&["INCR", "n"]]), repeat, &call).await;
        assert_eq!(result.is_ok(), repeat);
        assert_eq!(server.say(&["GET", "n"]).number(), expected);
    }
}

#[tokio::test]
async fn a_batch_that_did_something_is_not_sent_again() {
    let (server, proxy) = pair();
    let client = client(&proxy.url());
    proxy.once("INCR", 1, Action::line("-LOADING Redis is loading the dataset in memory"));
    let replies = client.commands(Line::Small, batch(&[&["INCR", "n"], &["INCR", "n"]]), false, &writing(5_000)).await.unwrap();
    assert!(matches!(&replies[..], [Reply::Int(1), Reply::Error { code, .. }] if code == "LOADING"));
    assert_eq!(server.say(&["GET", "n"]).number(), 1);
}
