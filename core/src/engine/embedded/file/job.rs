//! One commit on its way through the committer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use super::draft::{Drafted, Round};
use crate::call::Call;
use crate::contract::{Error, Outcome, StoreTime};
use crate::engine::embedded::storage::Draft;

/// What the committer knows of a commit.
pub(super) trait Job: Send {
    /// Takes the commit up, unless its caller has gone: past this it may be applied.
    fn take_up(&self) -> bool;
    /// Works out what changes and keeps the answer. What it changes is returned; after an error that is nothing.
    fn evaluate(&mut self, round: &Round, now: StoreTime) -> Drafted;
    /// Gives the answer out.
    fn answer(self: Box<Self>);
    /// Gives an error out instead.
    fn fail(self: Box<Self>, error: Error);
}

pub(super) struct Task<R, F> {
    call: Call,
    change: Option<F>,
    result: Option<Result<R, Error>>,
    sender: oneshot::Sender<Result<R, Error>>,
}

impl<R, F> Task<R, F> {
    pub(super) fn new(call: Call, change: F) -> (Box<Self>, oneshot::Receiver<Result<R, Error>>) {
        let (sender, receiver) = oneshot::channel();
        (Box::new(Self { call, change: Some(change), result: None, sender }), receiver)
    }
}

impl<R, F> Job for Task<R, F>
where
    F: FnOnce(&mut dyn Draft, StoreTime) -> Result<R, Error> + Send,
    R: Send,
{
    fn take_up(&self) -> bool {
        self.call.mark_sent();
        !self.sender.is_closed()
    }

    fn evaluate(&mut self, round: &Round, now: StoreTime) -> Drafted {
        let Some(change) = self.change.take() else { return Drafted::default() };
        let mut draft = round.draft();
        // A panic is a fault of ours; it must not take the other commits along.
        let result = catch_unwind(AssertUnwindSafe(|| change(&mut draft, now)));
        let result = result.unwrap_or_else(|_| Err(Error::internal("a commit could not be worked out")));
        let drafted = if result.is_ok() { draft.drafted } else { Drafted::default() };
        self.result = Some(result.map_err(|error| error.with_outcome(Outcome::NotApplied)));
        drafted
    }

    fn answer(self: Box<Self>) {
        let result = self.result.unwrap_or_else(|| Err(Error::internal("a commit without a result")));
        let _ = self.sender.send(result);
    }

    fn fail(self: Box<Self>, error: Error) {
        if error.outcome() == Outcome::NotApplied {
            self.call.unmark_sent();
        }
        let _ = self.sender.send(Err(error));
    }
}
