//! What the scripts answer: a word and what belongs to it.

use bytes::Bytes;

use crate::contract::{Code, Error, Outcome, StoreTime};
use crate::engine::redis::answers;
use crate::engine::redis::transport::{Failure, Reply};

#[derive(Debug)]
pub(super) struct Answer(Vec<Bytes>);

impl Answer {
    /// Scripts check everything before they change anything, so an error says that nothing was done.
    pub(super) fn of(reply: Reply) -> Result<Self, Error> {
        let Reply::Array(items) = reply else { return Err(unexpected(&reply)) };
        let fields = items.into_iter().map(|item| match item {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        });
        let answer = Self(fields.collect::<Result<_, _>>()?);
        match answer.word() {
            b"foreign" => Err(foreign()),
            b"newer" => Err(newer()),
            _ => Ok(answer),
        }
    }

    pub(super) fn word(&self) -> &[u8] {
        self.bytes(0)
    }

    pub(super) fn bytes(&self, place: usize) -> &[u8] {
        self.0.get(place).map_or(&[], |field| field)
    }

    pub(super) fn number(&self, place: usize) -> Result<u64, Error> {
        decimal(self.bytes(place)).ok_or_else(|| Error::internal("a script answered without a number"))
    }

    pub(super) fn time(&self, place: usize) -> Result<StoreTime, Error> {
        self.number(place).map(StoreTime::from_unix_ms)
    }

    pub(super) fn strange(&self) -> Error {
        Error::internal("a script answered with a word that this version does not know")
    }
}

/// An answer of `TIME`.
pub(super) fn time(reply: &Reply) -> Result<StoreTime, Error> {
    if let Reply::Array(parts) = reply
        && let [Reply::Bytes(seconds), Reply::Bytes(micros)] = &parts[..]
        && let (Some(seconds), Some(micros)) = (decimal(seconds), decimal(micros))
    {
        return Ok(StoreTime::from_unix_ms(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)));
    }
    Err(unexpected(reply))
}

pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The error of a call that changes nothing.
pub(super) fn unread(failure: Failure) -> Error {
    let (Failure::NotSent(error) | Failure::Lost(error)) = failure;
    error.with_outcome(Outcome::NotApplied)
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

/// A reply that is an error, or none that was looked for.
pub(super) fn unexpected(reply: &Reply) -> Error {
    answers::error_of(reply).unwrap_or_else(|| Error::internal("the server answered with a reply of another kind than expected"))
}
