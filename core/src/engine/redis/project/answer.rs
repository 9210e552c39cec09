//! What the scripts answer: a word and what belongs to it.

use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::transport::{Failure, Reply};
use crate::engine::redis::words::Words;

pub(super) fn answer(reply: Reply) -> Result<Words, Error> {
    Words::of(reply, foreign, newer)
}

/// The error of a call that may have changed something, and is not made again.
pub(super) fn unsure(failure: Failure) -> Error {
    match failure {
        Failure::NotSent(error) => error,
        Failure::Lost(error) => error.with_outcome(Outcome::Unknown),
    }
}

pub(super) fn foreign() -> Error {
    let said = "a key of this project holds data that is not the project's: another program uses the keys zlink-project{…}";
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}

pub(super) fn newer() -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, "the project's data was written by a newer version: update this one")
}
