//! From the queue to the socket.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use super::incoming::Sent;
use super::{Request, Shared, Work};
use crate::ambient;
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::dial::DialError;
use crate::engine::redis::resp::Outgoing;
use crate::engine::redis::transport::{Batch, Failure};

/// Commands are packed ahead of the socket up to this many bytes; what lies behind can still be withdrawn.
const AHEAD: usize = 64 * 1_024;
/// Pieces of one write to the socket.
const PIECES: usize = 32;

pub(super) struct Writer {
    io: Option<Box<dyn AsyncWrite + Send + Sync + Unpin>>,
    out: Outgoing,
    /// The socket took less than it was offered.
    pub(super) full: bool,
    /// Bytes packed and bytes written since the beginning.
    pub(super) packed: u64,
    pub(super) written: u64,
}

impl Writer {
    pub(super) fn new(io: Box<dyn AsyncWrite + Send + Sync + Unpin>) -> Self {
        Self { io: Some(io), out: Outgoing::default(), full: false, packed: 0, written: 0 }
    }

    pub(super) fn close(&mut self) {
        self.io = None;
        self.out = Outgoing::default();
    }

    /// Packs and writes as much as the socket takes. Ready when nothing is left to do, Pending when the socket is full.
    pub(super) fn advance(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.advance_inner(shared, context);
        self.full = result.is_pending();
        result
    }

    fn advance_inner(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // What is packed on a closed connection, nobody would answer.
            if self.io.is_none() {
                return Poll::Ready(Ok(()));
            }
            while self.out.len() < AHEAD {
                let Some(request) = shared.queue.lock().pop_front() else { break };
                self.pack(shared, &request);
            }
            let Some(io) = &mut self.io else { return Poll::Ready(Ok(())) };
            let mut io = Pin::new(io);
            if self.out.len() == 0 {
                return io.poll_flush(context);
            }
            let mut slices = [IoSlice::new(&[]); PIECES];
            let filled = self.out.fill(&mut slices);
            let wrote = match io.as_mut().poll_write_vectored(context, &slices[..filled]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(wrote)) => wrote,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            };
            self.written += wrote as u64;
            self.out.advance(wrote);
        }
    }

    fn pack(&mut self, shared: &Shared, request: &Request) {
        let mut work = request.work.lock();
        let Some(Work { batch, asking, call, done }) = work.take() else { return };
        drop(work);
        // First the mark, then the look whether anybody waits: see `Call::mark_sent`.
        call.mark_sent();
        if done.is_closed() || ambient::monotonic() >= call.deadline {
            call.unmark_sent();
            let _ =
                done.send(Err(Failure::NotSent(Error::new(Code::Timeout, Outcome::NotApplied, "not sent until the deadline"))));
            shared.open.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let start = self.packed;
        let before = self.out.len();
        let Batch { commands, atomic } = &*batch;
        let atomic = *atomic;
        if atomic {
            // It holds until EXEC.
            if asking {
                self.out.word(b"ASKING");
            }
            self.out.word(b"MULTI");
        }
        for command in commands {
            if asking && !atomic {
                self.out.word(b"ASKING");
            }
            self.out.command(command);
        }
        if atomic {
            self.out.word(b"EXEC");
        }
        self.packed += (self.out.len() - before) as u64;
        let count = commands.len();
        shared.counters.commands_sent.fetch_add(count as u64, Ordering::Relaxed);
        let skip = match (atomic, asking) {
            (true, _) => count + 1 + usize::from(asking),
            (false, _) => usize::from(asking),
        };
        let between = asking && !atomic;
        let replies = Vec::with_capacity(if atomic { 1 } else { count });
        shared.sent.lock().push_back(Sent {
            start,
            skip,
            between,
            refused: None,
            atomic,
            want: count,
            replies,
            call,
            since: request.since,
            done,
        });
    }
}

/// Writes whenever there is something to write.
pub(super) async fn write(shared: Arc<Shared>) {
    let failed = poll_fn(|context| {
        shared.write.register(context.waker());
        let advanced = shared.writer.lock().advance(&shared, context);
        shared.close_if_done();
        match advanced {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    })
    .await;
    shared.close(DialError::io("the connection was lost while writing", &failed));
}
