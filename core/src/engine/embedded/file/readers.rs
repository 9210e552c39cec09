//! The threads that read from the disk: a few, so that a thousand waiting reads do not make a thousand threads.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::background;
use crate::contract::Error;

/// Most threads that read at once for one folder.
const READERS: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Clone, Default)]
pub(super) struct Readers(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    readers: usize,
}

impl Readers {
    /// Runs `read` on a thread that may block, unless the caller has gone by then.
    pub(super) async fn run<R, F>(&self, read: F) -> Result<R, Error>
    where
        F: FnOnce() -> Result<R, Error> + Send + 'static,
        R: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.submit(Box::new(move || {
            if !sender.is_closed() {
                let _ = sender.send(read());
            }
        }));
        receiver.await.unwrap_or_else(|_| Err(Error::internal("a read ended early")))
    }

    fn submit(&self, job: Job) {
        let mut waiting = self.0.lock();
        waiting.jobs.push_back(job);
        if waiting.readers < READERS {
            waiting.readers += 1;
            let readers = Reader(Arc::clone(&self.0));
            background::handle().spawn_blocking(move || readers.drain());
        }
    }
}

/// One thread's turn: it ends when nothing waits.
struct Reader(Arc<Mutex<Waiting>>);

impl Reader {
    fn drain(&self) {
        while let Some(job) = self.next() {
            // A read that panics fails alone: its caller finds the channel closed.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut waiting = self.0.lock();
        let job = waiting.jobs.pop_front();
        if job.is_none() {
            waiting.readers -= 1;
        }
        job
    }
}
