//! The future that every store method returns.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;

use super::Cancellation;
use super::gate::{Gate, UnderWay};
use crate::contract::{Error, Outcome};

/// One operation. It starts when it is first polled; dropping it cancels it: what was not yet sent is never sent, what was
/// sent may or may not happen.
#[must_use = "an operation does nothing until it is awaited"]
pub struct Operation<T>(State<T>);

enum State<T> {
    Rejected(Option<Error>),
    /// Not let in yet.
    Waiting(Arc<Gate>, BoxFuture<'static, Result<T, Error>>),
    Running(BoxFuture<'static, Result<T, Error>>, Option<UnderWay>),
}

impl<T: 'static> Operation<T> {
    /// `gate` lets it in when it begins.
    pub(crate) fn new(gate: Arc<Gate>, future: BoxFuture<'static, Result<T, Error>>) -> Self {
        Self(State::Waiting(gate, future))
    }

    /// An operation whose result is known, and for which no store is needed.
    pub(crate) fn ready(result: Result<T, Error>) -> Self
    where
        T: Send,
    {
        Self(State::Running(Box::pin(std::future::ready(result)), None))
    }

    /// Work that no store lets in and none counts, such as the closing of one.
    pub fn of(work: impl Future<Output = Result<T, Error>> + Send + 'static) -> Self {
        Self(State::Running(Box::pin(work), None))
    }

    /// Has it count as under way, once begun, until what this gives is dropped: beyond its own end. `None`: it was not let in, or
    /// is over.
    pub fn stay_under_way(&mut self) -> Option<UnderWay> {
        match &mut self.0 {
            State::Running(_, under_way) => under_way.take(),
            State::Rejected(_) | State::Waiting(..) => None,
        }
    }

    /// Counts it as under way from now on, polled or not: a store that is closed after this waits for it.
    pub fn begin(&mut self) {
        let state = std::mem::replace(&mut self.0, State::Rejected(None));
        self.0 = match state {
            State::Waiting(gate, future) => match UnderWay::enter(gate) {
                Ok(under_way) => State::Running(future, Some(under_way)),
                Err(closed) => State::Rejected(Some(closed)),
            },
            begun => begun,
        };
    }

    /// An argument was wrong: nothing will be started.
    pub(crate) fn rejected(error: Error) -> Self {
        Self(State::Rejected(Some(error)))
    }

    /// The argument error that was found when the operation was made, if there was one.
    ///
    /// # Errors
    /// That error.
    pub fn checked(self) -> Result<Self, Error> {
        match self.0 {
            State::Rejected(Some(error)) => Err(error),
            state => Ok(Self(state)),
        }
    }

    /// Ends with `CANCELLED` as soon as `cancellation` is cancelled. Cancelled before the start: nothing is sent. An argument
    /// error goes before a cancellation.
    pub fn with_cancellation(self, cancellation: &Cancellation) -> Self {
        if matches!(self.0, State::Rejected(_)) {
            return self;
        }
        let cancellation = cancellation.clone();
        let cancellable = async move {
            if cancellation.is_cancelled() {
                return Err(Error::cancelled(Outcome::NotApplied));
            }
            tokio::select! {
                biased;
                result = self => result,
                () = cancellation.cancelled() => Err(Error::cancelled(Outcome::Unknown)),
            }
        };
        Self(State::Running(Box::pin(cancellable), None))
    }

    /// Polls once. An operation of a store whose [`answers_inline`](crate::LocationStore::answers_inline) is true is always
    /// done then; of another store, it may have started, and goes on when it is awaited.
    pub fn poll_now(&mut self) -> Poll<Result<T, Error>> {
        Pin::new(self).poll(&mut Context::from_waker(Waker::noop()))
    }
}

impl<T: 'static> Future for Operation<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.begin();
        match &mut self.0 {
            State::Rejected(error) => Poll::Ready(Err(error.take().unwrap_or_else(|| Error::internal("polled after its end")))),
            State::Running(future, under_way) => {
                let polled = future.as_mut().poll(context);
                if polled.is_ready() {
                    *under_way = None;
                }
                polled
            }
            State::Waiting(..) => Poll::Ready(Err(Error::internal("an operation that was not let in"))),
        }
    }
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Rejected(_) => "Operation(rejected)",
            State::Waiting(..) | State::Running(..) => "Operation",
        })
    }
}
