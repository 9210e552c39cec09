//! What the Location and Relocation engines say to Redis with: commands and scripts over a transport, with the rules on
//! retries and errors kept in one place. (Thin slice: no retries yet.)

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::transport::{Batch, Command, Failure, Line, Reply, Transport};
use crate::call::Call;
use crate::contract::Error;

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

    fn sha(&self) -> &Bytes {
        self.sha.get_or_init(|| Bytes::from(sha1_smol::Sha1::from(self.text).digest().to_string()))
    }
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
        let by_hash = if script.read_only { "EVALSHA_RO" } else { "EVALSHA" };
        let by_text = if script.read_only { "EVAL_RO" } else { "EVAL" };
        let reply = self.one(line, by_hash, script.sha(), keys, args, repeat, call).await?;
        match reply {
            Reply::Error { code, .. } if code == "NOSCRIPT" => {
                self.one(line, by_text, script.text.as_bytes(), keys, args, repeat, call).await
            }
            reply => Ok(reply),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one private step of `script`")]
    async fn one(
        &self,
        line: Line,
        name: &'static str,
        script: &[u8],
        keys: &[Bytes],
        args: &[Bytes],
        repeat: bool,
        call: &Call,
    ) -> Result<Reply, Failure> {
        let mut command: Command = Vec::with_capacity(3 + keys.len() + args.len());
        command.push(Bytes::from_static(name.as_bytes()));
        command.push(Bytes::copy_from_slice(script));
        command.push(Bytes::from(keys.len().to_string()));
        command.extend_from_slice(keys);
        command.extend_from_slice(args);
        let batch = Batch { commands: vec![command], atomic: false };
        let mut replies = self.commands(line, batch, repeat, call).await?;
        replies.pop().ok_or_else(|| Failure::Lost(Error::internal("a command without a reply")))
    }
}
