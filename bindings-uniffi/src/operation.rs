//! An operation as an object of the other language.
//!
//! The async functions of uniffi lose a result that is ready but not yet fetched when a task is cancelled: its buffer is never
//! freed, and a lease would stay held. So the answer lies in an object that the other side owns from the start, the awaited call
//! gives nothing, and a plain call takes the answer. The object is the cancellation as well.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use zlink_store::{Error, Operation, Outcome, spawn};

use crate::error::StoreError;

/// An operation. Dropped, it is cancelled; what it had got and nobody took is given to `abandon`.
pub(crate) struct Running<T: Send + 'static> {
    slot: Arc<Slot<T>>,
}

struct Slot<T: 'static> {
    state: Mutex<State<T>>,
    ended: Notify,
    abandon: fn(T),
}

enum State<T: 'static> {
    Made(Operation<T>),
    /// With the task that drives it, once that has looked.
    UnderWay(Operation<T>, Option<Waker>),
    Ended(Result<T, Error>),
    /// The answer was taken, or nobody wants it.
    Over,
}

impl<T: Send + 'static> Running<T> {
    /// Of an `operation` whose arguments are right; nothing of it has happened when this returns.
    pub(crate) fn new(operation: Operation<T>, abandon: fn(T)) -> Result<Self, StoreError> {
        let state = Mutex::new(State::Made(operation.checked()?));
        Ok(Self { slot: Arc::new(Slot { state, ended: Notify::new(), abandon }) })
    }

    /// Starts it, if it was not: it is under way, and before those that are started after it, when this returns. Whether it has
    /// ended.
    pub(crate) fn start(&self) -> bool {
        let mut state = self.slot.state.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Made(mut operation) => {
                operation.begin();
                if let Poll::Ready(answer) = operation.poll_now() {
                    *state = State::Ended(answer);
                    return true;
                }
                *state = State::UnderWay(operation, None);
                drop(state);
                drive(Drive(Arc::clone(&self.slot)));
                false
            }
            other => {
                *state = other;
                !matches!(*state, State::UnderWay(..))
            }
        }
    }

    /// Starts it, if it was not, and waits for its end.
    pub(crate) async fn wait(&self) {
        loop {
            let ended = self.slot.ended.notified();
            if self.start() {
                return;
            }
            ended.await;
        }
    }

    /// Ends it now: what it held is free when this returns. What it had got and nobody took is given back.
    pub(crate) fn cancel(&self) {
        let mut state = self.slot.state.lock();
        let outcome = match *state {
            State::Made(_) => Outcome::NotApplied,
            State::UnderWay(..) | State::Ended(Ok(_)) => Outcome::Unknown,
            State::Ended(Err(_)) | State::Over => return,
        };
        let left = std::mem::replace(&mut *state, State::Ended(Err(Error::cancelled(outcome))));
        drop(state);
        self.slot.leave(left);
        self.slot.ended.notify_waiters();
    }

    pub(crate) fn take(&self) -> Result<T, StoreError> {
        let mut state = self.slot.state.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Ended(answer) => Ok(answer?),
            State::Over => Err(Error::internal("the result of an operation can be taken once").into()),
            early => {
                *state = early;
                Err(Error::internal("the result was asked for before the operation ended; await it first").into())
            }
        }
    }
}

impl<T: 'static> Slot<T> {
    fn leave(&self, left: State<T>) {
        match left {
            State::UnderWay(operation, task) => {
                drop(operation);
                // It finds nothing to drive any more, and ends.
                task.into_iter().for_each(Waker::wake);
            }
            State::Ended(Ok(unwanted)) => (self.abandon)(unwanted),
            State::Made(_) | State::Ended(Err(_)) | State::Over => {}
        }
    }
}

impl<T: Send + 'static> Drop for Running<T> {
    fn drop(&mut self) {
        let left = std::mem::replace(&mut *self.slot.state.lock(), State::Over);
        self.slot.leave(left);
    }
}

/// Drives an operation to its end on the core's own threads.
struct Drive<T: 'static>(Arc<Slot<T>>);

impl<T: Send + 'static> Future for Drive<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state.lock();
        if let State::UnderWay(operation, task) = &mut *state {
            match Pin::new(operation).poll(context) {
                Poll::Pending => {
                    *task = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(answer) => {
                    let over = std::mem::replace(&mut *state, State::Ended(answer));
                    drop(state);
                    drop(over);
                    self.0.ended.notify_waiters();
                }
            }
        }
        Poll::Ready(())
    }
}

/// One task drives all, so that what was started first also goes first where several have waited for the same thing, such as a
/// connection.
fn drive(work: impl Future<Output = ()> + Send + 'static) {
    static INBOX: OnceLock<mpsc::UnboundedSender<BoxFuture<'static, ()>>> = OnceLock::new();
    let inbox = INBOX.get_or_init(|| {
        let (inbox, mut came) = mpsc::unbounded_channel();
        spawn(async move {
            let mut under_way = FuturesUnordered::new();
            loop {
                tokio::select! {
                    biased;
                    work = came.recv() => match work {
                        Some(work) => under_way.push(work),
                        None => return,
                    },
                    Some(()) = under_way.next() => {}
                }
            }
        });
        inbox
    });
    // The receiver lives as long as the process.
    let _ = inbox.send(work.boxed());
}

/// Lets `work` run to its end on the core's own threads, whether the caller waits for it or not.
pub(crate) async fn finish(work: impl Future<Output = ()> + Send + 'static) {
    let (done, ended) = tokio::sync::oneshot::channel();
    spawn(async move {
        work.await;
        let _ = done.send(());
    });
    let _ = ended.await;
}

/// Makes the object of one kind of operation: what the core answers, what the other side gets for it, and the translation.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident: $core:ty => [$($answer:tt)*], $translate:expr) => {
        $(#[$doc])*
        #[derive(uniffi::Object)]
        pub struct $name(pub(crate) crate::operation::Running<$core>);

        #[uniffi::export]
        impl $name {
            /// Starts the operation, if it was not, and ends when it has ended, whatever came of it; `result` has it then. Giving
            /// this wait up ends nothing but the wait.
            pub async fn wait(&self) {
                self.0.wait().await;
            }

            /// Starts the operation, if it was not. True: it has ended already, so that there is nothing to wait for.
            pub fn start(&self) -> bool {
                self.0.start()
            }

            /// Ends the operation, and a wait for it, at once with the error `Cancelled`, unless its result was taken. What was
            /// not yet sent is never sent; what was sent may or may not happen. Freeing the object does the same.
            pub fn cancel(&self) {
                self.0.cancel();
            }

            /// What came of the operation; it can be taken once, after the wait.
            pub fn result(&self) -> Result<$($answer)*, crate::error::StoreError> {
                self.0.take().map($translate)
            }
        }
    };
}
pub(crate) use operation;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    fn project(name: &str) -> zlink_store::Project {
        let id = zlink_store::ProjectId::new("w", "p").unwrap();
        zlink_store::Project::open(format!("memory:{name}").as_str(), id, Default::default()).unwrap()
    }

    fn acquire(project: &zlink_store::Project, wait_ms: u64) -> Running<Option<zlink_store::LockLease>> {
        let options = zlink_store::LockOptions { wait_ms, ..Default::default() };
        Running::new(project.locks().acquire("k", options), crate::locks::give_back).unwrap()
    }

    /// What was given back is free again soon.
    async fn becomes_free(project: &zlink_store::Project) {
        let lease = acquire(project, 10_000);
        lease.wait().await;
        assert!(lease.take().unwrap().is_some());
    }

    #[tokio::test]
    async fn a_lease_that_nobody_took_is_released() {
        let project = project("operation-dropped");
        let got = acquire(&project, 0);
        assert!(got.start());
        drop(got);
        becomes_free(&project).await;
    }

    #[tokio::test]
    async fn a_lease_that_came_before_the_cancellation_is_released_and_not_given_out() {
        let project = project("operation-cancelled");
        let got = acquire(&project, 0);
        assert!(got.start());
        got.cancel();
        assert_eq!(got.take().unwrap_err().code(), "CANCELLED");
        becomes_free(&project).await;
    }

    #[tokio::test]
    async fn cancelling_ends_the_wait_and_the_operation() {
        let project = project("operation-waiting");
        let held = acquire(&project, 0);
        held.wait().await;
        let held = held.take().unwrap().unwrap();
        let waiting = Arc::new(acquire(&project, 10_000));
        let (ended, end) = oneshot::channel();
        let waiter = Arc::clone(&waiting);
        tokio::spawn(async move {
            waiter.wait().await;
            ended.send(waiter.take()).ok();
        });
        tokio::task::yield_now().await;
        waiting.cancel();
        assert_eq!(end.await.unwrap().unwrap_err().code(), "CANCELLED");
        // Cancelling again, and after the result was taken, does nothing.
        waiting.cancel();
        // It left the queue, and its place, within the call: nobody stands before the next one.
        let _ = held.release().await.unwrap();
        becomes_free(&project).await;
    }

    #[tokio::test]
    async fn a_result_is_there_once_and_not_early() {
        let project = project("operation-once");
        let held = acquire(&project, 0);
        assert_eq!(held.take().unwrap_err().code(), "INTERNAL");
        assert!(held.start() && held.start());
        let lease = held.take().unwrap().unwrap();
        assert_eq!(held.take().unwrap_err().code(), "INTERNAL");
        let waiting = acquire(&project, 10_000);
        assert!(!waiting.start());
        assert_eq!(waiting.take().unwrap_err().code(), "INTERNAL");
        let _ = lease.release().await.unwrap();
        waiting.wait().await;
        assert!(waiting.take().unwrap().is_some());
    }

    #[tokio::test]
    async fn cancelled_before_the_start_nothing_happens() {
        let project = project("operation-unstarted");
        let early = acquire(&project, 0);
        early.cancel();
        assert!(early.start());
        early.wait().await;
        let error = early.take().unwrap_err();
        assert_eq!((error.code().as_str(), error.result_outcome()), ("CANCELLED", crate::Outcome::NotApplied));
        drop(acquire(&project, 0));
        assert_eq!(project.stats().operations.iter().map(|(_, count)| count).sum::<u64>(), 0);
    }

    #[tokio::test]
    async fn closing_waits_for_what_was_started() {
        let store = zlink_store::LocationStore::open("memory:operation-closing", Default::default()).unwrap();
        let key = zlink_store::Key::new("k").unwrap();
        let read = Running::new(store.read(key), drop).unwrap();
        read.start();
        finish(async move { store.close().await }).await;
        tokio::time::timeout(Duration::from_secs(30), read.wait()).await.unwrap();
        assert!(read.take().is_ok());
    }
}
