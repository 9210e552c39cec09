//! One connection: batches go out in order, replies come back in order.
//!
//! What is waiting to go out is held by its caller: dropped there, it is gone. A batch counts as sent from the moment its first
//! byte may be with the socket, and every failure says on which side of that moment each batch stood.

mod incoming;
mod outgoing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use self::incoming::{Sent, read};
use self::outgoing::{Writer, write};
use super::dial::{DialError, Stream};
use super::transport::{Batch, Failure, Reply};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

/// How long a silent connection may leave a PING unanswered, when nothing else is under way.
const PATIENCE: Duration = Duration::from_secs(5);
/// KiB per second of a line that is slow, but good for something.
const SLOWEST: u32 = 64;

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

impl Link {
    /// Takes over a stream. Needs a runtime.
    pub(super) fn new(stream: Stream, counters: Arc<EngineCounters>) -> Self {
        let Stream { reader, writer } = stream;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            writer: Mutex::new(Writer::new(writer)),
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
        !self.shared.retired.load(Ordering::Acquire)
            && !self.shared.doubted.load(Ordering::Acquire)
            && self.shared.end.lock().is_none()
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
        self.send_if(|| self.takes_work(), batch, call).await
    }

    async fn send_if(
        self: &Arc<Self>,
        takes_work: impl Fn() -> bool,
        batch: Arc<Batch>,
        call: &Call,
    ) -> Result<Vec<Reply>, Failure> {
        if batch.commands.is_empty() {
            return Ok(Vec::new());
        }
        let (done, answer) = oneshot::channel();
        let request = Arc::new(Request { work: Mutex::new(Some(Work { batch, call: call.clone(), done })) });
        let heard = self.shared.heard.load(Ordering::Acquire);
        let first = self.shared.open.fetch_add(1, Ordering::AcqRel) == 0;
        self.shared.queue.lock().push_back(Arc::clone(&request));
        // Whoever closes, retires or doubts the connection empties the queue after saying so: one of the two sees the request.
        if !takes_work() {
            self.shared
                .refuse_queue(&self.end().map_or_else(|| unavailable("the connection is being replaced"), |end| end.error));
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
    /// closes if nothing is heard in the time that what is under way needs on a slow line: a long transfer of somebody else's
    /// goes on.
    fn doubt(self: &Arc<Self>, heard: u64) {
        let shared = &self.shared;
        let silent = move |shared: &Shared| shared.heard.load(Ordering::Acquire) == heard;
        if !silent(shared) || self.end().is_some() || shared.doubted.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::debug!("a connection is silent; new work goes to another one");
        shared.refuse_queue(&unavailable("the connection is silent"));
        let until = ambient::monotonic() + PATIENCE + shared.unanswered() / SLOWEST;
        let link = Arc::clone(self);
        background::handle().spawn(async move {
            let ping = Batch { commands: vec![vec![Bytes::from_static(b"PING")]], atomic: false };
            let open = || link.shared.end.lock().is_none();
            let answered = link.send_if(open, Arc::new(ping), &Call::reading(until)).await.is_ok();
            if answered || !silent(&link.shared) {
                link.shared.doubted.store(false, Ordering::Release);
            } else {
                link.close("the connection was silent");
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

    /// How long a line of a KiB per second takes for what went out and is not answered.
    fn unanswered(&self) -> Duration {
        let packed = self.writer.lock().packed;
        let answered = self.sent.lock().front().map_or(packed, |batch| batch.start);
        Duration::from_secs(packed.saturating_sub(answered) / 1_024)
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
