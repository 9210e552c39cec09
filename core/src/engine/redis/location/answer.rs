//! What the server's replies mean.

use bytes::Bytes;

use super::layout::FORMAT;
use crate::contract::{Code, Error, Outcome, StoreTime};
use crate::engine::redis::answers;
use crate::engine::redis::transport::Reply;

/// The fields of an answer, in order.
pub(super) struct Fields(std::vec::IntoIter<Reply>);

impl Fields {
    /// The fields of an array; an error reply becomes its error.
    pub(super) fn of(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Array(items) => Ok(Self(items.into_iter())),
            other => Err(unexpected(&other)),
        }
    }

    /// The replies of several commands.
    pub(super) fn from_replies(replies: Vec<Reply>) -> Self {
        Self(replies.into_iter())
    }

    /// The next field, whatever it is.
    pub(super) fn any(&mut self) -> Result<Reply, Error> {
        self.0.next().ok_or_else(|| Error::internal("an answer of the server is too short"))
    }

    /// The next field, an integer.
    pub(super) fn int(&mut self) -> Result<i64, Error> {
        match self.any()? {
            Reply::Int(number) => Ok(number),
            other => Err(unexpected(&other)),
        }
    }

    /// The next field, an integer that cannot be negative.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        u64::try_from(self.int()?).map_err(|_| Error::internal("an answer of the server holds a negative number"))
    }

    /// The next field, an instant in milliseconds.
    pub(super) fn instant(&mut self) -> Result<StoreTime, Error> {
        self.number().map(StoreTime::from_unix_ms)
    }

    /// The next field, an answer of `TIME`.
    pub(super) fn time(&mut self) -> Result<StoreTime, Error> {
        let mut parts = self.array()?;
        let (seconds, micros) = (parts.digits()?, parts.digits()?);
        Ok(StoreTime::from_unix_ms(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)))
    }

    /// The next field, an array.
    pub(super) fn array(&mut self) -> Result<Self, Error> {
        Self::of(self.any()?)
    }

    /// The next field, bytes.
    pub(super) fn bytes(&mut self) -> Result<Bytes, Error> {
        match self.any()? {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        }
    }

    /// The next field, an answer of `GET` on the format number: a newer layout, or something else, is refused.
    pub(super) fn format(&mut self) -> Result<(), Error> {
        match self.any()? {
            Reply::Nil => Ok(()),
            Reply::Bytes(format) if format == FORMAT => Ok(()),
            Reply::Bytes(_) => Err(newer()),
            other => Err(unexpected(&other)),
        }
    }

    /// The fields that are left, which are all bytes.
    pub(super) fn rest(self) -> Result<Vec<Bytes>, Error> {
        let bytes = self.0.map(|item| match item {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        });
        bytes.collect()
    }

    /// The fields that are left.
    pub(super) fn replies(self) -> std::vec::IntoIter<Reply> {
        self.0
    }

    fn digits(&mut self) -> Result<u64, Error> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::internal("an answer of the server is no number"))
    }
}

/// What a reply means that is none of the answers looked for. Scripts check everything before their first effect.
pub(super) fn unexpected(reply: &Reply) -> Error {
    let Some(error) = answers::error_of(reply) else {
        return Error::internal("the server answered with a reply of another kind than expected");
    };
    match reply {
        Reply::Error { message, .. } if message.contains("not an integer") || message.contains("would overflow") => foreign(),
        Reply::Error { code, message } if code == "ZLINK" => Error::internal(message).with_outcome(Outcome::NotApplied),
        _ => error,
    }
}

/// The data was written by a newer version.
pub(super) fn newer() -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, "the store's data was written by a newer version: update this one")
}

/// A key of ours holds something else.
pub(super) fn foreign() -> Error {
    let said = "a key of this store holds data that is not the store's: another program uses the same key prefix";
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}
