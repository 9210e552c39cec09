use std::path::PathBuf;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::*;
use crate::contract::Code;

/// What a careful user leaves as it is, and everything encoded.
const EVERYTHING: &AsciiSet = NON_ALPHANUMERIC;
const LITTLE: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'@').add(b'/').add(b'?').add(b'#').add(b':').add(b'&').add(b'=');

fn parse(url: &str) -> RedisConfig {
    RedisConfig::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn tcp(host: &str, port: u16) -> Address {
    Address::Tcp(host.to_owned(), port)
}

fn refused(url: &str) -> String {
    let error = RedisConfig::parse(url).expect_err(url);
    assert_eq!((error.code(), error.argument_name()), (Code::InvalidArgument, Some("url")), "{url}");
    error.message().to_owned()
}

#[test]
fn one_server() {
    for scheme in ["redis", "valkey", "REDIS"] {
        let config = parse(&format!("{scheme}://example.org"));
        assert_eq!(config, RedisConfig::single(tcp("example.org", 6379)));
    }
    for scheme in ["rediss", "valkeys"] {
        let config = parse(&format!("{scheme}://example.org:7000/"));
        assert_eq!(config.server, Server::Single(tcp("example.org", 7000)));
        assert_eq!(config.tls, Some(Tls::default()));
    }
    let config = parse("redis://me:pa%40ss%3A%2F%25%2B%23%3D@h_1.x-y:1/5");
    assert_eq!(config.username.as_deref(), Some("me"));
    assert_eq!(config.password.as_deref(), Some("pa@ss:/%+#="));
    assert_eq!(config.db, 5);
    assert_eq!(parse("redis://h?db=7").db, 7);
}

#[test]
fn credentials_come_in_every_combination() {
    let login = |url: &str| {
        let config = parse(url);
        (config.username, config.password)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(login("redis://:secret@h"), (None, some("secret")), "an empty user is the default user");
    assert_eq!(login("redis://me@h"), (some("me"), None));
    assert_eq!(login("redis://me:@h"), (some("me"), some("")));
    assert_eq!(login("redis://:@h"), (None, None));
    assert_eq!(login("redis://@h"), (None, None));
    assert_eq!(login("redis://me:a:b@h"), (some("me"), some("a:b")), "only the first colon divides");
    assert_eq!(login("redis://me:a@b@h"), (some("me"), some("a@b")), "only the last at sign divides");
    assert_eq!(login("redis://me:a+b@h"), (some("me"), some("a+b")), "a plus is a plus");
    assert_eq!(login("redis+unix://me:a@/s"), (some("me"), some("a")));
}

#[test]
fn ipv6_stands_in_brackets() {
    assert_eq!(parse("redis://[::1]:7/2").server, Server::Single(tcp("::1", 7)));
    assert_eq!(parse("redis://u:p@[2001:db8::1]").server, Server::Single(tcp("2001:db8::1", 6379)));
    assert_eq!(parse("redis://[fe80::1%25eth0]:1").server, Server::Single(tcp("fe80::1%eth0", 1)));
    assert_eq!(parse("redis+cluster://[::1]:1,[::2]").server, Server::Cluster(vec![tcp("::1", 1), tcp("::2", 6379)]));
    for url in ["redis://::1:6379", "redis://[::1", "redis://[::1]x", "redis://[1.2.3.4]", "redis://[::1%25a/b]:1", "redis://[]"]
    {
        refused(url);
    }
}

#[test]
fn a_unix_socket() {
    let config = parse("redis+unix://me:p%40ss@/run/my%20folder/redis.sock?db=3");
    assert_eq!(config.server, Server::Single(Address::Unix(PathBuf::from("/run/my folder/redis.sock"))));
    assert_eq!((config.username.as_deref(), config.password.as_deref(), config.db), (Some("me"), Some("p@ss"), 3));
    assert_eq!(parse("redis+unix:///a@b").server, Server::Single(Address::Unix(PathBuf::from("/a@b"))));
    for url in
        ["redis+unix://host/s", "redis+unix://", "redis+unix:///", "redis+unix:///s?tls_ca=x", "redis+unix:///s?insecure=true"]
    {
        refused(url);
    }
}

#[test]
fn sentinels() {
    let config = parse("redis+sentinel://u:p@a:1,b,[::1]:3/my%20master/2?sentinel_user=su&sentinel_password=s%26p");
    let expected = Server::Sentinel {
        sentinels: vec![tcp("a", 1), tcp("b", 26379), tcp("::1", 3)],
        master: "my master".to_owned(),
        username: Some("su".to_owned()),
        password: Some(Secret("s&p".to_owned())),
    };
    assert_eq!((config.server, config.db), (expected, 2));
    assert_eq!((config.username.as_deref(), config.password.as_deref()), (Some("u"), Some("p")));
    assert!(parse("rediss+sentinel://a/m").tls.is_some());
    for url in
        ["redis+sentinel://a", "redis+sentinel://a/", "redis+sentinel:///m", "redis+sentinel://a,/m", "redis+sentinel://a/m/x"]
    {
        refused(url);
    }
}

#[test]
fn cluster_nodes() {
    assert_eq!(parse("redis+cluster://a:1,b:2").server, Server::Cluster(vec![tcp("a", 1), tcp("b", 2)]));
    assert!(parse("rediss+cluster://a/0").tls.is_some());
    assert!(refused("redis+cluster://a/1").contains("db"));
    assert!(refused("redis://a:1,b:2").contains("one host"));
}

#[test]
fn every_parameter() {
    let url = "rediss://h?protocol=3&connect_timeout_ms=250&client_name=zl&min_acked_replicas=2&allow_eviction=true\
               &tls_ca=%2Fa%20b.pem&tls_cert=/c.pem&tls_key=/k.pem&tls_server_name=other.example&insecure=true";
    let config = parse(url);
    assert!(config.resp3 && config.allow_eviction);
    assert_eq!((config.connect_timeout_ms, config.min_acked_replicas), (Some(250), 2));
    assert_eq!(config.client_name.as_deref(), Some("zl"));
    let file = |path: &str| Some(Pem::File(PathBuf::from(path)));
    let tls = Tls {
        ca: file("/a b.pem"),
        cert: file("/c.pem"),
        key: file("/k.pem"),
        server_name: Some("other.example".to_owned()),
        insecure: true,
    };
    assert_eq!(config.tls, Some(tls));
}

#[test]
fn an_error_names_the_part() {
    for (url, part) in [
        ("redis://h:0", "port"),
        ("redis://h:65536", "port"),
        ("redis://h:+1", "port"),
        ("redis://h:", "port"),
        ("redis://", "host"),
        ("redis://:6379", "host"),
        ("redis://a b", "host"),
        ("redis://h/x", "database"),
        ("redis://h/1/2", "database"),
        ("redis://h/4294967296", "database"),
        ("redis://h/1?db=1", "database"),
        ("redis://%zz@h", "user"),
        ("redis://u:%ff@h", "password"),
        ("redis://h#x", "#"),
        ("redis://h?nonsense=1", "nonsense"),
        ("redis://h?protocol=2&protocol=3", "protocol"),
        ("redis://h?protocol=4", "protocol"),
        ("redis://h?db=", "db"),
        ("redis://h?connect_timeout_ms=0", "connect_timeout_ms"),
        ("redis://h?connect_timeout_ms=-1", "connect_timeout_ms"),
        ("redis://h?connect_timeout_ms=2147483648", "connect_timeout_ms"),
        ("redis://h?min_acked_replicas=1001", "min_acked_replicas"),
        ("redis://h?allow_eviction=yes", "allow_eviction"),
        ("redis://h?client_name=a%20b", "client_name"),
        ("redis://h?tls_ca=/x", "tls_ca"),
        ("rediss://h?tls_cert=/x", "tls_key"),
        ("rediss://h?tls_key=/x", "tls_cert"),
        ("rediss://h?tls_server_name=a%20b", "tls_server_name"),
        ("rediss://h?insecure=1", "insecure"),
        ("redis://h?sentinel_user=u", "sentinel_user"),
        ("redis:h", "redis://"),
        ("localhost:6379", "redis://"),
    ] {
        let said = refused(url);
        assert!(said.contains(part), "{url}: {said}");
    }
}

#[test]
fn a_password_is_never_shown() {
    // Raw special characters make the rest of the password look like something else.
    for url in [
        "redis://u:hun/ter2@h",
        "redis://u:hun?ter2@h",
        "redis://u:hun?ter2=1@h",
        "redis://u:hun#ter2@h",
        "redis://u:hunter2@h:hunter2",
        "redis://u:hun%ter2@h",
        "redis://:hunter2/",
        "redis://h?hunter2",
        "redis+sentinel://h/m?sentinel_password=hunter2&sentinel_password=hunter2",
        "redis+unix://u:hun/ter2@/s?x",
        "redis://u:hunter2@h?db=hunter2",
    ] {
        let said = refused(url);
        assert!(!said.contains("ter2") && !said.contains("hun"), "{url}: {said}");
    }
    let config = parse("redis+sentinel://u:hunter2@h/m?sentinel_password=hunter2");
    assert!(!format!("{config:?}").contains("hunter2"));
    let inline = Tls { key: Some(Pem::Text(b"hunter2".to_vec())), ..Tls::default() };
    assert!(!format!("{inline:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn credentials_survive_encoding(user in ".{0,20}", password in ".{0,20}", db in 0..1_000_u32, much in any::<bool>()) {
        let encoded = |text: &str| utf8_percent_encode(text, if much { EVERYTHING } else { LITTLE }).to_string();
        let login = format!("{}:{}", encoded(&user), encoded(&password));
        let user = Some(user).filter(|user| !user.is_empty());
        let password = Some(password).filter(|password| user.is_some() || !password.is_empty());
        for url in [format!("redis://{login}@h/{db}"), format!("redis+unix://{login}@/s?db={db}"), format!("redis+sentinel://{login}@h,i/m/{db}")] {
            let config = parse(&url);
            prop_assert_eq!(&config.username, &user);
            prop_assert_eq!(&config.password, &password);
            prop_assert_eq!(config.db, db);
        }
    }

    #[test]
    fn sentinel_credentials_survive_encoding(user in ".{1,20}", password in ".{1,20}") {
        let encoded = |text: &str| utf8_percent_encode(text, LITTLE).to_string();
        let config = parse(&format!("redis+sentinel://h/m?sentinel_user={}&sentinel_password={}", encoded(&user), encoded(&password)));
        let Server::Sentinel { username, password: secret, .. } = config.server else { panic!("not sentinel") };
        prop_assert_eq!(username, Some(user));
        prop_assert_eq!(secret, Some(Secret(password)));
    }

    #[test]
    fn no_text_breaks_the_parser(text in ".{0,60}") {
        for scheme in ["", "redis://", "rediss://", "redis+unix://", "redis+sentinel://", "redis+cluster://"] {
            if let Err(error) = RedisConfig::parse(&format!("{scheme}{text}")) {
                prop_assert_eq!(error.code(), Code::InvalidArgument);
            }
        }
    }

    #[test]
    fn url_like_text_breaks_nothing(text in "[a-z0-9:/@?#&=%\\[\\],.+]{0,40}") {
        for scheme in ["redis://", "rediss://", "redis+unix://", "redis+sentinel://", "redis+cluster://"] {
            if let Ok(config) = RedisConfig::parse(&format!("{scheme}{text}")) {
                prop_assert!(config.validate().is_ok());
            }
        }
    }

    #[test]
    fn a_raw_password_is_never_shown(password in "[a-z@/?#%:=&]{0,6}zqzqzq[a-z@/?#%:=&]{0,6}") {
        if let Err(error) = RedisConfig::parse(&format!("redis://user:{password}@host:6379/0")) {
            prop_assert!(!error.message().contains("zqzqzq"), "{}", error);
        }
    }
}
