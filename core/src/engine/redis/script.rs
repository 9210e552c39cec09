//! Lua scripts: how they are called, and how a server that does not have one gets its text.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::transport::Command;

/// A Lua script that lies beside the code that calls it.
pub(crate) struct Script {
    text: &'static str,
    kind: Kind,
    sha: OnceLock<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reading,
    Writing,
    Tidying,
}

/// A script and what it is called with.
pub(crate) struct Prepared {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Bytes>,
    pub(crate) args: Vec<Bytes>,
}

impl Script {
    /// A script that changes something.
    pub(crate) const fn writing(text: &'static str) -> Self {
        Self { text, kind: Kind::Writing, sha: OnceLock::new() }
    }

    /// A script that changes something, but nothing that a caller is promised: replicas need not acknowledge it.
    pub(crate) const fn tidying(text: &'static str) -> Self {
        Self { text, kind: Kind::Tidying, sha: OnceLock::new() }
    }

    /// A script that only reads: it goes as EVALSHA_RO where the server knows that.
    pub(crate) const fn reading(text: &'static str) -> Self {
        Self { text, kind: Kind::Reading, sha: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.kind == Kind::Reading
    }

    /// Whether replicas must acknowledge what it does, where any must.
    pub(super) fn is_commit(&self) -> bool {
        self.kind == Kind::Writing
    }

    /// The call: by hash, or with the whole text.
    pub(super) fn command(&self, by_text: bool, read_only_calls: bool, keys: &[Bytes], args: &[Bytes]) -> Command {
        let (name, script) = match (by_text, self.is_read_only() && read_only_calls) {
            (false, false) => ("EVALSHA", self.sha()),
            (false, true) => ("EVALSHA_RO", self.sha()),
            (true, false) => ("EVAL", Bytes::from_static(self.text.as_bytes())),
            (true, true) => ("EVAL_RO", Bytes::from_static(self.text.as_bytes())),
        };
        let mut command: Command = Vec::with_capacity(3 + keys.len() + args.len());
        command.push(Bytes::from_static(name.as_bytes()));
        command.push(script);
        command.push(Bytes::from(keys.len().to_string()));
        command.extend_from_slice(keys);
        command.extend_from_slice(args);
        command
    }

    /// Whether `what` calls this script.
    #[cfg(test)]
    pub(super) fn is(&self, what: &[u8]) -> bool {
        what == self.sha() || what == self.text.as_bytes()
    }

    fn sha(&self) -> Bytes {
        self.sha.get_or_init(|| Bytes::from(sha1_smol::Sha1::from(self.text).digest().to_string())).clone()
    }
}

/// What is known of a server's scripts, by all that speak to it over one transport.
#[derive(Debug)]
pub(crate) struct Scripts {
    read_only_calls: AtomicBool,
    loads: Mutex<HashMap<Bytes, Arc<Load>>>,
}

/// One script at the server. When many callers miss it at once, one sends the text and the others wait for that.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// How often the text was sent.
    count: AtomicU64,
    pub(super) sender: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Scripts {
    fn default() -> Self {
        Self { read_only_calls: AtomicBool::new(true), loads: Mutex::default() }
    }
}

impl Scripts {
    /// Whether the server knows EVALSHA_RO, as far as is known: Redis 6.2 does not.
    pub(super) fn read_only_calls(&self) -> bool {
        self.read_only_calls.load(Ordering::Acquire)
    }

    pub(super) fn set_read_only_calls(&self, known: bool) {
        self.read_only_calls.store(known, Ordering::Release);
    }

    pub(super) fn load(&self, script: &Script) -> Arc<Load> {
        Arc::clone(self.loads.lock().entry(script.sha()).or_default())
    }
}

impl Load {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn sent(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }
}
