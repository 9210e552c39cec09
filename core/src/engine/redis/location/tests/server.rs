//! What the server sees: declared keys, one slot, few permissions; and another client's line.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::rig::*;
use crate::LocationStore;
use crate::contract::*;
use crate::engine::redis::tests::tap::runs;

/// Every kind of operation, with snapshots, large values, expiry, drops and reaping.
async fn work(store: &LocationStore) {
    for at in 0..150 {
        let value = if at % 10 == 0 { "x".repeat(20_000) } else { at.to_string() };
        put(store, &format!("k{at:03}"), &value).await;
    }
    let first = page(store, ScanRequest::new("", 10)).await.unwrap();
    let mut request = WriteRequest::new().condition(Condition::Missing { key: key("none") });
    for at in 50..100 {
        let name = key(&format!("k{at:03}"));
        request = match at % 3 {
            0 => request.mutation(Mutation::put(name, "new")),
            1 => request.mutation(Mutation::put_for(name, "new", ms(1))),
            _ => request.mutation(Mutation::delete(name)),
        };
    }
    applied(store.write(request.clone()).await);
    delete(store, "k110").await;
    put_for(store, "mortal", "", 1).await;
    let second = page(store, ScanRequest::new("", 10)).await.unwrap();
    assert!(matches!(store.read(key("k000")).await.unwrap(), ReadResult::Found(_)));
    let shown = rest(store, "", 40, &first).await.unwrap();
    assert_eq!(shown.len(), 140);
    assert_eq!(shown[40].1.len(), 20_000);
    applied(store.write(request).await);
    put(store, "k120", "").await;
    assert!(!rest(store, "", 1_000, &second).await.unwrap().is_empty());
    assert_eq!(page(store, ScanRequest::new("k00", 100)).await.unwrap().items.len(), 10);
    until(async || {
        put(store, "again", "").await;
        get(store, "mortal").await.is_none()
    })
    .await;
}

/// The words of a line of MONITOR; what is not text is escaped, alike everywhere.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some((_, behind)) = rest.split_once('"') {
        let bytes = behind.as_bytes();
        let mut end = 0;
        while bytes[end] != b'"' {
            end += 1 + usize::from(bytes[end] == b'\\');
        }
        words.push(behind[..end].to_owned());
        rest = &behind[end + 1..];
    }
    words
}

/// The keys of a command that a script of ours may call.
fn keys(command: &[String]) -> Vec<String> {
    let all = || command[1..].to_vec();
    match command[0].to_ascii_uppercase().as_str() {
        "TIME" => Vec::new(),
        "DEL" | "UNLINK" | "MGET" | "EXISTS" | "RENAME" => all(),
        "MSET" => command[1..].iter().step_by(2).cloned().collect(),
        _ => vec![command[1].clone()],
    }
}

#[tokio::test]
async fn every_key_that_a_script_touches_is_declared_and_in_one_slot() {
    for transactions in [true, false] {
        let rig = Rig::new().await;
        let (store, _tap) = rig.tapped(transactions);
        let mut monitor = Command::new("redis-cli")
            .args(["-p", &rig.server.port().to_string(), "monitor"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(monitor.stdout.take().unwrap());
        until(async || rig.raw::<String>("CLIENT LIST").await.contains("cmd=monitor")).await;
        work(&store).await;
        // Drops with all that was moved.
        page(&store, ScanRequest::new("", 1)).await.unwrap();
        for at in 0..15 {
            put(&store, &format!("k{:03}", at * 10), "").await;
        }
        rig.age_snapshots(limits::SNAPSHOT_LIFE_MS).await;
        put(&store, "k000", "").await;
        assert!(rig.entries().await.is_empty());
        rig.raw::<()>("ECHO finished").await;
        let (mut declared, mut scripts) = (HashSet::new(), 0);
        for line in lines.lines() {
            let line = line.unwrap();
            let words = words(&line);
            let Some(name) = words.first().map(|name| name.to_ascii_uppercase()) else { continue };
            if name == "ECHO" {
                break;
            }
            if line.contains("lua]") {
                for key in keys(&words) {
                    assert!(declared.contains(&key), "{key} in {line}");
                }
            } else if name.starts_with("EVAL") {
                scripts += 1;
                let count: usize = words[2].parse().unwrap();
                declared = words[3..3 + count].iter().cloned().collect();
                assert!(declared.iter().all(|key| key.starts_with("{p}:")));
            }
        }
        monitor.kill().unwrap();
        monitor.wait().unwrap();
        assert!(scripts > 180, "{scripts}");
    }
}

#[tokio::test]
async fn everything_works_through_somebody_elses_client() {
    let rig = Rig::new().await;
    let (store, tap) = rig.tapped(false);
    work(&store).await;
    // The tap refuses anything but single commands.
    assert!(tap.seen().len() > 100);
    assert!(conflicts(store.write(WriteRequest::new().condition(Condition::Missing { key: key("k000") })).await));
    let reads: Vec<_> = (0..500).map(|at| tokio::spawn(store.read(key(&format!("k{:03}", at % 50))))).collect();
    for read in reads {
        assert!(matches!(read.await.unwrap().unwrap(), ReadResult::Found(_)));
    }
    // After a lost answer, too.
    tap.lose(runs(&super::super::commit::PUT));
    put(&store, "lost", "1").await;
    assert_eq!(get(&store, "lost").await.as_deref(), Some("1"));
}

const OPERATIONS: &str = include_str!("../../../../../../docs/operations.md");

/// The commands that docs/operations.md lists.
fn commands() -> impl Iterator<Item = &'static str> {
    let (_, rules) = OPERATIONS.split_once("```acl").unwrap();
    rules.split_once("```").unwrap().0.split_whitespace().filter(|word| word.starts_with('+'))
}

impl Rig {
    /// Makes the user of an application, with the commands that docs/operations.md lists, without one of them. A rule that names a
    /// command which the server does not know is refused, so Redis 6.2 is not told of the read-only calls.
    async fn permit(&self, without: &str) {
        let told: Vec<redis::Value> = self.raw("COMMAND INFO eval_ro").await;
        let knows = |command: &&str| told[0] != redis::Value::Nil || !command.ends_with("_ro");
        let allowed: Vec<&str> = commands().filter(|command| *command != without).filter(knows).collect();
        self.raw::<()>(&format!("ACL SETUSER app reset on >secret ~{{p}}:* {}", allowed.join(" "))).await;
    }
}

#[tokio::test]
async fn few_permissions_are_enough() {
    let rig = Rig::new().await;
    rig.permit("").await;
    let url = rig.server.url().replace("redis://", "redis://app:secret@");
    let store = LocationStore::open(&*url, crate::StoreOptions::with_prefix("p").unwrap()).unwrap();
    work(&store).await;
}

#[tokio::test]
async fn a_missing_permission_is_named_and_nothing_is_torn() {
    for name in commands() {
        let rig = Rig::new().await;
        for at in 0..100 {
            rig.put(&format!("k{at:02}"), "old").await;
        }
        page(&rig.store, ScanRequest::new("", 1)).await.unwrap();
        rig.permit(name).await;
        let url = rig.server.url().replace("redis://", "redis://app:secret@");
        let store = LocationStore::open(&*url, crate::StoreOptions::with_prefix("p").unwrap()).unwrap();
        let request = WriteRequest::new()
            .mutation(Mutation::put(key("k01"), "new"))
            .mutation(Mutation::put_for(key("k02"), "new", ms(60_000)))
            .mutation(Mutation::delete(key("k03")));
        for request in [request, WriteRequest::new().mutation(Mutation::put(key("k04"), "new"))] {
            let keys: Vec<Key> = request.mutations.iter().map(|mutation| mutation.key().clone()).collect();
            let result = store.write(request).await;
            let mut changed = 0;
            for name in &keys {
                changed += usize::from(rig.get(name.as_str()).await.as_deref() != Some("old"));
            }
            match &result {
                Ok(_) => assert_eq!(changed, keys.len(), "without {name}"),
                Err(error) => {
                    assert_eq!(error.code(), Code::Unauthenticated, "without {name}: {error:?}");
                    let said = format!("command {}", name[1..].to_uppercase());
                    assert!(error.message().contains(&said), "without {name}: {error:?}");
                    assert_eq!(changed, 0, "without {name}");
                }
            }
        }
        for result in [store.read(key("k50")).await.map(drop), store.scan(ScanRequest::new("", 10)).await.map(drop)] {
            if let Err(error) = result {
                assert_eq!(error.code(), Code::Unauthenticated, "without {name}: {error:?}");
            }
        }
    }
}
