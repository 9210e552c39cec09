//! Trying again after a conflict: with jittered back-off, within a deadline, never in a spinning loop.

use std::time::{Duration, Instant};

use super::stores::unavailable;
use crate::ambient::{self, Ambient, jittered};
use crate::background;
use crate::contract::{Error, Outcome};

const FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(200);

pub(super) struct Retry {
    deadline: Instant,
    pause: Duration,
    /// What became of the attempts so far.
    outcome: Outcome,
    last: Option<Error>,
}

impl Retry {
    pub(super) fn until(deadline: Instant) -> Self {
        Self { deadline, pause: FIRST, outcome: Outcome::NotApplied, last: None }
    }

    /// Remembers a failed attempt; one whose outcome is unknown makes that of all unknown. A failure that changed nothing, and
    /// that the same call would meet again, ends the attempts.
    pub(super) fn failed(&mut self, error: Error) -> Result<(), Error> {
        if error.outcome() == Outcome::NotApplied {
            return Err(error.with_outcome(self.outcome));
        }
        self.outcome = Outcome::Unknown;
        self.last = Some(error);
        Ok(())
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// `UNAVAILABLE` if no time is left for one.
    pub(super) async fn pause(&mut self, random: &dyn Ambient) -> Result<(), Error> {
        let now = ambient::monotonic();
        let next = now + jittered(self.pause, random);
        if next >= self.deadline {
            let last = self.last.take();
            return Err(last.map_or_else(
                || unavailable(self.outcome, "others changed the same records until the operation's time was over: try again"),
                |error| error.with_outcome(self.outcome),
            ));
        }
        self.pause = (self.pause * 2).min(LONGEST);
        background::sleep_until(next).await;
        Ok(())
    }
}
