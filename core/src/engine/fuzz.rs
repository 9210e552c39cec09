//! What fuzzing sees of the engines: everything that reads text or bytes of somebody else's.

use super::url::Endpoint;
use super::{cursor, embedded, redis, version};
use crate::contract::Code;

/// Stands for a password in what is fuzzed; nothing else spells like this.
const SECRET: &str = "s3cr3t-Zq9";

/// An URL says where a store is, or what is wrong with it; never the password.
pub(crate) fn url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Endpoint::parse(text) {
        Ok(endpoint) => drop(format!("{endpoint:?}")),
        Err(error) => assert_eq!((error.code(), error.argument_name()), (Code::InvalidArgument, Some("url"))),
    }
    if text.contains(SECRET) {
        return;
    }
    let schemes =
        ["redis", "rediss", "valkey", "redis+unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "file", "memory", ""];
    for scheme in schemes {
        let said = match Endpoint::parse(&format!("{scheme}://user:{SECRET}{text}")) {
            Ok(Endpoint::Redis(config)) => format!("{config:?}"),
            // An embedded store has no password; what stands there is its name.
            Ok(_) => continue,
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!said.contains(SECRET), "{scheme}, {text:?}: {said}");
    }
}

/// Cursors and versions, which callers keep and bring back.
pub(crate) fn cursor(data: &[u8]) {
    cursor::fuzz(data);
    version::fuzz(data);
}

/// What lies in an engine; the first byte chooses what it is taken for.
pub(crate) fn record(data: &[u8]) {
    let Some((which, raw)) = data.split_first() else { return };
    match which % 5 {
        0 => redis::fuzz_record(raw),
        1 => redis::fuzz_manifest(raw),
        2 => redis::fuzz_entry(raw),
        3 => embedded::fuzz_record(raw),
        _ => embedded::fuzz_project(raw),
    }
}

/// What a server says.
pub(crate) fn reply(data: &[u8]) {
    redis::fuzz_reply(data);
}
