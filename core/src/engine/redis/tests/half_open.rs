//! F02, the whole kind: every line, either direction, at each moment. A connection whose other end is gone costs one timeout,
//! and that for all lines to the server.

use zlink_test_servers::Way;

use super::*;
use crate::contract::{BlobPutResult, BlobReference, Retention};
use crate::{RelocationStore, StoreOptions};

const LINES: [Line; 3] = [Line::Small, Line::Acked, Line::Blobs];
const WAYS: [&[Way]; 3] = [&[Way::Requests], &[Way::Replies], &[Way::Requests, Way::Replies]];

/// Enough for anything that works, and shorter than a silent connection is kept.
const FRESH: u64 = 3_000;

fn on(native: &Arc<Native>, line: Line, words: &[&str], ms: u64) -> impl Future<Output = Result<Reply, Failure>> + use<> {
    let call = if words[0] == "SET" { writing(ms) } else { reading(ms) };
    let sending = native.send(line, Slot::default(), Arc::new(batch(&[words])), &call);
    async move { sending.await.map(|mut replies| replies.remove(0)) }
}

fn timed_out(result: Result<Reply, Failure>, at: &str) {
    let Err(Failure::NotSent(error) | Failure::Lost(error)) = result else { panic!("{at}: {result:?}") };
    assert_eq!(error.code(), Code::Timeout, "{at}: {error}");
}

/// The next calls, with fresh deadlines, succeed on `line`; nothing but PING (and a greeting) goes over a connection from before.
async fn works(native: &Arc<Native>, proxy: &Proxy, line: Line, at: &str) {
    works_without(proxy.accepted(), native, proxy, line, at).await;
}

/// The same, where the first `before` connections are those to be left.
async fn works_without(before: usize, native: &Arc<Native>, proxy: &Proxy, line: Line, at: &str) {
    proxy.record();
    for words in [&["SET", "small", "1"][..], &["GET", "small"]] {
        let answer = on(native, line, words, FRESH).await;
        assert!(matches!(&answer, Ok(Reply::Bytes(_))), "{at}: {words:?} {answer:?}");
    }
    let late = proxy
        .recorded()
        .into_iter()
        .filter(|request| request.connection < before && !["PING", "HELLO"].contains(&&*request.name()));
    assert_eq!(late.map(|request| request.name()).collect::<Vec<_>>(), [""; 0], "{at}");
}

#[tokio::test]
async fn a_silence_that_falls_on_an_idle_line() {
    let server = RedisServer::start(&[]).unwrap();
    for line in LINES {
        for ways in WAYS {
            for words in [&["SET", "small", "0"][..], &["GET", "small"]] {
                let at = format!("{line:?} {ways:?} {words:?}");
                let proxy = Proxy::to(server.port()).unwrap();
                let native = native(&proxy.url());
                on(&native, line, &["PING"], 5_000).await.unwrap();
                proxy.swallow_ways(ways);
                proxy.heal();
                timed_out(on(&native, line, words, 200).await, &at);
                works(&native, &proxy, line, &at).await;
            }
        }
    }
}

#[tokio::test]
async fn a_silence_that_falls_between_a_request_and_the_end_of_its_reply() {
    let server = RedisServer::start(&[]).unwrap();
    let large = "x".repeat(300_000);
    server.say(&["SET", "large", &large]);
    for line in LINES {
        for action in [Action::StallInside, Action::LoseReply, Action::StallReply] {
            for words in [&["SET", "other", &large][..], &["GET", "large"]] {
                let at = format!("{line:?} {action:?} {}", words[0]);
                let proxy = Proxy::to(server.port()).unwrap();
                let native = native(&proxy.url());
                on(&native, line, &["PING"], 5_000).await.unwrap();
                proxy.once(words[0], 0, action.clone());
                // Others are answered after it went out: the line is not silent for all of its time.
                let stalled = on(&native, line, words, 400);
                let before = async { (on(&native, line, &["PING"], 5_000).await, on(&native, line, &["PING"], 400).await) };
                let (answered, stalled) = match words[0] {
                    "GET" => futures_util::future::join(before, stalled).await,
                    _ => (before.await, stalled.await),
                };
                assert!(answered.0.is_ok(), "{at}: {answered:?}");
                timed_out(stalled, &at);
                works(&native, &proxy, line, &at).await;
            }
        }
    }
}

#[tokio::test]
async fn a_silence_that_falls_on_a_handshake() {
    let server = RedisServer::start(&[]).unwrap();
    for line in LINES {
        for action in [Action::StallInside, Action::LoseReply, Action::StallReply] {
            let at = format!("{line:?} {action:?}");
            let proxy = Proxy::to(server.port()).unwrap();
            let native = native(&proxy.url());
            proxy.once("HELLO", 0, action.clone());
            // It may be over before another attempt beside the silent one has its connection.
            drop(on(&native, line, &["GET", "small"], 30).await);
            works_without(1, &native, &proxy, line, &at).await;
            // Of one that is stalled inside a request the proxy reads no more, not its end either.
            if !matches!(action, Action::StallInside) {
                until(&format!("{at}: the silent one is closed"), || proxy.open() == 1).await;
            }
        }
    }
}

#[tokio::test]
async fn a_silence_that_falls_on_the_first_connection() {
    let server = RedisServer::start(&[]).unwrap();
    for line in LINES {
        for ways in WAYS {
            let at = format!("{line:?} {ways:?}");
            let proxy = Proxy::to(server.port()).unwrap();
            let native = native(&proxy.url());
            proxy.swallow_ways(ways);
            timed_out(on(&native, line, &["SET", "small", "0"], 200).await, &at);
            // A patient caller's attempt stays silent beside the next ones.
            let patient = tokio::spawn(on(&native, line, &["GET", "small"], 20_000));
            let attempts = proxy.accepted();
            until("the patient one connects", || proxy.accepted() > attempts).await;
            proxy.heal();
            let hasty = on(&native, line, &["GET", "small"], FRESH).await;
            assert!(hasty.is_ok(), "{at}: {hasty:?}");
            patient.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn what_cut_one_line_off_cut_the_others_off() {
    let server = RedisServer::start(&[]).unwrap();
    for first in LINES {
        let proxy = Proxy::to(server.port()).unwrap();
        let native = native(&proxy.url());
        for line in LINES {
            on(&native, line, &["PING"], 5_000).await.unwrap();
        }
        proxy.swallow();
        proxy.heal();
        timed_out(on(&native, first, &["SET", "small", "0"], 200).await, "the one that finds out");
        for line in LINES {
            works(&native, &proxy, line, &format!("{first:?}, then {line:?}")).await;
        }
        until("the silent ones are closed", || proxy.open() == 3).await;
    }
}

/// A caller that timed out and has not been woken yet has said nothing of the silence.
#[tokio::test]
async fn a_caller_never_meets_a_silence_that_outlasted_another() {
    let (_server, proxy) = pair();
    let native = native(&proxy.url());
    on(&native, Line::Small, &["PING"], 5_000).await.unwrap();
    proxy.swallow();
    proxy.heal();
    let mut asleep = Box::pin(on(&native, Line::Small, &["GET", "small"], 100));
    assert!(futures_util::poll!(&mut asleep).is_pending());
    tokio::time::sleep(Duration::from_millis(120)).await;
    works(&native, &proxy, Line::Small, "the sleeper has not been polled").await;
    timed_out(asleep.await, "the sleeper");
}

#[tokio::test]
async fn a_blob_is_put_at_the_second_attempt() {
    let (_server, proxy) = pair();
    let options = StoreOptions { operation_timeout_ms: FRESH, ..StoreOptions::with_prefix("p").unwrap() };
    let store = RelocationStore::open(&*proxy.url(), options).unwrap();
    let put = |number: usize| {
        let reference = BlobReference::new(format!("blob/{number}")).unwrap();
        store.put(reference, vec![7; 700_000], Retention::from_ms(60_000).unwrap())
    };
    for round in 0..3 {
        let stored = put(2 * round).await.unwrap();
        assert!(matches!(stored, BlobPutResult::Stored { .. }), "{stored:?}");
        proxy.swallow();
        proxy.heal();
        assert_eq!(put(2 * round + 1).await.unwrap_err().code(), Code::Timeout);
    }
    put(99).await.unwrap();
}

/// The neighbour's bytes fill the socket, so that not even a PING goes out.
#[tokio::test]
async fn a_transfer_that_fills_the_socket_goes_on() {
    let (server, proxy) = pair();
    let native = native(&proxy.url());
    on(&native, Line::Small, &["PING"], 5_000).await.unwrap();
    proxy.throttle(3_000_000);
    let piece = Bytes::from(vec![b'x'; 250_000]);
    let sets = (0..100).map(|number| vec![Bytes::from_static(b"SET"), Bytes::from(format!("k{number}")), piece.clone()]);
    let batch = Arc::new(Batch { commands: sets.collect(), atomic: false });
    let transfer = native.send(Line::Small, Slot::default(), batch, &writing(60_000));
    let impatient = async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let _ = on(&native, Line::Small, &["PING"], 50).await;
        }
    };
    let (transfer, ()) = tokio::join!(transfer, impatient);
    assert_eq!(transfer.unwrap(), vec![bytes("OK"); 100]);
    assert_eq!(server.say(&["DBSIZE"]).number(), 100);
    assert!(proxy.accepted() > 1, "others had a connection of their own");
}
