//! What the proxy does to connections, on a real server.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use zlink_test_servers::{Action, Proxy, RedisServer, Talk, Value, Way};

fn pair() -> (RedisServer, Proxy) {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::to(server.port()).unwrap();
    (server, proxy)
}

fn talk(proxy: &Proxy) -> Talk {
    Talk::to(("127.0.0.1", proxy.port())).unwrap()
}

#[test]
fn pipelined_commands_keep_their_order() {
    let (_server, proxy) = pair();
    proxy.judge(|request| if request.text(1) == "b" { Action::line(":7") } else { Action::Pass });
    let mut talk = talk(&proxy);
    for name in ["a", "b", "c"] {
        talk.send(&["INCR", name]).unwrap();
    }
    let heard: Vec<i64> = (0..3).map(|_| talk.hear().unwrap().number()).collect();
    assert_eq!(heard, [1, 7, 1]);
    assert_eq!(proxy.seen("INCR"), 3);
}

#[test]
fn a_cut_leaves_done_what_was_done() {
    for (action, done) in [
        (Action::CutBefore, false),
        (Action::CutInside, false),
        (Action::CutAfter, true),
        (Action::DropReply, true),
        (Action::CutReply, true),
    ] {
        let (server, proxy) = pair();
        proxy.once("SET", 0, action.clone());
        assert!(talk(&proxy).say(&["SET", "a", "1"]).is_err(), "{action:?}");
        let mut value = server.say(&["GET", "a"]);
        for _ in 0..100 {
            if done && value == Value::Nil {
                std::thread::sleep(Duration::from_millis(10));
                value = server.say(&["GET", "a"]);
            }
        }
        assert_eq!(value.text() == "1", done, "{action:?}");
        assert_eq!(talk(&proxy).say(&["PING"]).unwrap().text(), "PONG", "only once");
    }
}

#[test]
fn what_is_swallowed_stays_open_and_silent() {
    let (server, proxy) = pair();
    let mut before = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    before.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut answer = [0; 7];
    before.read_exact(&mut answer).unwrap();
    proxy.swallow();
    proxy.heal();
    before.write_all(b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n").unwrap();
    assert_eq!(talk(&proxy).say(&["PING"]).unwrap().text(), "PONG", "a new connection works");
    before.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(before.read(&mut answer).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    assert_eq!(server.say(&["GET", "a"]), Value::Nil);
}

#[test]
fn bytes_are_counted_to_the_cut() {
    let (server, proxy) = pair();
    server.say(&["SET", "a", &"x".repeat(1_000)]);
    proxy.cut_after(Way::Replies, 500);
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.write_all(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n").unwrap();
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    assert_eq!(heard.len(), 500);
}

#[test]
fn connections_can_be_refused_cut_and_sent_elsewhere() {
    let (_server, proxy) = pair();
    let other = RedisServer::start(&[]).unwrap();
    other.say(&["SET", "here", "1"]);
    let mut first = talk(&proxy);
    first.say(&["PING"]).unwrap();
    proxy.cut_all();
    assert!(first.say(&["PING"]).is_err());
    proxy.refuse(true);
    assert!(Talk::to(("127.0.0.1", proxy.port())).and_then(|mut talk| talk.say(&["PING"])).is_err());
    proxy.refuse(false);
    proxy.retarget(other.port());
    assert_eq!(talk(&proxy).say(&["GET", "here"]).unwrap().text(), "1");
}
