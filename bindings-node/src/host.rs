//! Redis commands through a client that the user owns and JavaScript calls.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use zlink_store::host::{Failure, HostClient, Reply};
use zlink_store::{Code, Error, Outcome};

use crate::mailbox::Mailbox;
use crate::wire::{Reader, Record, malformed, tell, word};

/// One client of one environment.
pub(crate) struct JsClient {
    mailbox: Arc<Mailbox>,
    number: u32,
}

impl JsClient {
    /// `number` is what JavaScript knows the client by.
    pub(crate) fn new(mailbox: &Arc<Mailbox>, number: u32) -> Self {
        Self { mailbox: Arc::clone(mailbox), number }
    }
}

impl fmt::Debug for JsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsClient({})", self.number)
    }
}

impl HostClient for JsClient {
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>> {
        let mailbox = Arc::clone(&self.mailbox);
        let client = self.number;
        Box::pin(async move {
            if mailbox.is_closed() {
                return Err(Failure::NotSent(ended()));
            }
            let (sender, receiver) = oneshot::channel();
            let mut command = Command { number: mailbox.number(), answered: false, mailbox };
            let mailbox = &command.mailbox;
            mailbox.replies.put(command.number, sender);
            mailbox.post(|out| {
                let mut record = Record::begin(out, tell::COMMAND, client, command.number);
                record.word(word(args.len()));
                for arg in &args {
                    record.string(arg);
                }
                record.end();
            });
            let reply = receiver.await.unwrap_or_else(|_| Err(Failure::Lost(ended())));
            command.answered = true;
            reply
        })
    }
}

impl Drop for JsClient {
    fn drop(&mut self) {
        self.mailbox.post(|out| Record::begin(out, tell::CLIENT_DROPPED, self.number, 0).end());
    }
}

/// A command that JavaScript was asked to send. Dropped before the answer, it is taken back if it was not yet sent.
struct Command {
    mailbox: Arc<Mailbox>,
    number: u32,
    answered: bool,
}

impl Drop for Command {
    fn drop(&mut self) {
        if !self.answered && self.mailbox.replies.take(self.number).is_some() {
            self.mailbox.post(|out| Record::begin(out, tell::COMMAND_DROPPED, 0, self.number).end());
        }
    }
}

fn ended() -> Error {
    Error::new(Code::Unavailable, Outcome::NotApplied, "the JavaScript environment of the Redis client has ended")
}

/// What JavaScript made of a command.
pub(crate) fn reply(mut fields: Reader<'_>) -> Result<Reply, Failure> {
    let kind = fields.byte().map_err(Failure::Lost)?;
    if !matches!(kind, b'n' | b'l') {
        return value(kind, &mut fields).map_err(Failure::Lost);
    }
    let said = String::from_utf8_lossy(fields.string().map_err(Failure::Lost)?).into_owned();
    let error = Error::new(Code::Unavailable, Outcome::Unknown, said);
    Err(if kind == b'n' { Failure::NotSent(error.with_outcome(Outcome::NotApplied)) } else { Failure::Lost(error) })
}

fn value(kind: u8, fields: &mut Reader<'_>) -> Result<Reply, Error> {
    Ok(match kind {
        b'_' => Reply::Nil,
        b':' => {
            let digits = std::str::from_utf8(fields.string()?).map_err(|_| malformed())?;
            Reply::Int(digits.parse().map_err(|_| malformed())?)
        }
        b'$' => Reply::Bytes(Bytes::copy_from_slice(fields.string()?)),
        b'*' => {
            let items = fields.length()?;
            let mut array = Vec::new();
            for _ in 0..items {
                let kind = fields.byte()?;
                array.push(value(kind, fields)?);
            }
            Reply::Array(array)
        }
        b'-' => {
            let said = String::from_utf8_lossy(fields.string()?);
            let (code, message) = said.split_once(' ').unwrap_or((&said, ""));
            Reply::Error { code: code.to_owned(), message: message.to_owned() }
        }
        _ => return Err(malformed()),
    })
}
