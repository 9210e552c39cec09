//! One connection: batches go out in order, replies come back in order.
//!
//! What is waiting to go out is held by its caller: dropped there, it is gone. A batch counts as sent from the moment its first
//! byte may be with the socket, and every failure says on which side of that moment each batch stood.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{BufMut, Bytes};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::answers::{self, Meaning};
use super::dial::{DialError, Stream};
use super::resp::{Decoder, Frame, Garbled, Outgoing};
use super::transport::{Batch, Failure, Reply};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

/// Commands are packed ahead of the socket up to this many bytes; what lies behind can still be withdrawn.
const AHEAD: usize = 64 * 1_024;
/// Pieces of one write to the socket.
const PIECES: usize = 32;
/// How long a silent connection may leave a PING unanswered.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection. It is closed when it fails, is told to, is retired and done, or is dropped.
pub(super) struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<VecDeque<Arc<Request>>>,
    writer: Mutex<Writer>,
    sent: Mutex<VecDeque<Sent>>,
    /// Wakes the task that writes.
    write: AtomicWaker,
    /// Bytes read so far.
    heard: AtomicU64,
    /// Batches that are queued or unanswered.
    open: AtomicUsize,
    /// Gets no new work, and closes once nothing is open.
    retired: AtomicBool,
    /// A caller timed out without a byte read: a PING is under way.
    doubted: AtomicBool,
    end: Mutex<Option<DialError>>,
    tasks: Mutex<Vec<AbortHandle>>,
    counters: Arc<EngineCounters>,
}

struct Writer {
    io: Option<Box<dyn AsyncWrite + Send + Sync + Unpin>>,
    out: Outgoing,
    /// The socket took less than it was offered.
    full: bool,
    /// Bytes packed and bytes written since the beginning.
    packed: u64,
    written: u64,
}

/// A batch on its way out. Its caller takes `work` back if it leaves before.
struct Request {
    work: Mutex<Option<Work>>,
}

struct Work {
    batch: Arc<Batch>,
    call: Call,
    done: Done,
}

type Done = oneshot::Sender<Result<Vec<Reply>, Failure>>;

/// A batch that went out and is not answered.
struct Sent {
    start: u64,
    /// Replies to come before those that count: to MULTI and to what it queues.
    skip: usize,
    atomic: bool,
    want: usize,
    replies: Vec<Reply>,
    call: Call,
    done: Done,
}

impl Link {
    /// Takes over a stream. Needs a runtime.
    pub(super) fn new(stream: Stream, counters: Arc<EngineCounters>) -> Self {
        let Stream { reader, writer } = stream;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            writer: Mutex::new(Writer { io: Some(writer), out: Outgoing::default(), full: false, packed: 0, written: 0 }),
            sent: Mutex::default(),
            write: AtomicWaker::new(),
            heard: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            doubted: AtomicBool::new(false),
            end: Mutex::default(),
            tasks: Mutex::default(),
            counters,
        });
        let reading = tokio::spawn(read(Arc::clone(&shared), reader)).abort_handle();
        let writing = tokio::spawn(write(Arc::clone(&shared))).abort_handle();
        shared.tasks.lock().extend([reading, writing]);
        let link = Self { shared };
        // It may have ended before its tasks were known.
        if link.end().is_some() {
            link.shared.stop();
        }
        link
    }

    /// Whether new work may go here.
    pub(super) fn takes_work(&self) -> bool {
        !self.shared.retired.load(Ordering::Acquire) && !self.shared.doubted.load(Ordering::Acquire) && self.end().is_none()
    }

    /// Why it is closed, if it is.
    pub(super) fn end(&self) -> Option<DialError> {
        self.shared.end.lock().clone()
    }

    /// Sends `batch` in its turn. `NotSent` before `call.deadline` means that this connection cannot take it and another can.
    pub(super) async fn send(self: &Arc<Self>, batch: Arc<Batch>, call: &Call) -> Result<Vec<Reply>, Failure> {
        if batch.commands.is_empty() {
            return Ok(Vec::new());
        }
        let (done, answer) = oneshot::channel();
        let request = Arc::new(Request { work: Mutex::new(Some(Work { batch, call: call.clone(), done })) });
        let heard = self.shared.heard.load(Ordering::Acquire);
        let first = self.shared.open.fetch_add(1, Ordering::AcqRel) == 0;
        self.shared.queue.lock().push_back(Arc::clone(&request));
        // `close` empties the queue after it sets `end`: one of the two sees the request.
        if let Some(end) = self.end() {
            self.shared.refuse_queue(&end.error);
        } else if !(first && self.shared.write_now()) {
            self.shared.write.wake();
        }
        let mut waiting = Waiting { link: self, request, call, heard, over: false };
        let limited = background::timeout_at(call.deadline, answer);
        match limited.await {
            Ok(answer) => {
                waiting.over = true;
                answer.unwrap_or_else(|_| Err(Failure::Lost(Error::internal("a connection forgot a batch"))))
            }
            // Dropping `waiting` withdraws what was not sent.
            Err(_) => {
                let error = Error::new(Code::Timeout, call.outcome(), "no answer until the deadline");
                let sent = !waiting.withdraw();
                Err(if sent { Failure::Lost(error.with_outcome(Outcome::Unknown)) } else { Failure::NotSent(error) })
            }
        }
    }

    /// Takes no new work, and closes once everything is answered. What was not sent goes elsewhere at once.
    pub(super) fn retire(&self) {
        self.shared.retired.store(true, Ordering::Release);
        self.shared.refuse_queue(&unavailable("the connection is being replaced"));
        self.shared.close_if_done();
    }

    /// Closes at once.
    pub(super) fn close(&self, why: &str) {
        self.shared.close(DialError::passing(why.to_owned()));
    }

    /// A caller timed out, and nothing at all was heard since `heard`: no new work comes here while a PING is under way. It
    /// closes if neither an answer comes nor bytes go out; a long transfer of somebody else's goes on.
    fn doubt(self: &Arc<Self>, heard: u64) {
        let shared = &self.shared;
        let silent = move |shared: &Shared| shared.heard.load(Ordering::Acquire) == heard;
        if !silent(shared) || self.end().is_some() || shared.doubted.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::debug!("a connection is silent; new work goes to another one");
        shared.refuse_queue(&unavailable("the connection is silent"));
        let link = Arc::clone(self);
        background::handle().spawn(async move {
            let shared = &link.shared;
            let mut written = shared.writer.lock().written;
            loop {
                let until = ambient::monotonic() + PATIENCE;
                let ping = Batch { commands: vec![vec![Bytes::from_static(b"PING")]], atomic: false };
                if link.send(Arc::new(ping), &Call::reading(until)).await.is_err() && link.end().is_none() {
                    background::sleep_until(until).await;
                }
                if !silent(shared) {
                    shared.doubted.store(false, Ordering::Release);
                    return;
                }
                let before = std::mem::replace(&mut written, shared.writer.lock().written);
                if before == written {
                    return link.close("the connection was silent");
                }
            }
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close("nobody uses the connection any more");
    }
}

/// A caller that waits for its answer.
struct Waiting<'a> {
    link: &'a Arc<Link>,
    request: Arc<Request>,
    call: &'a Call,
    heard: u64,
    over: bool,
}

impl Waiting<'_> {
    /// Takes back what was not sent; false if it was sent.
    fn withdraw(&mut self) -> bool {
        let withdrawn = self.request.work.lock().take().is_some();
        if withdrawn {
            self.link.shared.finished();
        }
        withdrawn
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.withdraw();
        if ambient::monotonic() >= self.call.deadline {
            self.link.doubt(self.heard);
        }
    }
}

impl Shared {
    /// Writes what is queued, on the caller's thread, if nobody is writing: spares a hop when the line is free.
    fn write_now(&self) -> bool {
        let Some(mut writer) = self.writer.try_lock() else { return false };
        if writer.full {
            return false;
        }
        let advanced = writer.advance(self, &mut Context::from_waker(Waker::noop()));
        drop(writer);
        self.close_if_done();
        matches!(advanced, Poll::Ready(Ok(())))
    }

    /// Not with `writer` locked.
    fn finished(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.close_if_done();
    }

    fn close_if_done(&self) {
        if self.retired.load(Ordering::Acquire) && self.open.load(Ordering::Acquire) == 0 {
            self.close(DialError::passing("the connection was replaced".to_owned()));
        }
    }

    /// Answers everything that is queued: not sent.
    fn refuse_queue(&self, error: &Error) {
        let queued = std::mem::take(&mut *self.queue.lock());
        for request in queued {
            let work = request.work.lock().take();
            if let Some(work) = work {
                let _ = work.done.send(Err(Failure::NotSent(error.clone())));
                self.finished();
            }
        }
    }

    fn close(&self, why: DialError) {
        {
            let mut end = self.end.lock();
            if end.is_some() {
                return;
            }
            *end = Some(why.clone());
        }
        self.stop();
        self.refuse_queue(&why.error);
        let written = {
            let mut writer = self.writer.lock();
            writer.io = None;
            writer.out = Outgoing::default();
            writer.written
        };
        let sent = std::mem::take(&mut *self.sent.lock());
        for batch in sent {
            let failure = if batch.start >= written {
                batch.call.unmark_sent();
                Failure::NotSent(why.error.clone())
            } else {
                Failure::Lost(why.error.clone().with_outcome(Outcome::Unknown))
            };
            let _ = batch.done.send(Err(failure));
            self.finished();
        }
    }

    /// Ends the tasks, which hold the socket.
    fn stop(&self) {
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
    }

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
            self.replies.push(reply);
            return self.atomic || self.replies.len() == self.want;
        }
        self.skip -= 1;
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

impl Writer {
    /// Packs and writes as much as the socket takes. Ready when nothing is left to do, Pending when the socket is full.
    fn advance(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.advance_inner(shared, context);
        self.full = result.is_pending();
        result
    }

    fn advance_inner(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
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
        let Some(Work { batch, call, done }) = work.take() else { return };
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
            self.out.word(b"MULTI");
        }
        for command in commands {
            self.out.command(command);
        }
        if atomic {
            self.out.word(b"EXEC");
        }
        self.packed += (self.out.len() - before) as u64;
        let count = commands.len();
        shared.counters.commands_sent.fetch_add(count as u64, Ordering::Relaxed);
        let skip = if atomic { count + 1 } else { 0 };
        let replies = Vec::with_capacity(if atomic { 1 } else { count });
        shared.sent.lock().push_back(Sent { start, skip, atomic, want: count, replies, call, done });
    }
}

/// Writes whenever there is something to write.
async fn write(shared: Arc<Shared>) {
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

/// Reads until the connection ends.
async fn read(shared: Arc<Shared>, mut io: Box<dyn AsyncRead + Send + Sync + Unpin>) {
    let mut decoder = Decoder::default();
    let why = loop {
        let (buffer, most) = decoder.space();
        let read = match io.read_buf(&mut buffer.limit(most)).await {
            Ok(0) => break DialError::passing("the server closed the connection".to_owned()),
            Ok(read) => read,
            Err(error) => break DialError::io("the connection was lost", &error),
        };
        decoder.filled(read);
        shared.heard.fetch_add(read as u64, Ordering::AcqRel);
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

fn unavailable(said: &str) -> Error {
    Error::new(Code::Unavailable, Outcome::NotApplied, said)
}
