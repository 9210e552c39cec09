//! One connection: batches go out in order, replies come back in order.
//!
//! What is waiting to go out is held by its caller: dropped there, it is gone. A batch counts as sent from the moment its first
//! byte may be with the socket, and every failure says on which side of that moment each batch stood.

mod doubt;
mod incoming;
mod outgoing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub(super) use self::doubt::Neighbours;
use self::incoming::{Sent, read};
use self::outgoing::{Writer, write};
use super::dial::{DialError, Stream};
use super::transport::{Batch, Failure, Reply};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

/// A connection. It is closed when it fails, is told to, is retired and done, or is dropped.
pub(super) struct Link {
    shared: Arc<Shared>,
    neighbours: Arc<Neighbours>,
}

struct Shared {
    queue: Mutex<VecDeque<Arc<Request>>>,
    writer: Mutex<Writer>,
    sent: Mutex<VecDeque<Sent>>,
    /// Wakes the task that writes.
    write: AtomicWaker,
    born: Instant,
    /// When something was read last: microseconds since `born`, 0 for never.
    heard: AtomicU64,
    /// Batches that are queued or unanswered.
    open: AtomicUsize,
    /// Gets no new work, and closes once nothing is open.
    retired: AtomicBool,
    /// A caller timed out and nothing is heard: a PING is under way.
    doubted: AtomicBool,
    end: Mutex<Option<DialError>>,
    tasks: Mutex<Vec<AbortHandle>>,
    counters: Arc<EngineCounters>,
}

/// A batch on its way out. Its caller takes `work` back if it leaves before.
struct Request {
    work: Mutex<Option<Work>>,
    deadline: Instant,
    since: Instant,
    /// Stays queued on a connection that gets no new work.
    stays: bool,
}

/// How a batch goes out.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Plainly,
    /// With ASKING in front of each command, or of the transaction.
    Asking,
    /// Also on a connection that gets no new work.
    Staying,
}

struct Work {
    batch: Arc<Batch>,
    asking: bool,
    call: Call,
    done: Done,
}

type Done = oneshot::Sender<Result<Vec<Reply>, Failure>>;

impl Link {
    /// Takes over a stream. Needs a runtime.
    pub(super) fn new(stream: Stream, counters: Arc<EngineCounters>, neighbours: &Arc<Neighbours>) -> Arc<Self> {
        let Stream { reader, writer } = stream;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            writer: Mutex::new(Writer::new(writer)),
            sent: Mutex::default(),
            write: AtomicWaker::new(),
            born: ambient::monotonic(),
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
        let link = Arc::new(Self { shared, neighbours: Arc::clone(neighbours) });
        // It may have ended before its tasks were known.
        if link.end().is_some() {
            link.shared.stop();
        }
        link
    }

    /// When it was made.
    pub(super) fn born(&self) -> Instant {
        self.shared.born
    }

    /// Whether new work may go here.
    pub(super) fn takes_work(self: &Arc<Self>) -> bool {
        let open = || {
            !self.shared.retired.load(Ordering::Acquire)
                && !self.shared.doubted.load(Ordering::Acquire)
                && self.shared.end.lock().is_none()
        };
        open() && {
            self.look_for_overdue();
            open()
        }
    }

    /// Whether the server has said anything.
    pub(super) fn has_spoken(&self) -> bool {
        self.shared.heard.load(Ordering::Acquire) > 0
    }

    /// Why it is closed, if it is.
    pub(super) fn end(&self) -> Option<DialError> {
        self.shared.end.lock().clone()
    }

    /// Sends `batch` in its turn. `NotSent` before `call.deadline` means that this connection cannot take it and another can.
    pub(super) async fn send(self: &Arc<Self>, batch: Arc<Batch>, call: &Call) -> Result<Vec<Reply>, Failure> {
        self.send_as(How::Plainly, batch, call).await
    }

    /// As [`send`](Self::send), to a node of a Cluster that is only about to have the slot: with ASKING in front.
    pub(super) async fn send_asking(self: &Arc<Self>, batch: Arc<Batch>, call: &Call) -> Result<Vec<Reply>, Failure> {
        self.send_as(How::Asking, batch, call).await
    }

    async fn send_as(self: &Arc<Self>, how: How, batch: Arc<Batch>, call: &Call) -> Result<Vec<Reply>, Failure> {
        if batch.commands.is_empty() {
            return Ok(Vec::new());
        }
        let (done, answer) = oneshot::channel();
        let since = ambient::monotonic();
        let stays = how == How::Staying;
        let asking = how == How::Asking;
        let work = Mutex::new(Some(Work { batch, asking, call: call.clone(), done }));
        let request = Arc::new(Request { work, deadline: call.deadline, since, stays });
        let first = self.shared.open.fetch_add(1, Ordering::AcqRel) == 0;
        self.shared.queue.lock().push_back(Arc::clone(&request));
        // Whoever closes, retires or doubts the connection empties the queue after saying so: one of the two sees the request.
        let end = self.end();
        if end.is_some() || !(stays || self.takes_work()) {
            let why = end.map_or_else(|| unavailable("the connection is being replaced"), |end| end.error);
            self.shared.refuse_queue(&why);
        } else if !(first && self.shared.write_now()) {
            self.shared.write.wake();
        }
        let mut waiting = Waiting { link: self, request, over: false };
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
        if ambient::monotonic() >= self.request.deadline {
            self.link.timed_out(self.request.since);
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

    /// Answers what is queued: not sent. What stays does so until the connection has ended.
    fn refuse_queue(&self, error: &Error) {
        let ended = self.end.lock().is_some();
        let refused: VecDeque<_> = {
            let mut queue = self.queue.lock();
            let (kept, refused) = queue.drain(..).partition(|request| request.stays && !ended);
            *queue = kept;
            refused
        };
        for request in refused {
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
            writer.close();
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
}

fn unavailable(said: &str) -> Error {
    Error::new(Code::Unavailable, Outcome::NotApplied, said)
}
