//! F08: stores share connections, and give them back.

use super::*;
use crate::engine::redis::sharing::Lease;

async fn ping(url: &str) -> (Client, Result<Vec<Reply>, Failure>) {
    let client = Client::new(Arc::new(Lease::take(&RedisConfig::parse(url).unwrap())));
    let answer = client.commands(Line::Small, batch(&[&["PING"]]), true, &reading(10_000)).await;
    (client, answer)
}

#[tokio::test]
async fn equal_settings_share_one_connection_and_the_last_one_closes_it() {
    let server = RedisServer::start(&[]).unwrap();
    let url = server.url();
    let clients: Vec<Client> = futures_util::future::join_all((0..500).map(|_| ping(&url)))
        .await
        .into_iter()
        .map(|(client, answer)| {
            answer.unwrap();
            client
        })
        .collect();
    assert_eq!(server.clients(), 1);
    let (last, rest) = clients.split_last().unwrap();
    for (number, client) in rest.iter().enumerate() {
        client.close();
        if number % 2 == 0 {
            client.close();
        }
    }
    assert!(last.commands(Line::Small, batch(&[&["PING"]]), true, &reading(5_000)).await.is_ok(), "closing twice counts once");
    let closed = rest[0].commands(Line::Small, batch(&[&["PING"]]), true, &reading(5_000)).await;
    assert_eq!(not_sent(closed).code(), Code::Closed, "although the connection is still there");
    assert_eq!(server.clients(), 1);
    last.close();
    until("no connection is left", || server.clients() == 0).await;
    let (again, answer) = ping(&url).await;
    answer.unwrap();
    drop(again);
    until("dropping closes too", || server.clients() == 0).await;
}

#[tokio::test]
async fn other_settings_have_other_connections() {
    let server = RedisServer::start(&[]).unwrap();
    let (zero, _) = ping(&server.url()).await;
    let (five, _) = ping(&format!("{}/5", server.url())).await;
    let (named, _) = ping(&format!("{}?client_name=me", server.url())).await;
    assert_eq!(server.clients(), 3);
    let set = |client: &Client, value: &'static str| {
        let client = client.clone();
        async move { client.commands(Line::Small, batch(&[&["SET", "a", value]]), false, &writing(5_000)).await.unwrap() }
    };
    set(&zero, "zero").await;
    set(&five, "five").await;
    for (client, value) in [(&zero, "zero"), (&five, "five"), (&named, "zero")] {
        let got = client.commands(Line::Small, batch(&[&["GET", "a"]]), true, &reading(5_000)).await.unwrap();
        assert_eq!(got, [bytes(value)]);
    }
    assert!(server.say(&["CLIENT", "LIST"]).text().contains("name=me"));
}

#[tokio::test]
async fn failed_and_abandoned_attempts_leave_nothing() {
    let server =
        RedisServer::with(zlink_test_servers::Settings { password: Some("right".to_owned()), ..Default::default() }).unwrap();
    let wrong = format!("redis://:wrong@127.0.0.1:{}", server.port());
    for _ in 0..100 {
        let (_client, answer) = ping(&wrong).await;
        assert_eq!(not_sent(answer).code(), Code::Unauthenticated);
    }
    until("no connection of the failed ones is left", || server.clients() == 0).await;
    // Callers that leave while their connection is being made.
    let url = server.url();
    for round in 0..100_u64 {
        let client = Client::new(Arc::new(Lease::take(&RedisConfig::parse(&url).unwrap())));
        let call = reading(5_000);
        let ping = client.commands(Line::Small, batch(&[&["PING"]]), true, &call);
        let _ = tokio::time::timeout(Duration::from_micros(round * 20), ping).await;
    }
    until("no connection of the abandoned ones is left", || server.clients() == 0).await;
}

#[tokio::test]
async fn a_close_ends_what_is_under_way() {
    let (server, proxy) = pair();
    let (client, answer) = ping(&proxy.url()).await;
    answer.unwrap();
    server.pause().unwrap();
    let call = reading(20_000);
    let waiting = client.commands(Line::Small, batch(&[&["PING"]]), true, &call);
    let close = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.close();
    };
    let ((waited, ()), took) = timed(async { tokio::join!(waiting, close) }).await;
    assert!(waited.is_err());
    assert!(took < Duration::from_secs(2), "{took:?}");
    server.resume().unwrap();
}
