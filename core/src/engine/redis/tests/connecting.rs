//! F01: connecting is bounded by the deadline and by nothing else of a library's own.

use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use super::*;

/// A port whose connections are never established: the queue of a socket that nobody accepts from is full.
struct BlackHole {
    socket: Socket,
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let attempt = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
        let waiting = (0..8).map_while(|_| attempt().ok()).collect();
        Self { socket, _waiting: waiting }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().as_socket().unwrap().port()
    }
}

fn near(took: Duration, ms: u64) {
    assert!(took >= Duration::from_millis(ms - 20) && took <= Duration::from_millis(ms + 200), "{took:?} instead of {ms} ms");
}

#[tokio::test]
async fn nothing_connects_before_it_is_needed() {
    let (_server, proxy) = pair();
    let native = native(&proxy.url());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(proxy.accepted(), 0);
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    assert_eq!(proxy.accepted(), 1, "one line was used");
    native.send(Line::Blobs, Slot::default(), Arc::new(batch(&[&["PING"]])), &reading(5_000)).await.unwrap();
    assert_eq!(proxy.accepted(), 2, "each line has its own connection");
}

#[tokio::test]
async fn a_black_hole_ends_at_the_deadline() {
    let hole = BlackHole::new();
    for scheme in ["redis", "rediss"] {
        let native = native(&format!("{scheme}://127.0.0.1:{}", hole.port()));
        let (result, took) = timed(one(&native, &["PING"], &writing(1_000))).await;
        let error = not_sent(result);
        assert_eq!((error.code(), error.outcome()), (Code::Timeout, Outcome::NotApplied));
        near(took, 1_000);
    }
}

#[tokio::test]
async fn tls_that_is_never_answered_ends_at_the_deadline() {
    let (_server, proxy) = pair();
    proxy.swallow();
    let native = native(&format!("rediss://127.0.0.1:{}", proxy.port()));
    let (result, took) = timed(one(&native, &["PING"], &writing(1_000))).await;
    assert_eq!(not_sent(result).code(), Code::Timeout);
    near(took, 1_000);
}

#[tokio::test]
async fn slow_replies_end_at_the_deadline() {
    let (_server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    proxy.delay(zlink_test_servers::Way::Replies, Duration::from_millis(1_500));
    let call = writing(1_000);
    let (result, took) = timed(one(&native, &["SET", "a", "1"], &call)).await;
    let error = was_lost(result);
    assert_eq!((error.code(), error.outcome(), call.outcome()), (Code::Timeout, Outcome::Unknown, Outcome::Unknown));
    near(took, 1_000);
    // Nothing of a library's own is shorter: half a second is the default of redis-rs.
    assert_eq!(one(&native, &["GET", "a"], &reading(10_000)).await.unwrap(), bytes("1"));
}

#[tokio::test]
async fn the_connect_timeout_bounds_an_attempt_not_the_operation() {
    let hole = BlackHole::new();
    let native = native(&format!("redis://127.0.0.1:{}?connect_timeout_ms=100", hole.port()));
    let (result, took) = timed(one(&native, &["PING"], &reading(1_000))).await;
    let error = not_sent(result);
    assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error}");
    assert!(took >= Duration::from_millis(400) && took < Duration::from_millis(1_200), "several attempts: {took:?}");
}

#[tokio::test]
async fn a_refused_port_says_so_before_the_deadline_is_over() {
    let server = RedisServer::start(&[]).unwrap();
    let url = server.url();
    drop(server);
    let (result, took) = timed(one(&native(&url), &["SET", "a", "1"], &writing(500))).await;
    let error = not_sent(result);
    assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied));
    assert!(error.message().contains("refused"), "{error}");
    assert!(took < Duration::from_millis(700), "{took:?}");
}

#[tokio::test]
async fn attempts_back_off_and_are_shared() {
    let (_server, proxy) = pair();
    proxy.refuse(true);
    let native = native(&proxy.url());
    let call = reading(2_000);
    let many = (0..200).map(|_| one(&native, &["PING"], &call));
    for result in futures_util::future::join_all(many).await {
        assert_eq!(not_sent(result).code(), Code::Unavailable);
    }
    assert!((2..100).contains(&proxy.accepted()), "{} attempts in 2 s", proxy.accepted());
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_within_the_operation() {
    let mut server = RedisServer::start(&[]).unwrap();
    let native = native(&server.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    server.kill().unwrap();
    let _ = one(&native, &["PING"], &reading(100)).await;
    let waiting = tokio::spawn({
        let native = Arc::clone(&native);
        async move { one(&native, &["PING"], &reading(10_000)).await }
    });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    server.restart().unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), bytes("PONG"));
    assert_eq!(native.counters().reconnects.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_short_deadline_finds_a_server_that_came_back() {
    // F07: what long waits have built up must not refuse the first operation after it.
    let mut server = RedisServer::start(&[]).unwrap();
    let native = native(&server.url());
    server.kill().unwrap();
    for _ in 0..10 {
        not_sent(one(&native, &["PING"], &reading(500)).await);
    }
    server.restart().unwrap();
    assert_eq!(one(&native, &["PING"], &reading(200)).await.unwrap(), bytes("PONG"));
}

#[tokio::test]
async fn who_can_wait_longer_is_not_bound_by_who_came_first() {
    let (_server, proxy) = pair();
    proxy.delay(zlink_test_servers::Way::Replies, Duration::from_millis(300));
    let native = native(&proxy.url());
    let (short, long) = (reading(100), reading(5_000));
    let (short, long) = tokio::join!(one(&native, &["PING"], &short), one(&native, &["PING"], &long));
    assert_eq!(not_sent(short).code(), Code::Timeout);
    assert_eq!(long.unwrap(), bytes("PONG"));
}

/// Seen once under load after 5 s of silence: callers near their deadlines began attempts that could only fail, and those with
/// more time shared them, and paused after each.
#[tokio::test]
async fn who_can_wait_longer_is_not_held_up_by_any_number_of_hasty_callers() {
    let (_server, proxy) = pair();
    proxy.delay(zlink_test_servers::Way::Replies, Duration::from_millis(80));
    let native = native(&proxy.url());
    let hasty = (0..8).map(|number| {
        let native = Arc::clone(&native);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(7 * number)).await;
            loop {
                let _ = one(&native, &["PING"], &reading(60)).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    });
    let hasty: Vec<_> = hasty.collect();
    until("the hasty ones try", || proxy.accepted() > 1).await;
    assert_eq!(one(&native, &["PING"], &reading(1_000)).await.unwrap(), bytes("PONG"));
    hasty.iter().for_each(|task| task.abort());
}

#[tokio::test]
async fn a_name_with_several_addresses_is_tried_until_one_answers() {
    // `localhost` is ::1 and 127.0.0.1 on most machines; the server listens on one of them.
    let server = RedisServer::start(&[]).unwrap();
    let native = native(&format!("redis://localhost:{}", server.port()));
    assert_eq!(one(&native, &["PING"], &reading(5_000)).await.unwrap(), bytes("PONG"));
}
