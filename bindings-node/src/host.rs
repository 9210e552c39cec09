//! Redis commands through a client that the user owns and JavaScript calls.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use zlink_store::host::{Failure, HostClient, Reply};
use zlink_store::packed::Outlet;
use zlink_store::packed::wire::{Record, tell};
use zlink_store::{Code, Error, Outcome};

use crate::replies::Replies;

/// Asks the user's Redis client (the ticket) to send a command. extra: the command's number; how many arguments, arguments
const COMMAND: u32 = tell::OWN;
/// Nobody waits for that command (extra) any more.
const COMMAND_DROPPED: u32 = tell::OWN + 1;
/// That client (the ticket) is not needed any more.
const CLIENT_DROPPED: u32 = tell::OWN + 2;

/// One client of one environment.
pub(crate) struct JsClient {
    pub(crate) outlet: Outlet,
    pub(crate) replies: Arc<Replies>,
    /// What JavaScript knows the client by.
    pub(crate) number: u32,
}

impl fmt::Debug for JsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsClient({})", self.number)
    }
}

impl HostClient for JsClient {
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>> {
        let (outlet, replies, client) = (self.outlet.clone(), Arc::clone(&self.replies), self.number);
        Box::pin(async move {
            let (number, receiver) = replies.expect();
            let _command = Command { outlet: &outlet, replies: &replies, number };
            // Looked at after the reply is expected: an environment that ends later finds it there.
            if outlet.is_closed() {
                return Err(Failure::NotSent(ended(Outcome::NotApplied)));
            }
            outlet.post(|out| {
                let mut record = Record::begin(out, COMMAND, client, number);
                record.word(u32::try_from(args.len()).unwrap_or(u32::MAX));
                for arg in &args {
                    record.string(arg);
                }
                record.end();
            });
            receiver.await.unwrap_or_else(|_| Err(Failure::Lost(ended(Outcome::Unknown))))
        })
    }
}

impl Drop for JsClient {
    fn drop(&mut self) {
        self.outlet.post(|out| Record::begin(out, CLIENT_DROPPED, self.number, 0).end());
    }
}

/// A command that JavaScript was asked to send. Dropped before the answer, it is taken back if it was not yet sent.
struct Command<'a> {
    outlet: &'a Outlet,
    replies: &'a Replies,
    number: u32,
}

impl Drop for Command<'_> {
    fn drop(&mut self) {
        if self.replies.forget(self.number) {
            self.outlet.post(|out| Record::begin(out, COMMAND_DROPPED, 0, self.number).end());
        }
    }
}

fn ended(outcome: Outcome) -> Error {
    Error::new(Code::Unavailable, outcome, "the JavaScript environment of the Redis client has ended")
}
