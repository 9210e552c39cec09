//! Acquiring a lock, and waiting for it in the queue at the server.
//!
//! A waiter says every 300 ms that it is alive, and tries in the same call; who releases a lock wakes the first in its queue, so
//! that it tries at once. A wake-up that is lost costs the rest of those 300 ms.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Inner;
use super::keys::name;
use super::leases::{ACQUIRE, text};
use crate::ambient::random;
use crate::call::Call;
use crate::contract::{Code, Error, Grant, LeaseId, LockName, Outcome};
use crate::engine::Acquire;
use crate::engine::redis::bells::Bell;
use crate::{ambient, background};

/// How often a waiter is heard at the server, where one that is silent for 650 ms is dead.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(300);
/// How long what an acquire may have got is tried to be taken back: longer than any lease lasts.
const FORGET_WITHIN: Duration = Duration::from_secs(60);
/// How long one attempt of that takes at most.
const FORGET_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause behind the first one. It grows, since some failures last.
const FORGET_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An acquire under way. Dropped before it has an end that is known, it is taken back at the server.
struct Claim {
    inner: Arc<Inner>,
    lock: LockName,
    id: LeaseId,
    call: Call,
    /// An attempt is under way that may grant the lease or a place in the queue.
    open: bool,
    /// An attempt ended in a way that does not tell.
    owes: bool,
    /// The number of its place in the queue.
    place: Option<Bytes>,
}

enum Tried {
    Granted(Grant),
    /// It is not to be had, and this acquire has no place in the queue.
    Busy,
    /// This acquire has a place in the queue. If it is the first one, the lease that is in its way ends at that time.
    Queued(Option<Instant>),
}

pub(super) async fn acquire(inner: Arc<Inner>, acquire: Acquire, call: Call) -> Result<Option<Grant>, Error> {
    let end = ambient::monotonic() + acquire.wait;
    let id = LeaseId(random(&*inner.ambient));
    // There before the place is, so that no wake-up is missed that comes.
    let bells = inner.bells.as_ref().filter(|_| !acquire.wait.is_zero());
    let bell = bells.map(|bells| bells.bell(text(id)));
    let mut claim = Claim { lock: acquire.lock.clone(), inner, id, call, open: false, owes: false, place: None };
    loop {
        let sent = ambient::monotonic();
        match claim.attempt(&acquire, sent < end, bell.as_ref(), sent).await? {
            Tried::Granted(grant) => return Ok(Some(grant)),
            Tried::Busy => return Ok(None),
            Tried::Queued(over) => {
                let heartbeat = (sent + HEARTBEAT).min(over.unwrap_or(end)).min(end);
                wait(bell.as_ref(), heartbeat).await;
            }
        }
    }
}

impl Claim {
    async fn attempt(&mut self, acquire: &Acquire, stays: bool, bell: Option<&Bell>, sent: Instant) -> Result<Tried, Error> {
        let mut keys = self.inner.keys.locks.to_vec();
        keys.push(self.inner.keys.cancelled(self.id));
        let args = [
            name(&self.lock.namespace, &self.lock.key),
            text(self.id),
            Bytes::from(acquire.lease_ms.to_string()),
            Bytes::from_static(if stays { b"wait" } else { b"leave" }),
            self.place.clone().unwrap_or_default(),
            bell.map_or_else(Bytes::new, Bell::channel),
        ];
        let call = self.call.until(sent + acquire.timeout);
        self.open = true;
        let result = if stays && self.place.is_none() {
            self.inner.acquire_in_turn(&keys, &args, &call).await
        } else {
            self.inner.surely(&ACQUIRE, &keys, &args, &call).await
        };
        let result = result.and_then(|(answer, _)| match answer.word() {
            b"granted" => {
                let (token, expires_at) = (answer.number(1)?, answer.time(2)?);
                let Acquire { lock, lease_ms, .. } = acquire;
                let grant = Grant { lock: lock.clone(), id: self.id, token, expires_at, lease_ms: *lease_ms, sent };
                Ok((Tried::Granted(grant), None))
            }
            b"busy" => Ok((Tried::Busy, None)),
            b"queued" => {
                let left = Some(answer.bytes(2)).filter(|left| !left.is_empty()).map(|_| answer.number(2)).transpose()?;
                // The server's clock has milliseconds, and it must be over.
                let over = left.map(|left| ambient::monotonic() + Duration::from_millis(left + 1));
                Ok((Tried::Queued(over), Some(Bytes::copy_from_slice(answer.bytes(1)))))
            }
            b"used up" => {
                let said = "the fencing tokens of this project are used up";
                Err(Error::new(Code::Internal, Outcome::NotApplied, said))
            }
            b"cancelled" => Err(Error::cancelled(Outcome::NotApplied)),
            _ => Err(answer.strange()),
        });
        self.open = false;
        let (tried, place) = result.inspect_err(|error| self.owes = error.outcome() == Outcome::Unknown)?;
        // A place is nothing that the caller hears of: whoever ends here was not applied.
        self.call.unmark_sent();
        if let (Tried::Queued(_), Some(bell)) = (&tried, bell) {
            bell.listen();
        }
        self.place = place;
        Ok(tried)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let was_sent = self.open && self.call.outcome() == Outcome::Unknown;
        if was_sent || self.owes || self.place.is_some() {
            let (inner, lock, id) = (Arc::clone(&self.inner), self.lock.clone(), self.id);
            let debt = inner.debts.enter();
            background::handle().spawn(async move {
                forget(&inner, &lock, id).await;
                drop(debt);
            });
        }
    }
}

async fn forget(inner: &Inner, lock: &LockName, id: LeaseId) {
    let end = ambient::monotonic() + FORGET_WITHIN;
    let mut pause = FORGET_PAUSE;
    loop {
        let call = Call::writing(ambient::monotonic() + FORGET_TIMEOUT);
        match inner.forget(lock, id, &call).await {
            Ok(()) => return,
            Err(error) if error.code() == Code::Closed || ambient::monotonic() + pause >= end => return,
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Until somebody rings, at most until then.
async fn wait(bell: Option<&Bell>, until: Instant) {
    let Some(bell) = bell else { return background::sleep_until(until).await };
    // It does not matter which it was.
    let _ = background::timeout_at(until, bell.rung()).await;
}
