//! F05: scripts that the server does not have, and servers that do not know the read-only calls.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::*;
use crate::engine::redis::answers;
use crate::engine::redis::client::{Prepared, Script};

static COUNT: Script = Script::writing("return redis.call('INCR', KEYS[1]) -- for the tests of scripts");
static LOOK: Script = Script::reading("return redis.call('GET', KEYS[1]) -- for the tests of scripts");

fn key(text: &'static str) -> Vec<Bytes> {
    vec![Bytes::from_static(text.as_bytes())]
}

async fn count(client: &Client) -> Result<Reply, Failure> {
    client.script(Line::Small, &COUNT, &key("n"), &[], false, &writing(10_000)).await
}

#[tokio::test]
async fn many_misses_send_the_text_once() {
    let (server, proxy) = pair();
    let client = client(&proxy.url());
    for round in 1..=5 {
        server.say(&["SCRIPT", "FLUSH"]);
        let results = futures_util::future::join_all((0..200).map(|_| count(&client))).await;
        assert!(results.into_iter().all(|result| matches!(result, Ok(Reply::Int(_)))));
        assert_eq!(proxy.seen("EVAL"), round);
        assert_eq!(server.say(&["GET", "n"]).number(), i64::try_from(200 * round).unwrap());
    }
    assert_eq!(proxy.seen("SCRIPT"), 0);
}

#[tokio::test]
async fn a_cache_that_is_flushed_all_the_time_loses_and_doubles_nothing() {
    let (server, proxy) = pair();
    let client = client(&proxy.url());
    let (done, flushes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
    let flushing = std::thread::spawn({
        let (done, flushes) = (Arc::clone(&done), Arc::clone(&flushes));
        let mut talk = server.talk().unwrap();
        move || {
            while !done.load(Ordering::SeqCst) {
                talk.say(&["SCRIPT", "FLUSH"]).unwrap();
                flushes.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let one_after_the_other = |_| async {
        for _ in 0..50 {
            assert!(matches!(count(&client).await, Ok(Reply::Int(_))));
            let look = client.script(Line::Small, &LOOK, &key("n"), &[], true, &reading(10_000)).await;
            assert!(matches!(look, Ok(Reply::Bytes(_))), "{look:?}");
        }
    };
    futures_util::future::join_all((0..20).map(one_after_the_other)).await;
    done.store(true, Ordering::SeqCst);
    flushing.join().unwrap();
    assert_eq!(server.say(&["GET", "n"]).number(), 1_000);
    let sent = i64::try_from(proxy.seen("EVAL") + proxy.seen("EVAL_RO")).unwrap();
    let most = 2 * (flushes.load(Ordering::SeqCst) + 1);
    assert!(sent <= most, "{sent} texts for {most} misses");
}

#[tokio::test]
async fn a_sender_that_leaves_leaves_the_text_to_the_next() {
    let (server, proxy) = pair();
    let client = client(&proxy.url());
    proxy.once("EVAL", 0, Action::DelayReply(500));
    let leaving = tokio::time::timeout(Duration::from_millis(100), count(&client)).await;
    assert!(leaving.is_err());
    assert!(matches!(count(&client).await, Ok(Reply::Int(2))));
    assert_eq!(server.say(&["GET", "n"]).number(), 2);
}

#[tokio::test]
async fn what_goes_out_for_several_is_made_anew_for_the_text() {
    let (server, _proxy) = pair();
    let client = client(&server.url());
    let mut made = 0;
    let make = || {
        made += 1;
        Some((Prepared { script: &COUNT, keys: key("joint"), args: Vec::new() }, writing(5_000)))
    };
    let deadline = ambient::monotonic() + Duration::from_secs(5);
    assert_eq!(client.script_of(Line::Small, false, deadline, make).await.unwrap(), Reply::Int(1));
    assert_eq!(made, 2);
    let nobody = client.script_of(Line::Small, false, deadline, || None).await;
    assert_eq!(not_sent(nobody).code(), Code::Cancelled);
}

/// Redis 6.2: no EVALSHA_RO, and script errors in other words.
fn old_server(server: &RedisServer) -> Proxy {
    let proxy = Proxy::to(server.port()).unwrap();
    proxy.judge(|request| match request.name().as_str() {
        "HELLO" => Action::line("-ERR unknown command `HELLO`, with args beginning with: "),
        "INFO" => Action::line("-NOPERM this user has no permissions to run the 'info' command"),
        "EVALSHA_RO" | "EVAL_RO" => {
            let said = format!("-ERR unknown command `{}`, with args beginning with: `abc`, `1`, `secret`, ", request.name());
            Action::line(&said)
        }
        _ => Action::Pass,
    });
    proxy
}

#[tokio::test]
async fn a_server_without_read_only_calls_is_remembered() {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = old_server(&server);
    let client = client(&proxy.url());
    for _ in 0..5 {
        let look = client.script(Line::Small, &LOOK, &key("n"), &[], true, &reading(5_000)).await.unwrap();
        assert_eq!(look, Reply::Nil);
    }
    assert_eq!((proxy.seen("EVALSHA_RO"), proxy.seen("EVALSHA")), (1, 5), "one of the five misses");
    proxy.cut_all();
    until("it is asked anew on a new connection, which may be another server", || proxy.open() == 0).await;
    let look = client.script(Line::Small, &LOOK, &key("n"), &[], true, &reading(5_000)).await.unwrap();
    assert_eq!((look, proxy.seen("EVALSHA_RO")), (Reply::Nil, 2));
}

#[tokio::test]
async fn a_version_that_tells_spares_the_question() {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::to(server.port()).unwrap();
    proxy.judge(|request| if request.name() == "HELLO" { hello("redis", "6.2.14", "master") } else { Action::Pass });
    let client = client(&proxy.url());
    client.script(Line::Small, &LOOK, &key("n"), &[], true, &reading(5_000)).await.unwrap();
    assert_eq!(proxy.seen("EVALSHA_RO"), 0);
}

#[tokio::test]
async fn errors_inside_scripts_are_plain_from_every_version() {
    static WRONG: Script = Script::writing("return redis.call('GET', KEYS[1])");
    let server = RedisServer::start(&[]).unwrap();
    server.say(&["HSET", "h", "f", "v"]);
    let old = fake(|_| {
        let said = "WRONGTYPE Operation against a key holding the wrong kind of value";
        Action::line(&format!("-ERR Error running script (call to f_abc): @user_script:1: {said}"))
    });
    for url in [server.url(), old.url()] {
        let reply = client(&url).script(Line::Small, &WRONG, &key("h"), &[], false, &writing(5_000)).await.unwrap();
        assert!(matches!(&reply, Reply::Error { code, .. } if code == "WRONGTYPE"), "{reply:?}");
        assert_eq!(answers::error_of(&reply).unwrap().code(), Code::Incompatible);
    }
}

#[tokio::test]
async fn a_command_that_a_script_may_not_run_is_named() {
    static TWO: Script = Script::writing("local now = redis.call('TIME')\nredis.call('SET', KEYS[1], now[1])\nreturn 1\n");
    let server = RedisServer::start(&[]).unwrap();
    server.say(&["ACL", "SETUSER", "app", "on", ">secret", "~*", "+eval", "+evalsha", "+set"]);
    let url = format!("redis://app:secret@127.0.0.1:{}", server.port());
    let error = |rule: &'static str| {
        server.say(&["ACL", "SETUSER", "app", rule]);
        let client = client(&url);
        async move {
            let reply = client.script(Line::Small, &TWO, &key("a"), &[], false, &writing(5_000)).await.unwrap();
            answers::error_of(&reply)
        }
    };
    for (rule, named) in [("+set", "TIME"), ("+time", ""), ("-set", "SET"), ("-evalsha", "EVALSHA")] {
        let said = error(rule).await;
        let told = said.as_ref().map_or("", Error::message);
        assert_eq!(said.as_ref().map(Error::code), (!named.is_empty()).then_some(Code::Unauthenticated), "{rule}: {told}");
        assert!(told.contains(named), "{rule}: {told}");
    }
    server.say(&["ACL", "SETUSER", "app", "resetkeys", "+evalsha", "+set", "~other"]);
    let said = error("+time").await.unwrap();
    assert!(said.code() == Code::Unauthenticated && said.message().contains("keys"), "{said}");
}
