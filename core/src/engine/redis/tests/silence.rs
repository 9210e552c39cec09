//! F02: connections whose other end is gone without a word.

use super::*;

async fn pings(native: &Arc<Native>, count: usize, ms: u64) -> Vec<Result<Reply, Failure>> {
    let calls: Vec<Call> = (0..count).map(|_| reading(ms)).collect();
    futures_util::future::join_all(calls.iter().map(|call| one(native, &["PING"], call))).await
}

#[tokio::test]
async fn a_silent_connection_gets_no_new_work() {
    let (_server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    proxy.swallow();
    proxy.heal();
    let results = pings(&native, 20, 500).await;
    assert!(results.into_iter().all(|result| was_lost(result).code() == Code::Timeout));
    // No new store, no waiting: the next ones go over a connection of their own.
    assert!(pings(&native, 20, 500).await.into_iter().all(|result| result.unwrap() == bytes("PONG")));
    assert_eq!(proxy.accepted(), 2);
    until("the silent one is closed once a PING stayed unanswered", || proxy.open() == 1).await;
}

#[tokio::test]
async fn who_waits_longer_is_told_when_the_silent_connection_is_closed() {
    let (_server, proxy) = pair();
    let client = client(&proxy.url());
    let get = batch(&[&["GET", "a"]]);
    client.commands(Line::Small, get.clone(), true, &reading(5_000)).await.unwrap();
    proxy.swallow();
    proxy.heal();
    let (short, long) = (reading(300), reading(20_000));
    let (short, long) = tokio::join!(
        client.commands(Line::Small, get.clone(), true, &short),
        client.commands(Line::Small, get.clone(), true, &long)
    );
    assert_eq!(was_lost(short).code(), Code::Timeout);
    assert_eq!(long.unwrap(), [Reply::Nil], "a read is made again on the next connection");
}

#[tokio::test]
async fn a_long_transfer_of_a_neighbour_goes_on() {
    let (server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    // Eight seconds of upload, during which nothing is heard.
    proxy.throttle(500_000);
    let large = "x".repeat(4_000_000);
    let call = writing(60_000);
    let transfer = one(&native, &["SET", "large", &large], &call);
    let impatient = async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let _ = one(&native, &["PING"], &reading(50)).await;
        }
    };
    let (transfer, ()) = tokio::join!(transfer, impatient);
    assert_eq!(transfer.unwrap(), bytes("OK"));
    assert_eq!(server.say(&["STRLEN", "large"]).number(), 4_000_000);
}

#[tokio::test]
async fn a_server_that_only_paused_keeps_its_connection() {
    let (server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    server.pause().unwrap();
    let patient = writing(20_000);
    let (patient, impatient) = tokio::join!(one(&native, &["INCR", "a"], &patient), async {
        let impatient = one(&native, &["PING"], &reading(200)).await;
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        server.resume().unwrap();
        impatient
    });
    assert_eq!(was_lost(impatient).code(), Code::Timeout);
    assert_eq!(patient.unwrap(), Reply::Int(1), "applied once, and its own answer came");
    assert_eq!(server.say(&["GET", "a"]).text(), "1");
}

#[tokio::test]
async fn a_cancelled_caller_proves_nothing() {
    let (_server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    proxy.delay(zlink_test_servers::Way::Replies, Duration::from_millis(100));
    for _ in 0..20 {
        let call = reading(5_000);
        let cancelled = tokio::time::timeout(Duration::from_millis(5), one(&native, &["PING"], &call)).await;
        assert!(cancelled.is_err());
    }
    assert_eq!(one(&native, &["PING"], &reading(5_000)).await.unwrap(), bytes("PONG"));
    assert_eq!(proxy.accepted(), 1);
}
