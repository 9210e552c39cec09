//! F09: servers that greet in their own ways.

use super::*;

fn answers(request: &Request) -> Action {
    match request.name().as_str() {
        "GET" => Action::line("$2\r\nhi"),
        "INCRBY" => Action::line(":7"),
        _ => Action::line("-ERR unknown command"),
    }
}

async fn works(server: &Proxy, protocol: u8) {
    let native = native(&format!("{}?protocol={protocol}&client_name=me", server.url()));
    let call = reading(5_000);
    assert_eq!(one(&native, &["GET", "NOPROTO"], &call).await.unwrap(), bytes("hi"));
    assert_eq!(one(&native, &["INCRBY", "NOPROTO", "7"], &call).await.unwrap(), Reply::Int(7));
}

#[tokio::test]
async fn hello_is_refused() {
    for refusal in ["-ERR unknown command 'HELLO'", "-NOPROTO unsupported protocol version", "-NOPERM no"] {
        for protocol in [2, 3] {
            let server = Proxy::fake(move |request| match request.name().as_str() {
                "HELLO" => Action::line(refusal),
                _ => answers(request),
            })
            .unwrap();
            works(&server, protocol).await;
            assert_eq!((server.accepted(), server.seen("HELLO")), (1, 1), "one connection, no loop");
            assert_eq!((server.seen("GET"), server.seen("INCRBY")), (1, 1));
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_on_hello_is_spoken_to_without() {
    let server = Proxy::fake(|request| match request.name().as_str() {
        "HELLO" => Action::CutBefore,
        "PING" => Action::line("+PONG"),
        _ => answers(request),
    })
    .unwrap();
    let native = native(&format!("{}?protocol=3", server.url()));
    let call = reading(5_000);
    assert_eq!(one(&native, &["GET", "x"], &call).await.unwrap(), bytes("hi"));
    assert_eq!((server.accepted(), server.seen("HELLO")), (2, 1));
    // The other lines know it by now.
    let other = native.send(Line::Blobs, Slot::default(), Arc::new(batch(&[&["GET", "x"]])), &call).await.unwrap();
    assert_eq!(other, vec![bytes("hi")]);
    assert_eq!((server.accepted(), server.seen("HELLO")), (3, 1));
}

#[tokio::test]
async fn a_name_for_the_connection_is_no_need() {
    let server = fake(|request| match request.name().as_str() {
        "CLIENT" => Action::line("-NOPERM this user has no permissions to run the 'client|setname' command"),
        _ => answers(request),
    });
    works(&server, 2).await;
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_server_that_is_too_old_is_named_with_what_is_needed() {
    let by_info = |version: &'static str| {
        Proxy::fake(move |request| match request.name().as_str() {
            "HELLO" => Action::line("-ERR unknown command 'HELLO'"),
            "INFO" => Action::line(&format!("${}\r\nredis_version:{version}\r\n", version.len() + 16)),
            _ => answers(request),
        })
        .unwrap()
    };
    let by_hello = |server: &'static str, version: &'static str| {
        Proxy::fake(move |request| match request.name().as_str() {
            "HELLO" => hello(server, version, "master"),
            _ => answers(request),
        })
        .unwrap()
    };
    for (server, said) in [
        (by_hello("redis", "6.0.16"), "Redis 6.0.16"),
        (by_info("5.0.7"), "Redis 5.0.7"),
        (by_hello("valkey", "7.1.9"), "Valkey 7.1.9"),
    ] {
        let (result, took) = timed(one(&native(&server.url()), &["GET", "x"], &reading(10_000))).await;
        let error = not_sent(result);
        assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied));
        assert!(error.message().contains(said) && error.message().contains("6.2") && error.message().contains("7.2"), "{error}");
        assert!(took < Duration::from_secs(5));
        assert_eq!((server.accepted(), server.seen("GET")), (1, 0), "no partial operation");
    }
    for server in [by_hello("redis", "6.2.0"), by_info("6.2.14"), by_hello("valkey", "8.1.1"), by_hello("redis", "strange")] {
        works(&server, 2).await;
    }
}

#[tokio::test]
async fn a_replica_takes_no_reads() {
    let server = fake(answers);
    let replica = Proxy::fake(|request| match request.name().as_str() {
        "HELLO" => hello("redis", "7.0.15", "replica"),
        _ => answers(request),
    })
    .unwrap();
    let error = not_sent(one(&native(&replica.url()), &["GET", "x"], &reading(1_000)).await);
    assert!(error.code() == Code::Timeout || error.message().contains("replica"), "{error}");
    assert_eq!(replica.seen("GET"), 0);
    works(&server, 2).await;
}

#[tokio::test]
async fn both_protocols_read_alike() {
    let server = RedisServer::start(&[]).unwrap();
    let mut seen = Vec::new();
    for protocol in [2, 3] {
        let native = native(&format!("{}?protocol={protocol}", server.url()));
        let call = writing(5_000);
        let mut transaction =
            batch(&[&["TIME"], &["GET", "none"], &["HGETALL", "h"], &["SMEMBERS", "s"], &["MGET", "a", "none"]]);
        transaction.atomic = true;
        for words in [&["SET", "a", "NOPROTO"][..], &["HSET", "h", "f", "v"], &["SADD", "s", "m"], &["ZADD", "z", "1", "m"]] {
            one(&native, words, &call).await.unwrap();
        }
        let mut replies = native.send(Line::Small, Slot::default(), Arc::new(transaction), &call).await.unwrap();
        assert!(matches!(&replies.remove(0), Reply::Array(time) if time.len() == 2));
        replies.push(one(&native, &["ZRANGEBYLEX", "z", "-", "+"], &call).await.unwrap());
        replies.push(one(&native, &["EVAL", "return {1,false,'x',redis.error_reply('MY own')}", "0"], &call).await.unwrap());
        replies.push(one(&native, &["GET", "h"], &call).await.unwrap());
        seen.push(replies);
        let protocol = one(&native, &["CLIENT", "LIST", "ID", "999999"], &call).await.unwrap();
        assert_eq!(protocol, bytes(""), "a verbatim string is a string");
    }
    assert_eq!(seen[0], seen[1]);
}
