//! What lies in a server when nobody is at work any more.

use std::collections::HashSet;

use zlink_test_servers::{RedisServer, Value};

use crate::rig::OPERATION_TIMEOUT;

/// How long what an operation left behind may stay after its timeout, and a second for want of a finer clock.
const LEFT_MS: u64 = 61_000;
/// How long what a snapshot saved may stay at most: its life, and some.
const SNAPSHOT_MS: u64 = 600_000;

/// Of the stores of that prefix, whatever is no live record or blob goes by itself: it expires, or is due to be reaped.
///
/// # Panics
/// If something stays.
pub(crate) fn nothing_stays(server: &RedisServer, prefix: &str) {
    let text = |command: &[&str]| -> Vec<String> { server.say(command).items().iter().map(Value::text).collect() };
    let keys = text(&["KEYS", "*"]);
    let stem = format!("{{{prefix}}}:");
    let due: HashSet<String> = text(&["ZRANGE", &format!("{stem}x"), "0", "-1"]).into_iter().collect();
    let index = text(&["ZRANGE", &format!("{stem}i"), "0", "-1"]);
    let records: HashSet<&str> = keys.iter().filter_map(|key| key.strip_prefix(&stem)?.strip_prefix("r:")).collect();
    for name in &index {
        assert!(records.contains(&name[..]) || due.contains(name), "nobody reaps the name {name}");
    }
    let names: HashSet<&str> = index.iter().map(String::as_str).collect();
    for name in &records {
        assert!(names.contains(name), "no scan sees the record {name}");
    }
    let expires_within = |key: &str, most: u64| {
        let left = server.say(&["PTTL", key]).number();
        // -2: it is gone by now.
        assert!(left == -2 || u64::try_from(left).is_ok_and(|left| left <= most), "{key} stays for {left} ms");
    };
    for key in &keys {
        if let Some(kind) = key.strip_prefix(&stem) {
            match kind.split(':').next() {
                Some("f" | "n" | "i" | "x" | "r") => {}
                Some("S" | "u" | "v" | "w") => expires_within(key, SNAPSHOT_MS),
                _ => panic!("what is {key}?"),
            }
        } else if key.starts_with(&format!("{{{prefix}:")) {
            let (tag, kind) = key.split_once("}:").expect("a hash tag");
            let visible = keys.iter().any(|key| *key == format!("{tag}}}:b"));
            // Of a blob that is there, what is not its own cannot be told by its names alone: see blobs that are deleted.
            if !visible || kind == "bw" || kind.starts_with("bu:") {
                let timeout = u64::try_from(OPERATION_TIMEOUT.as_millis()).expect("a number");
                expires_within(key, timeout + LEFT_MS);
            }
        }
    }
}
