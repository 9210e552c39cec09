//! F12: TLS and client certificates.

use std::sync::LazyLock;

use zlink_test_servers::{Certificates, Settings};

use super::*;
use crate::engine::redis::config::{Pem, Tls};

static CERTIFICATES: LazyLock<Arc<Certificates>> = LazyLock::new(|| Arc::new(Certificates::make().unwrap()));

fn server(tls_clients: bool) -> RedisServer {
    RedisServer::with(Settings { tls: Some(Arc::clone(&CERTIFICATES)), tls_clients, ..Settings::default() }).unwrap()
}

fn config(server: &RedisServer, host: &str, tls: Tls) -> RedisConfig {
    let mut config = RedisConfig::parse(&format!("rediss://{host}:{}", server.tls_port())).unwrap();
    config.tls = Some(tls);
    config
}

fn trusting() -> Tls {
    Tls { ca: Some(Pem::File(CERTIFICATES.ca())), ..Tls::default() }
}

fn with_client(tls: Tls) -> Tls {
    let client = &CERTIFICATES.client;
    Tls { cert: Some(Pem::File(client.cert.clone())), key: Some(Pem::File(client.key.clone())), ..tls }
}

async fn ping(config: RedisConfig) -> Result<Reply, Failure> {
    one(&Arc::new(Native::new(config)), &["PING"], &reading(5_000)).await
}

async fn refused(config: RedisConfig) -> String {
    let (result, took) = timed(ping(config)).await;
    let error = not_sent(result);
    assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error}");
    assert_eq!(error.outcome(), Outcome::NotApplied);
    assert!(took < Duration::from_millis(5_200), "{took:?}");
    error.message().to_owned()
}

#[tokio::test]
async fn the_right_settings_work() {
    let server = server(false);
    let name = || Tls { server_name: Some("redis.test".to_owned()), ..trusting() };
    let text = Tls { ca: Some(Pem::Text(std::fs::read(CERTIFICATES.ca()).unwrap())), ..Tls::default() };
    for (host, tls) in [
        ("localhost", trusting()),
        ("127.0.0.1", name()),
        ("localhost", text),
        ("127.0.0.1", Tls { insecure: true, ..Tls::default() }),
    ] {
        assert_eq!(ping(config(&server, host, tls)).await.unwrap(), bytes("PONG"), "{host}");
    }
    // By URL alone, and more than fits one TLS record.
    let native = native(&server.tls_url());
    let large = "x".repeat(3_000_000);
    one(&native, &["SET", "large", &large], &writing(5_000)).await.unwrap();
    assert_eq!(one(&native, &["GET", "large"], &reading(5_000)).await.unwrap(), bytes(&large));
}

#[tokio::test]
async fn a_client_certificate_is_used() {
    let server = server(true);
    assert_eq!(ping(config(&server, "localhost", with_client(trusting()))).await.unwrap(), bytes("PONG"));
    assert_eq!(one(&native(&server.tls_url()), &["PING"], &reading(5_000)).await.unwrap(), bytes("PONG"));
    let said = refused(config(&server, "localhost", trusting())).await;
    assert!(said.contains("TLS") && said.contains("client certificate"), "{said}");
    // One that another CA has signed.
    let other = Certificates::make().unwrap();
    let client = other.client.clone();
    let tls = Tls { cert: Some(Pem::File(client.cert)), key: Some(Pem::File(client.key)), ..trusting() };
    assert!(refused(config(&server, "localhost", tls)).await.contains("TLS"));
}

#[tokio::test]
async fn what_cannot_be_verified_is_refused() {
    let server = server(false);
    let by_address = refused(config(&server, "127.0.0.1", trusting())).await;
    assert!(by_address.contains("TLS") && by_address.contains("tls_server_name"), "{by_address}");
    let wrong_name = Tls { server_name: Some("other.test".to_owned()), ..trusting() };
    assert!(refused(config(&server, "localhost", wrong_name)).await.contains("TLS"));
    let unknown_ca = Tls { ca: Some(Pem::File(Certificates::make().unwrap().ca())), ..Tls::default() };
    let said = refused(config(&server, "localhost", unknown_ca)).await;
    assert!(said.contains("TLS"), "{said}");
    assert!(refused(config(&server, "localhost", Tls::default())).await.contains("TLS"), "the system does not know our CA");
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let expired = CERTIFICATES.sign_expired("expired", &["localhost"]).unwrap();
    let server = RedisServer::with(Settings {
        tls: Some(Arc::clone(&CERTIFICATES)),
        more: ["--tls-cert-file", &expired.cert.to_string_lossy(), "--tls-key-file", &expired.key.to_string_lossy()]
            .map(str::to_owned)
            .to_vec(),
        ..Settings::default()
    })
    .unwrap();
    let said = refused(config(&server, "localhost", trusting())).await;
    assert!(said.contains("TLS") && said.to_lowercase().contains("expired"), "{said}");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let server = server(false);
    let missing = Tls { ca: Some(Pem::File("/nowhere/ca.pem".into())), ..Tls::default() };
    let said = refused(config(&server, "localhost", missing)).await;
    assert!(said.contains("tls_ca") && said.contains("not found"), "{said}");
    let empty = Tls { ca: Some(Pem::Text(b"nothing".to_vec())), ..Tls::default() };
    assert!(refused(config(&server, "localhost", empty)).await.contains("tls_ca"));
    let mut half = with_client(trusting());
    half.key = Some(Pem::Text(b"nothing".to_vec()));
    assert!(refused(config(&server, "localhost", half)).await.contains("tls_key"));
}

#[tokio::test]
async fn the_wrong_port_is_told_apart() {
    let server = server(false);
    // TLS on the plain port.
    let mut tls = RedisConfig::parse(&format!("rediss://localhost:{}", server.port())).unwrap();
    tls.tls = Some(trusting());
    let said = refused(tls).await;
    assert!(said.contains("TLS"), "{said}");
    // Plain on the TLS port.
    let said = refused(RedisConfig::parse(&format!("redis://localhost:{}", server.tls_port())).unwrap()).await;
    assert!(said.contains("TLS"), "{said}");
}
