//! From the socket to those who wait.

use std::sync::Arc;
use std::time::Instant;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Done, Shared};
use crate::call::Call;
use crate::contract::Error;
use crate::engine::redis::answers::{self, Meaning};
use crate::engine::redis::dial::DialError;
use crate::engine::redis::resp::{Decoder, Frame, Garbled};
use crate::engine::redis::transport::{Failure, Reply};

/// A batch that went out and is not answered.
pub(super) struct Sent {
    pub(super) start: u64,
    /// Replies to come before those that count: to MULTI and to what it queues.
    pub(super) skip: usize,
    /// Such a reply comes before each: to ASKING.
    pub(super) between: bool,
    /// The last one of those, if it was a refusal.
    pub(super) refused: Option<Reply>,
    pub(super) atomic: bool,
    pub(super) want: usize,
    pub(super) replies: Vec<Reply>,
    pub(super) call: Call,
    /// When it came to the connection.
    pub(super) since: Instant,
    pub(super) done: Done,
}

impl Shared {
    /// The answer to the oldest batch has come a reply further.
    fn answer(&self, reply: Reply) -> Result<(), DialError> {
        let answered = {
            let mut sent = self.sent.lock();
            let Some(batch) = sent.front_mut() else { return Err(unasked(&reply)) };
            if !batch.take(reply) {
                return Ok(());
            }
            sent.pop_front()
        };
        if let Some(batch) = answered {
            let Sent { done, replies, atomic, want, .. } = batch;
            let _ = done.send(unwrapped(replies, atomic, want));
            self.finished();
        }
        Ok(())
    }
}

impl Sent {
    /// Takes a reply; true if it was the last one.
    fn take(&mut self, reply: Reply) -> bool {
        if self.skip == 0 {
            // Without ASKING it is sent back: the refusal says why.
            let refused = self.refused.take().filter(|_| matches!(reply, Reply::Error { .. }));
            self.replies.push(refused.unwrap_or(reply));
            self.skip = usize::from(self.between);
            return self.atomic || self.replies.len() == self.want;
        }
        self.skip -= 1;
        if self.between {
            self.refused = Some(reply).filter(|reply| matches!(reply, Reply::Error { .. }));
            return false;
        }
        // `+OK` to MULTI and `+QUEUED` are of no use; a refusal is the command's own answer when EXEC answers EXECABORT.
        if matches!(reply, Reply::Error { .. }) {
            self.replies.push(reply);
        }
        false
    }
}

/// The replies to the commands themselves.
fn unwrapped(mut replies: Vec<Reply>, atomic: bool, want: usize) -> Result<Vec<Reply>, Failure> {
    if !atomic {
        return Ok(replies);
    }
    match replies.pop() {
        Some(Reply::Array(inner)) if inner.len() == want => Ok(inner),
        Some(refused @ Reply::Error { .. }) => {
            // The transaction did not run. Its first refusal says why; each command gets it.
            let why = replies.into_iter().next().unwrap_or(refused);
            Ok(vec![why; want])
        }
        _ => Err(Failure::Lost(Error::internal("EXEC was answered with something else than its replies"))),
    }
}

/// Reads until the connection ends.
pub(super) async fn read(shared: Arc<Shared>, mut io: Box<dyn AsyncRead + Send + Sync + Unpin>) {
    let mut decoder = Decoder::default();
    let why = loop {
        let (buffer, most) = decoder.space();
        let read = match io.read_buf(&mut buffer.limit(most)).await {
            Ok(0) => break DialError::passing("the server closed the connection".to_owned()),
            Ok(read) => read,
            Err(error) => break DialError::io("the connection was lost", &error),
        };
        decoder.filled(read);
        shared.hears();
        if let Err(why) = take(&shared, &mut decoder) {
            break why;
        }
    };
    shared.close(why);
}

/// Hands out every reply that is whole.
fn take(shared: &Shared, decoder: &mut Decoder) -> Result<(), DialError> {
    loop {
        match decoder.next() {
            Ok(Some(Frame::Reply(reply))) => shared.answer(reply)?,
            // Nobody asked for one.
            Ok(Some(Frame::Push(_))) => {}
            Ok(None) => return Ok(()),
            Err(Garbled(said)) => {
                let said = format!("the server said something that is not RESP: {said} (is it a TLS port?)");
                return Err(DialError::passing(said));
            }
        }
    }
}

/// A server says so when it does not take a connection, before anything was asked.
fn unasked(reply: &Reply) -> DialError {
    match answers::meaning(reply) {
        Some(Meaning::Later(error) | Meaning::Elsewhere(error)) => DialError { error, lasting: false },
        Some(meaning) => DialError { error: meaning.into_error(), lasting: true },
        None => DialError::passing("the server sent a reply that nobody asked for".to_owned()),
    }
}
