//! The seam for a Redis client that the caller owns, such as a node-redis client: a binding implements [`HostClient`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::transport::{Batch, Line, Scripts, Slot, Transport};
use crate::background;
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};

/// One reply of the server, bytes untouched, the same for RESP2 and RESP3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// No value.
    Nil,
    /// An integer; RESP3's booleans are 0 and 1.
    Int(i64),
    /// A string, simple or bulk.
    Bytes(Bytes),
    /// An array or set; RESP3's maps are flattened.
    Array(Vec<Reply>),
    /// An error reply: its first word and the rest.
    Error {
        /// Such as `WRONGTYPE` or `NOSCRIPT`.
        code: String,
        /// What follows.
        message: String,
    },
}

/// Why there is no reply.
#[derive(Debug)]
pub enum Failure {
    /// Surely nothing reached the server.
    NotSent(Error),
    /// The command may have reached the server.
    Lost(Error),
}

/// Sends single commands through somebody else's client. Nothing but single commands and scripts is ever sent through it:
/// no MULTI, no SELECT, no subscription.
pub trait HostClient: Send + Sync + fmt::Debug {
    /// Sends one command; an error reply of the server is a [`Reply::Error`]. The future may be dropped.
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>>;
}

/// Carries batches through somebody else's client, which connects, reconnects and is closed by its owner.
pub(super) struct Hosted {
    client: Arc<dyn HostClient>,
    scripts: Scripts,
    counters: Arc<EngineCounters>,
}

impl Hosted {
    pub(super) fn new(client: Arc<dyn HostClient>) -> Self {
        Self { client, scripts: Scripts::default(), counters: Arc::default() }
    }
}

impl Transport for Hosted {
    fn ready(&self, _line: Line, _slot: Slot, _deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        futures_util::future::ready(Ok(())).boxed()
    }

    fn send(&self, _line: Line, _slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
        let (client, counters, call) = (Arc::clone(&self.client), Arc::clone(&self.counters), call.clone());
        async move {
            let [command] = &batch.commands[..] else {
                return Err(Failure::NotSent(Error::internal("only single commands go through somebody else's client")));
            };
            if batch.atomic {
                return Err(Failure::NotSent(Error::internal("no MULTI goes through somebody else's client")));
            }
            call.mark_sent();
            counters.commands_sent.fetch_add(1, Ordering::Relaxed);
            let answer = background::timeout_at(call.deadline, client.send(command.clone())).await;
            match answer {
                Ok(Ok(reply)) => Ok(vec![reply]),
                Ok(Err(Failure::NotSent(error))) => {
                    call.unmark_sent();
                    Err(Failure::NotSent(error.with_outcome(Outcome::NotApplied)))
                }
                Ok(Err(Failure::Lost(error))) => Err(Failure::Lost(error.with_outcome(Outcome::Unknown))),
                Err(_) => {
                    let said = "the client that the store was given did not answer until the deadline";
                    Err(Failure::Lost(Error::new(Code::Timeout, Outcome::Unknown, said)))
                }
            }
        }
        .boxed()
    }

    fn transactions(&self) -> bool {
        false
    }

    fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    fn counters(&self) -> &EngineCounters {
        &self.counters
    }
}
