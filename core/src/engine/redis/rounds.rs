//! The attempts of one call: which answers say that nothing was done, and when there is another attempt.

use std::time::{Duration, Instant};

use super::answers::{self, Meaning};
use super::lane::jittered;
use super::transport::{Batch, Failure, Reply};
use crate::call::Call;
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// With less time left than this nothing is tried again.
const TOO_LATE: Duration = Duration::from_millis(30);

/// When a batch counts as one that did nothing.
#[derive(Clone, Copy)]
pub(super) enum Judge {
    /// When its first command did nothing: the others belong to it.
    First,
    /// When any command did nothing.
    Any,
    /// When all commands did nothing.
    All,
}

impl Judge {
    pub(super) fn of(batch: &Batch, repeat: bool) -> Self {
        if repeat || batch.atomic { Self::Any } else { Self::All }
    }

    /// What to say if the batch did nothing and it is too late to send it again.
    fn nothing_done(self, replies: &[Reply]) -> Option<Error> {
        let later = |reply: &Reply| match answers::meaning(reply) {
            Some(Meaning::Later(error) | Meaning::Elsewhere(error)) => Some(error),
            _ => None,
        };
        match self {
            Self::First => replies.first().and_then(later),
            Self::Any => replies.iter().find_map(later),
            Self::All => {
                let first = replies.first().and_then(later)?;
                replies.iter().all(|reply| later(reply).is_some()).then_some(first)
            }
        }
    }
}

/// The attempts of one call.
pub(super) struct Rounds {
    deadline: Instant,
    pause: Duration,
    /// An attempt's answer was lost: whatever the later ones say, something may have been done.
    lost: bool,
    /// Keys that lie at two nodes are not waited for, but asked for one by one.
    or_apart: bool,
}

impl Rounds {
    pub(super) fn new(deadline: Instant) -> Self {
        Self { deadline, pause: FIRST_PAUSE, lost: false, or_apart: false }
    }

    pub(super) fn or_apart(self) -> Self {
        Self { or_apart: true, ..self }
    }

    /// The call to make this attempt with: once an answer was lost, the caller's own mark stays for good.
    pub(super) fn call(&self, call: &Call) -> Call {
        if self.lost { Call::reading(call.deadline) } else { call.clone() }
    }

    pub(super) fn nothing_done(&self, call: &Call) {
        if !self.lost {
            call.unmark_sent();
        }
    }

    /// A failure of an attempt that did nothing.
    pub(super) fn failure(&self, error: Error) -> Failure {
        if self.lost { Failure::Lost(error.with_outcome(Outcome::Unknown)) } else { Failure::NotSent(error) }
    }

    /// The replies of an attempt that is the last one; `None`, after a pause, if there is to be another.
    pub(super) async fn judge(
        &mut self,
        result: Result<Vec<Reply>, Failure>,
        judge: Judge,
        repeat: bool,
        call: &Call,
    ) -> Result<Option<Vec<Reply>>, Failure> {
        let failure = match result {
            Ok(replies) if self.or_apart && answers::are_apart(&replies) => return Ok(Some(replies)),
            Ok(replies) => match judge.nothing_done(&replies) {
                None => return Ok(Some(replies)),
                Some(error) => {
                    self.nothing_done(call);
                    self.failure(error)
                }
            },
            Err(Failure::Lost(error)) if repeat && error.code() != Code::Timeout => {
                self.lost = true;
                Failure::Lost(error)
            }
            Err(Failure::NotSent(error)) => return Err(self.failure(error)),
            Err(lost) => return Err(lost),
        };
        let left = self.deadline.saturating_duration_since(ambient::monotonic());
        if left < TOO_LATE {
            return Err(failure);
        }
        // A short deadline gets its tries too.
        let pause = jittered(self.pause).min(left / 2);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        background::sleep_until(ambient::monotonic() + pause).await;
        Ok(None)
    }
}
