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

/// Fewer jobs than this are not worth two batches.
const WORTH_SHARING: usize = 16;

/// Jobs that wait, and how many rounds are under way.
pub(super) struct Lane<J> {
    state: Mutex<State<J>>,
    width: usize,
}

struct State<J> {
    waiting: VecDeque<J>,
    rounds: usize,
    /// Those of the rounds that have taken what they send.
    out: usize,
}

/// What one round has in its lane, until it is dropped.
pub(super) struct Round<'a, J> {
    lane: &'a Lane<J>,
    out: bool,
}

impl<J: Waiting> Lane<J> {
    /// At most `width` rounds at once.
    pub(super) fn new(width: usize) -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), rounds: 0, out: 0 }), width }
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

    /// Begins a round.
    pub(super) fn round(&self) -> Round<'_, J> {
        Round { lane: self, out: false }
    }

    /// What waits, to take from.
    fn with_waiting<T>(&self, take: impl FnOnce(&mut VecDeque<J>) -> T) -> T {
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

impl<J> Round<'_, J> {
    /// What waits, to take from, and how many of it are this round's share: as many as of each other one that has yet to take
    /// something, so that the server works on one batch while the callers of the other one get their answers and ask again.
    pub(super) fn take<T>(&mut self, take: impl FnOnce(&mut VecDeque<J>, usize) -> T) -> T {
        let mut state = self.lane.state.lock();
        if !std::mem::replace(&mut self.out, true) {
            state.out += 1;
        }
        let idle = state.rounds.saturating_sub(state.out) + 1;
        let waiting = state.waiting.len();
        take(&mut state.waiting, if waiting < WORTH_SHARING { waiting } else { waiting.div_ceil(idle) })
    }
}

impl<J> Drop for Round<'_, J> {
    fn drop(&mut self) {
        if self.out {
            self.lane.state.lock().out -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number;

    impl Waiting for Number {
        fn deadline(&self) -> Instant {
            crate::ambient::monotonic()
        }

        fn fail(self, _: &Error) {}
    }

    fn lane(jobs: usize) -> Lane<Number> {
        let lane = Lane::new(2);
        // The rounds are the test's own.
        let (_, started) = background::gather(|| (0..jobs).for_each(|_| lane.push(Number, async || ())));
        assert_eq!(started.len(), jobs.min(2));
        lane
    }

    fn share(round: &mut Round<'_, Number>) -> usize {
        round.take(|waiting, share| waiting.drain(..share).count())
    }

    #[test]
    fn rounds_that_begin_together_share_what_waits() {
        let lane = lane(65);
        let (mut first, mut second) = (lane.round(), lane.round());
        assert_eq!((share(&mut first), share(&mut second)), (33, 32));
    }

    #[test]
    fn a_round_beside_one_that_is_out_takes_all() {
        let lane = lane(64);
        let (mut first, mut second) = (lane.round(), lane.round());
        assert_eq!((share(&mut first), share(&mut second)), (32, 32));
        drop(first);
        (0..40).for_each(|_| lane.push(Number, async || ()));
        assert_eq!(share(&mut lane.round()), 40);
        // An attempt that is made again has its place.
        (0..20).for_each(|_| lane.push(Number, async || ()));
        assert_eq!(share(&mut second), 10);
    }

    #[test]
    fn a_few_go_together() {
        assert_eq!(share(&mut lane(WORTH_SHARING - 1).round()), WORTH_SHARING - 1);
    }
}
