//! The binary as a test in another language sees it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};
use zlink_test_servers::Talk;

struct Binary {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    told: Json,
}

impl Binary {
    fn start(args: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_zlink-test-servers"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut binary = Self { process, input, output, told: Json::Null };
        binary.told = binary.line();
        binary
    }

    fn line(&mut self) -> Json {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.parse().unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn obey(&mut self, command: &str) -> Json {
        writeln!(self.input.as_mut().unwrap(), "{command}").unwrap();
        self.line()
    }

    fn port(&self, name: &str) -> u16 {
        self.told[name].as_u64().and_then(|port| port.try_into().ok()).unwrap()
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        self.input = None;
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
fn a_server_lives_as_long_as_standard_input() {
    let mut binary = Binary::start(&["single", "--aof", "--proxy", "--password", "p w", "--", "--databases", "3"]);
    assert!(binary.told["url"].as_str().unwrap().starts_with("redis://:p%20w@127.0.0.1:"));
    assert_eq!(binary.obey(r#"say ["SET","a b","c d"]"#), json!({ "ok": true, "reply": "OK" }));
    assert_eq!(binary.obey("kill"), json!({ "ok": true }));
    assert!(binary.obey("say PING")["error"].is_string());
    assert_eq!(binary.obey("restart"), json!({ "ok": true }));
    assert_eq!(binary.obey(r#"say ["GET","a b"]"#)["reply"], json!("c d"));
    assert_eq!(binary.obey("say CONFIG GET databases")["reply"], json!(["databases", "3"]));
    assert_eq!(binary.obey("say NONSENSE")["reply"]["error"].as_str().unwrap().split(' ').next(), Some("ERR"));
    assert!(binary.obey("nonsense")["error"].is_string());
    let port = binary.port("port");
    drop(binary);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn the_proxy_does_what_it_is_told() {
    let mut binary = Binary::start(&["single", "--proxy"]);
    let port = binary.port("proxyPort");
    binary.obey("proxy once GET 1 answer:-LOADING later please");
    binary.obey("proxy record");
    let mut talk = Talk::to(("127.0.0.1", port)).unwrap();
    assert_eq!(talk.say(&["GET", "a"]).unwrap().text(), "");
    assert_eq!(talk.say(&["GET", "a"]).unwrap().text(), "LOADING later please");
    assert_eq!(binary.obey("proxy stats")["commands"]["GET"], json!(2));
    assert_eq!(binary.obey("proxy recorded")["recorded"], json!([["R0VU", "YQ=="], ["R0VU", "YQ=="]]));
    binary.obey("proxy once SET 0 drop-reply");
    assert!(talk.say(&["SET", "a", "1"]).is_err());
    assert_eq!(binary.obey("say GET a")["reply"], json!("1"), "the server has done it");
}

#[test]
fn a_fake_server_answers_as_told() {
    let mut binary = Binary::start(&["fake"]);
    let mut talk = Talk::to(("127.0.0.1", binary.port("port"))).unwrap();
    assert_eq!(talk.say(&["PING"]).unwrap().text(), "PONG");
    assert_eq!(talk.say(&["HELLO"]).unwrap().text(), "ERR unknown command 'HELLO'");
    binary.obey("proxy always HELLO answer:-NOPROTO unsupported protocol version");
    assert_eq!(talk.say(&["HELLO", "3"]).unwrap().text(), "NOPROTO unsupported protocol version");
    binary.obey("proxy pass");
    assert_eq!(talk.say(&["HELLO"]).unwrap().text(), "ERR unknown command 'HELLO'");
}

#[test]
fn every_way_to_listen() {
    let binary = Binary::start(&["single", "--tls", "--tls-clients", "--unix", "--ipv6", "--user", "app >secret ~app:* +get"]);
    for name in ["tlsUrl", "unixUrl", "ca", "cert", "key", "socket"] {
        assert!(binary.told[name].is_string(), "{name}");
    }
    assert!(std::path::Path::new(binary.told["socket"].as_str().unwrap()).exists());
    let mut talk = Talk::to(("::1", binary.port("port"))).unwrap();
    assert_eq!(talk.say(&["AUTH", "app", "secret"]).unwrap().text(), "OK");
    assert!(talk.say(&["GET", "other"]).unwrap().text().starts_with("NOPERM"));
    assert!(TcpStream::connect(("127.0.0.1", binary.port("tlsPort"))).is_ok());
}

#[test]
fn several_servers_are_obeyed_one_by_one() {
    let mut trio = Binary::start(&["sentinel"]);
    assert!(trio.told["url"].as_str().unwrap().starts_with("redis+sentinel://127.0.0.1:"));
    assert_eq!(trio.obey("primary"), json!({ "ok": true, "primary": 0 }));
    assert_eq!(trio.obey("server 1 say ROLE")["reply"][0], json!("slave"));
    assert_eq!(trio.obey("sentinel 2 say ROLE")["reply"][0], json!("sentinel"));
    assert!(trio.obey("server 7 say PING")["error"].is_string());
    let mut cluster = Binary::start(&["cluster"]);
    assert_eq!(cluster.obey("slot foo")["slot"], json!(12_182));
    assert_eq!(cluster.obey("owner 12182")["owner"], json!(2));
    assert_eq!(cluster.obey("server 2 say SET foo 1")["reply"], json!("OK"));
    assert_eq!(cluster.obey("move 12182 0"), json!({ "ok": true }));
    assert_eq!(cluster.obey("server 0 say GET foo")["reply"], json!("1"));
    assert_eq!(cluster.obey("server 2 kill"), json!({ "ok": true }));
    assert!(cluster.obey("promoted 12000 2")["owner"].is_number());
}
