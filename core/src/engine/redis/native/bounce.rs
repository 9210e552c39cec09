//! What a connection gives back unsent goes out again, for as long as there is time.

use std::time::{Duration, Instant};

use crate::contract::Error;
use crate::engine::redis::lane::jittered;
use crate::engine::redis::link::Link;
use crate::engine::redis::transport::Failure;
use crate::{ambient, background};

/// Between two attempts, at first.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The attempts of one batch.
pub(super) struct Bounces {
    deadline: Instant,
    pause: Duration,
}

impl Bounces {
    pub(super) fn new(deadline: Instant) -> Self {
        Self { deadline, pause: PAUSE }
    }

    /// `link` did not send it: until another attempt, if there is to be one.
    ///
    /// A connection that was replaced bounces what it had not sent; one that ends at once must not be stormed.
    pub(super) async fn again(&mut self, link: &Link, error: Error) -> Result<(), Failure> {
        if link.end().is_some() {
            return self.pause(error).await;
        }
        if ambient::monotonic() + self.pause >= self.deadline {
            return Err(Failure::NotSent(error));
        }
        Ok(())
    }

    /// Until another attempt, after a growing pause, if there is to be one.
    pub(super) async fn pause(&mut self, error: Error) -> Result<(), Failure> {
        let again = ambient::monotonic() + jittered(self.pause);
        if again >= self.deadline {
            return Err(Failure::NotSent(error));
        }
        background::sleep_until(again).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
