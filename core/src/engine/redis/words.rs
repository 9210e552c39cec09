//! What a script answers that speaks in words, and what replies say that every part of the engine understands alike.

use bytes::Bytes;

use super::answers;
use super::transport::{Failure, Reply};
use crate::contract::{Error, Outcome, StoreTime};

/// A script's answer: a word and what belongs to it.
#[derive(Debug)]
pub(super) struct Words(Vec<Bytes>);

impl Words {
    /// Scripts check everything before they change anything, so an error says that nothing was done. `foreign` and `newer` are
    /// the errors of the words of these names.
    pub(super) fn of(reply: Reply, foreign: fn() -> Error, newer: fn() -> Error) -> Result<Self, Error> {
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

/// A reply that is an error, or none that was looked for.
pub(super) fn unexpected(reply: &Reply) -> Error {
    answers::error_of(reply).unwrap_or_else(|| Error::internal("the server answered with a reply of another kind than expected"))
}
