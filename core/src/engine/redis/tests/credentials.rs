//! F11: what stands in a URL reaches the server as it was meant.

use zlink_test_servers::Settings;

use super::*;

const SPECIAL: &str = "p@:/#%+=&? \u{e9}\"'`w";

/// What a server hears of a client that has `config`.
async fn heard(config: RedisConfig) -> Vec<Vec<String>> {
    let server = fake(|request| if request.name() == "PING" { Action::line("+PONG") } else { Action::line("+OK") });
    server.record();
    let config = RedisConfig { server: RedisConfig::parse(&server.url()).unwrap().server, ..config };
    let native = Arc::new(Native::new(config));
    one(&native, &["PING"], &reading(5_000)).await.unwrap();
    let recorded = server.recorded();
    recorded.iter().map(|request| (0..request.args.len()).map(|place| request.text(place)).collect()).collect()
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[tokio::test]
async fn special_characters_reach_the_server_as_they_are() {
    let auth = vec!["AUTH".to_owned(), format!("u{SPECIAL}"), SPECIAL.to_owned()];
    let from_url = RedisConfig::parse(&format!("redis://{}:{}@h/3", encoded(&format!("u{SPECIAL}")), encoded(SPECIAL))).unwrap();
    let mut from_options = RedisConfig::parse("redis://h/3").unwrap();
    from_options.username = Some(format!("u{SPECIAL}"));
    from_options.password = Some(SPECIAL.to_owned());
    for config in [from_url, from_options] {
        let heard = heard(config).await;
        assert_eq!(heard[0], auth);
        assert!(heard.contains(&vec!["SELECT".to_owned(), "3".to_owned()]), "{heard:?}");
    }
}

#[tokio::test]
async fn an_empty_user_is_the_default_user() {
    let heard = heard(RedisConfig::parse("redis://:secret@h").unwrap()).await;
    assert_eq!(heard[0], ["AUTH", "secret"]);
    assert!(!heard.iter().any(|command| command[0] == "SELECT"), "database 0 needs no word");
}

#[tokio::test]
async fn ipv6_a_unix_socket_and_databases() {
    let settings = Settings { ipv6: true, unix: true, password: Some(SPECIAL.to_owned()), ..Settings::default() };
    let server = RedisServer::with(settings).unwrap();
    let password = encoded(SPECIAL);
    let urls = [
        format!("redis://:{password}@[::1]:{}/2", server.port()),
        format!("redis://default:{password}@127.0.0.1:{}/2", server.port()),
        format!("{}?db=2", server.unix_url()),
    ];
    for url in urls {
        let native = native(&url);
        one(&native, &["INCR", "in two"], &writing(5_000)).await.unwrap();
        assert_eq!(one(&native, &["GET", "in none"], &reading(5_000)).await.unwrap(), Reply::Nil);
    }
    let two = native(&format!("{}/2", server.url()));
    assert_eq!(one(&two, &["GET", "in two"], &reading(5_000)).await.unwrap(), bytes("3"));
    let zero = native(&server.url());
    assert_eq!(one(&zero, &["GET", "in two"], &reading(5_000)).await.unwrap(), Reply::Nil);
}

#[tokio::test]
async fn wrong_credentials_and_databases_fail_at_once_and_say_why() {
    let server = RedisServer::with(Settings {
        password: Some("right".to_owned()),
        users: vec![("app".to_owned(), ">apps ~app:* +get".to_owned())],
        ..Settings::default()
    })
    .unwrap();
    let open = RedisServer::start(&[]).unwrap();
    let at = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port());
    for (url, code, said) in [
        (at(":hunter2@"), Code::Unauthenticated, "password"),
        (at("app:hunter2@"), Code::Unauthenticated, "password"),
        (at("nobody:hunter2@"), Code::Unauthenticated, "password"),
        (at(""), Code::Unauthenticated, "wants a password"),
        (format!("redis://:hunter2@127.0.0.1:{}", open.port()), Code::Unauthenticated, "has none"),
        (format!("{}/99", at(":right@")), Code::Incompatible, "no database 99"),
    ] {
        let (result, took) = timed(one(&native(&url), &["GET", "app:x"], &reading(10_000))).await;
        let error = not_sent(result);
        assert_eq!((error.code(), error.outcome()), (code, Outcome::NotApplied), "{url}: {error}");
        assert!(error.message().contains(said) && !error.message().contains("hunter2"), "{url}: {error}");
        assert!(took < Duration::from_secs(5), "nothing to wait for: {took:?}");
    }
    let app = native(&at("app:apps@"));
    assert_eq!(one(&app, &["GET", "app:x"], &reading(5_000)).await.unwrap(), Reply::Nil);
}
