//! The seam for a Redis client that the caller owns, such as a node-redis client: a binding implements [`HostClient`].

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::contract::Error;

/// One reply of the server, bytes untouched, the same for RESP2 and RESP3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// No value.
    Nil,
    /// An integer; RESP3's booleans are 0 and 1.
    Int(i64),
    /// A string, simple or bulk.
    Bytes(Bytes),
    /// An array or set; RESP3's maps are flattened.
    Array(Vec<Reply>),
    /// An error reply: its first word and the rest.
    Error {
        /// Such as `WRONGTYPE` or `NOSCRIPT`.
        code: String,
        /// What follows.
        message: String,
    },
}

/// Why there is no reply.
#[derive(Debug)]
pub enum Failure {
    /// Surely nothing reached the server.
    NotSent(Error),
    /// The command may have reached the server.
    Lost(Error),
}

/// Sends single commands through somebody else's client. Nothing but single commands and scripts is ever sent through it:
/// no MULTI, no SELECT, no subscription.
pub trait HostClient: Send + Sync + fmt::Debug {
    /// Sends one command; an error reply of the server is a [`Reply::Error`]. The future may be dropped.
    fn send(&self, args: Vec<Bytes>) -> BoxFuture<'static, Result<Reply, Failure>>;
}
