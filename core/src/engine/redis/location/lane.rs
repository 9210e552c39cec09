//! Work that waits for the line: whoever is first starts a round on our own runtime, and what waits when the round is over
//! goes out together in the next one.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Instant;

use parking_lot::Mutex;

use crate::background;
use crate::contract::{Code, Error};

/// A job that waits.
pub(super) trait Waiting: Send + 'static {
    /// Until when its caller waits.
    fn deadline(&self) -> Instant;
    /// Tells the caller that it failed.
    fn fail(self, error: &Error);
}

/// Jobs that wait, and how many rounds are under way.
pub(super) struct Lane<J> {
    state: Mutex<State<J>>,
    width: usize,
}

struct State<J> {
    waiting: VecDeque<J>,
    rounds: usize,
}

impl<J: Waiting> Lane<J> {
    /// At most `width` rounds at once.
    pub(super) fn new(width: usize) -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), rounds: 0 }), width }
    }

    /// Adds a job, and starts rounds of `round` if there is room for them; they go on until nothing waits.
    pub(super) fn push<R, F>(&self, job: J, round: R)
    where
        R: FnOnce() -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut state = self.state.lock();
        state.waiting.push_back(job);
        if state.rounds == self.width {
            return;
        }
        state.rounds += 1;
        drop(state);
        background::start(round());
    }

    /// Whether another round is to be made; if not, this row of rounds has ended.
    pub(super) fn goes_on(&self) -> bool {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            state.rounds -= 1;
            return false;
        }
        true
    }

    /// What waits, to take from.
    pub(super) fn with_waiting<T>(&self, take: impl FnOnce(&mut VecDeque<J>) -> T) -> T {
        take(&mut self.state.lock().waiting)
    }

    /// Until when those who wait wait (all of a store wait equally long, so the last one waits longest); `None` if nobody does.
    pub(super) fn latest(&self) -> Option<Instant> {
        self.with_waiting(|waiting| waiting.back().map(J::deadline))
    }

    /// The line could not be had until `deadline`: fails those who would have waited no longer, and everybody if waiting does
    /// not help.
    pub(super) fn fail_those(&self, deadline: Instant, error: &Error) {
        let everybody = !matches!(error.code(), Code::Timeout | Code::Unavailable);
        let failed = self.with_waiting(|waiting| {
            let (failed, left) = waiting.drain(..).partition(|job| everybody || job.deadline() <= deadline);
            *waiting = left;
            failed
        });
        VecDeque::into_iter(failed).for_each(|job| job.fail(error));
    }
}
