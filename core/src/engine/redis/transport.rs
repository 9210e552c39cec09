//! The seam between the engine and whatever carries its commands: commands in, replies out, bytes untouched.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::bells::Bells;
pub(crate) use super::host::{Failure, Reply};
pub(crate) use super::script::Scripts;
pub(crate) use super::slot::Slot;
use crate::call::{Call, EngineCounters};
use crate::contract::Error;

/// One command: its name and arguments.
pub(crate) type Command = Vec<Bytes>;

/// Which connection carries a batch. A transport with one line only takes everything there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Line {
    /// Reads, scans and (unless replicas must acknowledge) writes.
    Small,
    /// Writes that are followed by WAIT: nothing else goes there.
    Acked,
    /// Blob segments.
    Blobs,
}

/// Commands that go out together, in order, on one line.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) commands: Vec<Command>,
    /// Whether they run as one transaction (MULTI … EXEC). Replies are the commands' own either way; of a transaction that was
    /// refused, each command gets the refusal.
    pub(crate) atomic: bool,
}

/// Sends batches. All keys of a batch lie in one slot of a Cluster, and whoever knows one server only does not care which. A batch that fails is [`Failure::NotSent`] only when surely none of its commands reached the server.
///
/// The transport connects when it is first needed, reconnects by itself (after READONLY and MASTERDOWN too, with the name
/// resolved anew), and ends at `call.deadline`, whoever still waits. It calls `call.mark_sent()` before bytes may leave,
/// `call.unmark_sent()` when they surely did not, and sends nothing once the returned future was dropped before that.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Waits until `line` to the server that has `slot` is connected (connecting if need be), at most until `deadline`: what goes out for several callers is
    /// made only then, from those who still wait.
    fn ready(&self, line: Line, slot: Slot, deadline: Instant) -> BoxFuture<'static, Result<(), Error>>;

    /// Sends `batch` on `line` to the server that has `slot`; one reply per command. Server errors are replies.
    fn send(&self, line: Line, slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>>;

    /// Whether MULTI may be used. If not, a batch is one command, and reads go as read-only scripts.
    fn transactions(&self) -> bool;

    /// What is known of the server's scripts.
    fn scripts(&self) -> &Scripts;

    fn counters(&self) -> &EngineCounters;

    /// How many replicas must acknowledge each commit. A transport that is not ours alone has none: WAIT would block it.
    fn min_acked_replicas(&self) -> u32 {
        0
    }

    /// What wakes those who wait for others; `None`: nothing does, and they must look by themselves.
    fn bells(&self) -> Option<Arc<Bells>> {
        None
    }

    /// Gives up what the transport holds; nothing is sent afterwards.
    fn close(&self) {}
}
