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
    each_value_has_its_expiry(server);
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

/// Bytes of a record's header: stamp, commit and, in the last eight, its expiry (0 for none).
const RECORD_HEADER: usize = 18 + 8 + 8;
/// The expiry in the header of an entry of state: 16 decimal digits.
const ENTRY_EXPIRY: std::ops::Range<usize> = 48..64;

/// Of all stores and projects: a value that is to expire has an expiry of the server's too, and is where reapers and counts look
/// for it; one that is not has no expiry. What is kept for locks alone goes by itself.
///
/// # Panics
/// If some command did only a part of that.
pub(crate) fn each_value_has_its_expiry(server: &RedisServer) {
    let (mut expiring, mut durable) = (0, 0);
    for key in server.say(&["KEYS", "*"]).items().iter().map(Value::text) {
        // One that goes by itself between the questions has none of what is asked for.
        let gone = || server.say(&["EXISTS", &key]).number() == 0;
        let by_itself = || server.say(&["PTTL", &key]).number() != -1;
        let score = |list: &str, name: &str| server.say(&["ZSCORE", list, name]).text();
        let header = |to: usize| match server.say(&["GETRANGE", &key, "0", &(to - 1).to_string()]) {
            Value::Bytes(bytes) if bytes.len() == to => Some(bytes),
            _ => None,
        };
        let Some((tag, kind)) = key.split_once("}:") else { continue };
        let (first, name) = kind.split_once(':').unwrap_or((kind, ""));
        match (tag.starts_with("zlink-project{"), first) {
            (false, "r") => {
                let Some(header) = header(RECORD_HEADER) else { continue };
                let expires = header[RECORD_HEADER - 8..].iter().any(|byte| *byte != 0);
                let due = !score(&format!("{tag}}}:x"), name).is_empty();
                // A name that is looked at in vain stays due for a while.
                let right = by_itself() == expires && (due || !expires);
                assert!(right || gone(), "{key}, expiring: {expires}, due: {due}");
                assert!(!score(&format!("{tag}}}:i"), name).is_empty() || gone(), "{key} is in no scan");
                if expires { expiring += 1 } else { durable += 1 }
            }
            (true, "s") => {
                let Some(header) = header(ENTRY_EXPIRY.end) else { continue };
                let expiry: u64 = String::from_utf8_lossy(&header[ENTRY_EXPIRY]).parse().expect("digits");
                let counted = score(&format!("{tag}}}:x"), name);
                let right = if expiry == 0 { counted == "inf" } else { counted == expiry.to_string() };
                assert!((right && by_itself() == (expiry != 0)) || gone(), "{key}, expiry {expiry}, counted until {counted:?}");
                if expiry == 0 { durable += 1 } else { expiring += 1 }
            }
            (true, "l" | "d" | "q" | "w" | "h" | "c") => assert!(by_itself() || gone(), "{key} never goes"),
            (true, "f" | "t" | "x") | (false, _) => {}
            (true, _) => panic!("what is {key}?"),
        }
    }
    eprintln!("{expiring} values that expire, {durable} that do not");
}
