//! Acquires that may wait go out in the order in which they were begun, and so come into the queues in it.
//!
//! On a connection that is there, to a server that knows the script, they do by themselves. While it is being made, or the script's
//! text is under way, a newcomer could overtake those who wait for that: so one acquire goes ahead alone then. (Where a server forgets its scripts while its
//! connections stay, those who come meanwhile may overtake those who repeat theirs.)

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use bytes::Bytes;
use futures_util::poll;

use super::Inner;
use super::leases::ACQUIRE;
use crate::background;
use crate::call::Call;
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::transport::Line;
use crate::engine::redis::words::Words;

/// Its turns are fair. It holds how often connections had been made again when an acquire was answered last.
#[derive(Default)]
pub(super) struct Order(tokio::sync::Mutex<Option<u64>>);

impl Inner {
    /// As [`surely`](Self::surely), in its turn.
    pub(super) async fn acquire_in_turn(&self, keys: &[Bytes], args: &[Bytes], call: &Call) -> Result<(Words, bool), Error> {
        let Ok(mut answered) = background::timeout_at(call.deadline, self.order.0.lock()).await else {
            // Who went ahead waited for a connection, perhaps: its error says more.
            self.client.ready(Line::Small, call.deadline).await?;
            return Err(Error::new(Code::Timeout, Outcome::NotApplied, "not sent until the deadline"));
        };
        self.client.ready(Line::Small, call.deadline).await?;
        let reconnects = self.client.counters().reconnects.load(Ordering::Relaxed);
        let mut acquiring = pin!(self.surely(&ACQUIRE, keys, args, call));
        if *answered == Some(reconnects) {
            // Once it was polled it stands in the connection's queue.
            if let Poll::Ready(done) = poll!(acquiring.as_mut()) {
                return done;
            }
            drop(answered);
            return acquiring.await;
        }
        let done = acquiring.await;
        if done.is_ok() {
            *answered = Some(reconnects);
        }
        done
    }
}
