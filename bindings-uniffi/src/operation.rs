//! An operation as an object of the other language.
//!
//! The async functions of uniffi lose a result that is ready but not yet fetched when a task is cancelled: its buffer is never
//! freed, and a lease would stay held. So the answer lies in an object that the other side owns from the start, the awaited call
//! gives nothing, and a plain call takes the answer. The object is the cancellation as well.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Notify;
use zlink_store::{Error, Operation, Outcome, UnderWay};

use crate::drive::drive;
use crate::ended::EndedOperations;
use crate::error::StoreError;

/// An operation. Dropped, it is cancelled.
pub(crate) struct Running<T: Send + 'static> {
    slot: Arc<Slot<T>>,
}

/// What becomes of an operation that has begun and that nobody waits for any more.
pub(crate) enum Unwanted<T> {
    /// It is dropped: what was not yet sent is never sent, an answer is forgotten.
    Drop,
    /// It goes on to its end.
    Finish,
    /// It is dropped; what it had got is given back.
    GiveBack(GiveBack<T>),
}

/// How what an operation had got is given back.
pub(crate) struct GiveBack<T> {
    /// Whether there is anything to give back. With that it counts as under way until its answer is taken or given back, so that
    /// its store can still do it.
    pub(crate) holds: fn(&T) -> bool,
    pub(crate) give_back: fn(T, Option<UnderWay>),
}

impl<T> Unwanted<T> {
    fn keeps(&self, answer: &Result<T, Error>) -> bool {
        matches!((self, answer), (Self::GiveBack(back), Ok(got)) if (back.holds)(got))
    }
}

struct Slot<T: 'static> {
    state: Mutex<State<T>>,
    ended: Notify,
    unwanted: Unwanted<T>,
}

enum State<T: 'static> {
    Made(Operation<T>),
    Begun(Begun<T>),
    Ended(Result<T, Error>, Option<UnderWay>),
    /// The answer was taken, or nobody wants it.
    Over,
}

struct Begun<T: 'static> {
    operation: Operation<T>,
    under_way: Option<UnderWay>,
    /// Of the task that drives it, once that has looked.
    task: Option<Waker>,
    told: Option<Told>,
}

/// Who is told of its end, and how it is called there.
type Told = (Arc<EndedOperations>, u64);

impl<T: Send + 'static> Running<T> {
    /// Of an `operation` whose arguments are right; nothing of it has happened when this returns.
    pub(crate) fn new(operation: Operation<T>, unwanted: Unwanted<T>) -> Result<Self, StoreError> {
        let state = Mutex::new(State::Made(operation.checked()?));
        Ok(Self { slot: Arc::new(Slot { state, ended: Notify::new(), unwanted }) })
    }

    /// Starts it, if it was not: it is under way, and before those that are started after it, when this returns. Whether it has
    /// ended.
    pub(crate) fn start(&self) -> bool {
        self.begin(None)
    }

    /// As [`start`](Self::start); of an end that comes later, `ended` is told.
    pub(crate) fn start_into(&self, ended: Arc<EndedOperations>, number: u64) -> bool {
        self.begin(Some((ended, number)))
    }

    fn begin(&self, told: Option<Told>) -> bool {
        let mut state = self.slot.state.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Made(mut operation) => {
                operation.begin();
                let under_way = match self.slot.unwanted {
                    Unwanted::GiveBack(_) => operation.stay_under_way(),
                    Unwanted::Drop | Unwanted::Finish => None,
                };
                if let Poll::Ready(answer) = poll(&mut operation, &mut Context::from_waker(Waker::noop())) {
                    let kept = under_way.filter(|_| self.slot.unwanted.keeps(&answer));
                    *state = State::Ended(answer, kept);
                    return true;
                }
                *state = State::Begun(Begun { operation, under_way, task: None, told });
                drop(state);
                drive(Drive(Arc::clone(&self.slot)));
                false
            }
            State::Begun(mut begun) => {
                begun.told = told.or(begun.told);
                *state = State::Begun(begun);
                false
            }
            over => {
                *state = over;
                true
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

    /// Ends it now: what it held is free when this returns, unless it is one that goes on to its end.
    pub(crate) fn cancel(&self) {
        let mut state = self.slot.state.lock();
        let outcome = match *state {
            State::Made(_) => Outcome::NotApplied,
            State::Begun(_) | State::Ended(Ok(_), _) => Outcome::Unknown,
            State::Ended(Err(_), _) | State::Over => return,
        };
        let left = std::mem::replace(&mut *state, State::Ended(Err(Error::cancelled(outcome)), None));
        drop(state);
        let told = self.slot.leave(left);
        self.slot.tell(told);
    }

    pub(crate) fn take(&self) -> Result<T, StoreError> {
        let mut state = self.slot.state.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Ended(answer, _under_way) => Ok(answer?),
            State::Over => Err(Error::internal("the result of an operation can be taken once").into()),
            early => {
                *state = early;
                Err(Error::internal("the result was asked for before the operation ended; await it first").into())
            }
        }
    }
}

impl<T: Send + 'static> Slot<T> {
    /// Gives up what was `left`: who waits for it.
    fn leave(&self, left: State<T>) -> Option<Told> {
        match (left, &self.unwanted) {
            (State::Begun(begun), unwanted) => {
                let Begun { operation, under_way: _under_way, task, told } = begun;
                match unwanted {
                    Unwanted::Finish => drive(async move {
                        let _ = operation.await;
                    }),
                    Unwanted::Drop | Unwanted::GiveBack(_) => drop(operation),
                }
                // It finds nothing to drive any more, and ends.
                task.into_iter().for_each(Waker::wake);
                return told;
            }
            (State::Ended(Ok(got), under_way), Unwanted::GiveBack(back)) => (back.give_back)(got, under_way),
            (State::Made(_) | State::Ended(..) | State::Over, _) => {}
        }
        None
    }

    fn tell(&self, told: Option<Told>) {
        self.ended.notify_waiters();
        if let Some((ended, number)) = told {
            ended.push(number);
        }
    }
}

impl<T: Send + 'static> Drop for Running<T> {
    fn drop(&mut self) {
        let left = std::mem::replace(&mut *self.slot.state.lock(), State::Over);
        self.slot.leave(left);
    }
}

/// A panic is the end of this operation, and of nothing else. What it says may hold anything, so it is only where Rust writes
/// panics, on the standard error output.
fn poll<T: 'static>(operation: &mut Operation<T>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
    let poll = || Pin::new(operation).poll(context);
    catch_unwind(AssertUnwindSafe(poll)).unwrap_or_else(|_| Poll::Ready(Err(panicked())))
}

pub(crate) fn panicked() -> Error {
    Error::internal("a fault of the library ended the operation; please report what stands on the standard error output")
}

/// Drives an operation to its end on the core's own threads.
struct Drive<T: 'static>(Arc<Slot<T>>);

impl<T: Send + 'static> Future for Drive<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state.lock();
        let State::Begun(begun) = &mut *state else { return Poll::Ready(()) };
        let Poll::Ready(answer) = poll(&mut begun.operation, context) else {
            begun.task = Some(context.waker().clone());
            return Poll::Pending;
        };
        let under_way = begun.under_way.take().filter(|_| self.0.unwanted.keeps(&answer));
        let over = std::mem::replace(&mut *state, State::Ended(answer, under_way));
        drop(state);
        if let State::Begun(Begun { operation, told, .. }) = over {
            self.0.tell(told);
            drop(operation);
        }
        Poll::Ready(())
    }
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

            /// As `start`; if it ends later, its `number` goes to `ended` then.
            pub fn start_into(&self, ended: std::sync::Arc<crate::ended::EndedOperations>, number: u64) -> bool {
                self.0.start_into(ended, number)
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
mod tests;
