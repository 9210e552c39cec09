//! Which side of the sending a batch stood on when its connection failed, and what becomes of it then.

use std::sync::atomic::Ordering;

use super::*;

fn set(native: &Arc<Native>, key: &str, value: &Bytes, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
    let command = vec![Bytes::from_static(b"SET"), Bytes::copy_from_slice(key.as_bytes()), value.clone()];
    native.send(Line::Small, Slot::default(), Arc::new(Batch { commands: vec![command], atomic: false }), call)
}

#[tokio::test]
async fn a_cut_says_exactly_what_was_sent() {
    for (action, done) in [
        (Action::CutBefore, false),
        (Action::CutInside, false),
        (Action::CutAfter, true),
        (Action::DropReply, true),
        (Action::CutReply, true),
    ] {
        let (server, proxy) = pair();
        let native = native(&proxy.url());
        one(&native, &["PING"], &reading(5_000)).await.unwrap();
        proxy.once("SET", 0, action.clone());
        let call = writing(5_000);
        let error = was_lost(one(&native, &["SET", "a", "1"], &call).await);
        assert_eq!((error.code(), error.outcome(), call.outcome()), (Code::Unavailable, Outcome::Unknown, Outcome::Unknown));
        if done {
            until("done", || server.say(&["GET", "a"]).text() == "1").await;
        }
        assert_eq!(proxy.seen("SET"), 1, "{action:?}: never sent again by the transport");
        assert_eq!(one(&native, &["PING"], &reading(5_000)).await.unwrap(), bytes("PONG"), "the next batch connects anew");
    }
}

#[tokio::test]
async fn what_was_not_sent_goes_out_on_the_next_connection() {
    let (server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    // The server reads nothing, so that most of it stays with us.
    server.pause().unwrap();
    let large = Bytes::from(vec![b'x'; 1_000_000]);
    let calls: Vec<Call> = (0..60).map(|_| writing(20_000)).collect();
    let keys: Vec<String> = (0..60).map(|number| format!("k{number}")).collect();
    let sets = keys.iter().zip(&calls).map(|(key, call)| set(&native, key, &large, call));
    let cut = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.cut_all();
        server.resume().unwrap();
    };
    let (results, ()) = tokio::join!(futures_util::future::join_all(sets), cut);
    let lost = results.iter().filter(|result| matches!(result, Err(Failure::Lost(_)))).count();
    assert!((1..60).contains(&lost), "{lost} were under way");
    for (at, result) in results.iter().enumerate() {
        if result.is_ok() {
            assert_eq!(server.say(&["STRLEN", &keys[at]]).number(), 1_000_000);
        }
    }
    assert!(results.iter().all(|result| !matches!(result, Err(Failure::NotSent(_)))));
}

#[tokio::test]
async fn who_leaves_before_the_sending_sends_nothing() {
    // F07: the server takes connections and reads nothing.
    let (server, proxy) = pair();
    let native = native(&proxy.url());
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    server.pause().unwrap();
    let large = Bytes::from(vec![b'x'; 1_000_000]);
    let filling: Vec<Call> = (0..30).map(|_| writing(600)).collect();
    let fill = futures_util::future::join_all(filling.iter().map(|call| set(&native, "filling", &large, call)));
    let late: Vec<Call> = (0..500).map(|number| writing(if number % 2 == 0 { 250 } else { 10_000 })).collect();
    let leave = futures_util::future::join_all(late.iter().map(|call| {
        let native = Arc::clone(&native);
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // Half of them time out, half are dropped.
            let set = one(&native, &["INCR", "late"], call);
            tokio::time::timeout(Duration::from_millis(400), set).await
        }
    }));
    let (filled, left) = tokio::join!(fill, leave);
    assert!(filled.iter().any(|result| matches!(result, Err(Failure::Lost(_)))));
    assert!(left.iter().all(|result| !matches!(result, Ok(Ok(_)))));
    assert!(late.iter().all(|call| call.outcome() == Outcome::NotApplied), "nothing of it was sent");
    server.resume().unwrap();
    assert_eq!(one(&native, &["GET", "late"], &reading(5_000)).await.unwrap(), Reply::Nil);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.say(&["GET", "late"]).text(), "");
}

#[tokio::test]
async fn nothing_is_sent_to_a_server_that_comes_back_too_late() {
    // F07: the port is refused.
    let mut server = RedisServer::start(&[]).unwrap();
    let native = native(&server.url());
    server.kill().unwrap();
    let calls: Vec<Call> = (0..2_000).map(|_| writing(200)).collect();
    let results = futures_util::future::join_all(calls.iter().map(|call| one(&native, &["INCR", "late"], call))).await;
    assert!(results.into_iter().all(|result| not_sent(result).outcome() == Outcome::NotApplied));
    server.restart().unwrap();
    assert_eq!(one(&native, &["GET", "late"], &reading(5_000)).await.unwrap(), Reply::Nil);
}

#[tokio::test]
async fn a_demoted_primary_is_left() {
    // F04: two servers behind one address change roles, and the sockets stay open.
    let (old, new) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    let proxy = Proxy::to(old.port()).unwrap();
    let client = client(&proxy.url());
    let set = batch(&[&["SET", "a", "1"]]);
    client.commands(Line::Small, set.clone(), false, &writing(5_000)).await.unwrap();
    old.say(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
    proxy.retarget(new.port());
    assert_eq!(client.commands(Line::Small, set, false, &writing(5_000)).await.unwrap(), [bytes("OK")]);
    assert_eq!(new.say(&["GET", "a"]).text(), "1");
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn a_replaced_connection_answers_what_it_was_asked() {
    let (old, new) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    let proxy = Proxy::to(old.port()).unwrap();
    let native = native(&proxy.url());
    old.say(&["SET", "a", "old"]);
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    // A reply that takes its time, and behind it a refusal that has the connection replaced.
    let slow = one(&native, &["EVAL", "for i = 1, 3e7 do end return redis.call('GET', 'a')", "0"], &reading(20_000));
    let refused = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        proxy.retarget(new.port());
        proxy.once("SET", 0, Action::line("-READONLY You can't write against a read only replica."));
        one(&native, &["SET", "a", "1"], &writing(20_000)).await
    };
    let (slow, refused) = tokio::join!(slow, refused);
    assert_eq!(slow.unwrap(), bytes("old"));
    assert!(matches!(refused.unwrap(), Reply::Error { code, .. } if code == "READONLY"));
    assert_eq!(one(&native, &["GET", "a"], &reading(5_000)).await.unwrap(), Reply::Nil, "that is the new server");
    until("the old connection is closed", || proxy.open() == 1).await;
    assert_eq!(native.counters().reconnects.load(Ordering::Relaxed), 1);
}

/// What a replica answers is late: no line stays with a server that was demoted.
#[tokio::test]
async fn a_demoted_server_is_left_by_all_lines() {
    for refusal in ["-READONLY You can't write against a read only replica.", "-MASTERDOWN Link with MASTER is down."] {
        let (old, new) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
        let proxy = Proxy::to(old.port()).unwrap();
        let native = native(&proxy.url());
        let lines = [Line::Small, Line::Acked, Line::Blobs];
        old.say(&["SET", "a", "old"]);
        new.say(&["SET", "a", "new"]);
        let get = |line| native.send(line, Slot::default(), Arc::new(batch(&[&["GET", "a"]])), &reading(5_000));
        for line in lines {
            assert_eq!(get(line).await.unwrap(), [bytes("old")]);
        }
        proxy.retarget(new.port());
        proxy.once("SET", 0, Action::line(refusal));
        let set =
            native.send(Line::Acked, Slot::default(), Arc::new(batch(&[&["SET", "b", "1"]])), &writing(5_000)).await.unwrap();
        assert!(matches!(set[0], Reply::Error { .. }), "{set:?}");
        for line in lines {
            assert_eq!(get(line).await.unwrap(), [bytes("new")], "{line:?} after {refusal}");
        }
        assert_eq!(proxy.accepted(), 6, "each once");
    }
}

#[tokio::test]
async fn a_transaction_that_is_refused_says_why() {
    let (server, proxy) = pair();
    let native = native(&proxy.url());
    server.say(&["CONFIG", "SET", "maxmemory", "1"]);
    let mut atomic = batch(&[&["TIME"], &["SET", "a", "1"], &["GET", "a"]]);
    atomic.atomic = true;
    let replies = native.send(Line::Small, Slot::default(), Arc::new(atomic.clone()), &writing(5_000)).await.unwrap();
    assert_eq!(replies.len(), 3);
    assert!(replies.iter().all(|reply| matches!(reply, Reply::Error { code, .. } if code == "OOM")), "{replies:?}");
    server.say(&["CONFIG", "SET", "maxmemory", "0"]);
    let replies = native.send(Line::Small, Slot::default(), Arc::new(atomic), &writing(5_000)).await.unwrap();
    assert_eq!(replies[1..], [bytes("OK"), bytes("1")]);
}

#[tokio::test]
async fn nonsense_from_the_server_ends_the_connection_and_nothing_else() {
    let server = fake(|request| match request.text(1).as_str() {
        "bad" => Action::Answer(b"what?\r\n".to_vec()),
        _ => Action::line("+fine"),
    });
    let native = native(&server.url());
    let error = was_lost(one(&native, &["GET", "bad"], &reading(5_000)).await);
    assert!(error.message().contains("not RESP"), "{error}");
    assert_eq!(one(&native, &["GET", "good"], &reading(5_000)).await.unwrap(), bytes("fine"));
}
