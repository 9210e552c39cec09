//! What the Location and Relocation engines say to Redis with: commands and scripts over a transport, with the rules on
//! retries and errors kept in one place. (Thin slice: no retries yet.)

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;

use super::transport::{Batch, Command, Failure, Line, Reply, Transport};
use crate::call::{Call, EngineCounters};
use crate::contract::{Error, Outcome};

/// A Lua script that lies beside the code that calls it.
pub(crate) struct Script {
    text: &'static str,
    read_only: bool,
    sha: OnceLock<Bytes>,
}

impl Script {
    /// A script that changes something.
    pub(crate) const fn writing(text: &'static str) -> Self {
        Self { text, read_only: false, sha: OnceLock::new() }
    }

    /// A script that only reads: it goes as EVALSHA_RO where the server knows that.
    pub(crate) const fn reading(text: &'static str) -> Self {
        Self { text, read_only: true, sha: OnceLock::new() }
    }

    fn batch(&self, by_text: bool, keys: &[Bytes], args: &[Bytes]) -> Batch {
        let (name, script) = match (by_text, self.read_only) {
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
        Batch { commands: vec![command], atomic: false }
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

/// A script and what it is called with.
pub(crate) struct Prepared {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Bytes>,
    pub(crate) args: Vec<Bytes>,
}

/// Commands and scripts over one transport. Clones share it.
#[derive(Clone)]
pub(crate) struct Client {
    transport: Arc<dyn Transport>,
}

impl Client {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }

    /// Whether MULTI may be used; if not, reads go as read-only scripts, one command at a time.
    pub(crate) fn transactions(&self) -> bool {
        self.transport.transactions()
    }

    pub(crate) fn counters(&self) -> &EngineCounters {
        self.transport.counters()
    }

    /// Sends commands and gives their replies back. Answers that say that nothing was done (LOADING, READONLY, BUSY …) are
    /// waited out and sent again until `call.deadline`; other server errors are replies. `repeat`: a batch whose answer was
    /// lost may be sent again (reads), else it is a [`Failure::Lost`].
    pub(crate) async fn commands(&self, line: Line, batch: Batch, repeat: bool, call: &Call) -> Result<Vec<Reply>, Failure> {
        let _ = repeat;
        self.transport.send(line, batch, call).await
    }

    /// Runs one script: EVALSHA, on NOSCRIPT once EVAL. Otherwise as [`commands`](Self::commands).
    pub(crate) async fn script(
        &self,
        line: Line,
        script: &Script,
        keys: &[Bytes],
        args: &[Bytes],
        repeat: bool,
        call: &Call,
    ) -> Result<Reply, Failure> {
        match self.one(line, script.batch(false, keys, args), repeat, call).await? {
            Reply::Error { code, .. } if code == "NOSCRIPT" => self.one(line, script.batch(true, keys, args), repeat, call).await,
            reply => Ok(reply),
        }
    }

    /// As [`commands`](Self::commands), for what goes out for several callers at once. Before every attempt, once the line is
    /// connected, `make` is asked what to send and for which call: it calls [`Call::mark_sent`], looks who still waits and
    /// makes a batch for them, so that what nobody waits for any more is never sent. `None`: nobody does (`NotSent`).
    pub(crate) async fn commands_of<M>(
        &self,
        line: Line,
        repeat: bool,
        deadline: Instant,
        mut make: M,
    ) -> Result<Vec<Reply>, Failure>
    where
        M: FnMut() -> Option<(Batch, Call)> + Send,
    {
        let _ = repeat;
        self.transport.ready(line, deadline).await.map_err(Failure::NotSent)?;
        let (batch, call) = make().ok_or_else(nobody_waits)?;
        self.transport.send(line, batch, &call).await
    }

    /// As [`script`](Self::script), for what goes out for several callers at once; see [`commands_of`](Self::commands_of).
    pub(crate) async fn script_of<M>(&self, line: Line, repeat: bool, deadline: Instant, mut make: M) -> Result<Reply, Failure>
    where
        M: FnMut() -> Option<(Prepared, Call)> + Send,
    {
        let _ = repeat;
        self.transport.ready(line, deadline).await.map_err(Failure::NotSent)?;
        let (Prepared { script, keys, args }, call) = make().ok_or_else(nobody_waits)?;
        match self.one(line, script.batch(false, &keys, &args), repeat, &call).await? {
            Reply::Error { code, .. } if code == "NOSCRIPT" => {
                call.unmark_sent();
                let (Prepared { script, keys, args }, call) = make().ok_or_else(nobody_waits)?;
                self.one(line, script.batch(true, &keys, &args), repeat, &call).await
            }
            reply => Ok(reply),
        }
    }

    async fn one(&self, line: Line, batch: Batch, repeat: bool, call: &Call) -> Result<Reply, Failure> {
        let mut replies = self.commands(line, batch, repeat, call).await?;
        replies.pop().ok_or_else(|| Failure::Lost(Error::internal("a command without a reply")))
    }
}

fn nobody_waits() -> Failure {
    Failure::NotSent(Error::cancelled(Outcome::NotApplied))
}
