//! Half-open connections: the other end is gone and nobody has said so. They show by silence only, and so does a neighbour's
//! long transfer: a silent connection gets no new work, and is closed once it leaves a PING unanswered.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{How, Link, Shared, unavailable};
use crate::call::Call;
use crate::engine::redis::transport::Batch;
use crate::{ambient, background};

/// How long a silent connection may leave a PING unanswered, when nothing else is under way.
const PATIENCE: Duration = Duration::from_secs(5);
/// KiB per second of a line that is slow, but good for something.
const SLOWEST: u32 = 64;
/// So many of the oldest batches are looked at for one whose caller has timed out: callers come nearly in that order.
const LOOKED_AT: usize = 16;

/// The connections to one server: what has cut one off may have cut off others.
#[derive(Default)]
pub(in crate::engine::redis) struct Neighbours(Mutex<Vec<Weak<Link>>>);

impl Neighbours {
    pub(in crate::engine::redis) fn add(&self, link: &Arc<Link>) {
        let mut links = self.0.lock();
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }

    fn all(&self) -> Vec<Arc<Link>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Link {
    /// A caller timed out that had waited `since` then. If nothing was heard for the latter half of that time, no new work
    /// comes here, nor to the other connections to this server that were as silent, until they have answered a PING.
    pub(super) fn timed_out(self: &Arc<Self>, since: Instant) {
        let now = ambient::monotonic();
        let silence = now - now.saturating_duration_since(since) / 2;
        if self.doubt(silence) {
            for link in self.neighbours.all() {
                link.doubt(silence);
            }
        }
    }

    /// Finds a caller that timed out and has not got round to saying so: the next one shall not meet the same silence.
    pub(super) fn look_for_overdue(self: &Arc<Self>) {
        let now = ambient::monotonic();
        let due = |deadline: Instant, since: Instant| (deadline <= now).then_some(since);
        let mut overdue = self.shared.sent.lock().iter().take(LOOKED_AT).find_map(|sent| due(sent.call.deadline, sent.since));
        if overdue.is_none() {
            overdue = self.shared.queue.lock().iter().take(LOOKED_AT).find_map(|queued| due(queued.deadline, queued.since));
        }
        if let Some(since) = overdue {
            self.timed_out(since);
        }
    }

    /// Gives no new work here if nothing was heard since `silence` began, while a PING is under way; true if that is new. It
    /// closes if nothing is heard in the time that what is under way needs on a slow line: a long transfer of somebody else's
    /// goes on.
    fn doubt(self: &Arc<Self>, silence: Instant) -> bool {
        if self.shared.last_heard() > silence || self.end().is_some() || self.shared.doubted.swap(true, Ordering::AcqRel) {
            return false;
        }
        tracing::debug!("a connection is silent; new work goes to another one");
        self.shared.refuse_queue(&unavailable("the connection is silent"));
        background::handle().spawn(Arc::clone(self).prove());
        true
    }

    /// Asks until it is answered, or nothing at all was heard for too long.
    async fn prove(self: Arc<Self>) {
        loop {
            let asked = ambient::monotonic();
            let until = asked + PATIENCE + self.shared.unanswered() / SLOWEST;
            let ping = Batch { commands: vec![vec![Bytes::from_static(b"PING")]], atomic: false };
            if self.send_as(How::Staying, Arc::new(ping), &Call::reading(until)).await.is_ok() {
                self.shared.doubted.store(false, Ordering::Release);
                return;
            }
            if self.end().is_some() {
                return;
            }
            if self.shared.last_heard() <= asked {
                self.close("the connection was silent");
                return;
            }
        }
    }
}

impl Shared {
    /// Something was read.
    pub(super) fn hears(&self) {
        let micros = ambient::monotonic().saturating_duration_since(self.born).as_micros();
        self.heard.store(u64::try_from(micros).unwrap_or(u64::MAX).max(1), Ordering::Release);
    }

    /// When something was heard last; that the connection was made counts.
    fn last_heard(&self) -> Instant {
        self.born + Duration::from_micros(self.heard.load(Ordering::Acquire))
    }

    /// How long a line of a KiB per second takes for what went out and is not answered.
    fn unanswered(&self) -> Duration {
        let packed = self.writer.lock().packed;
        let answered = self.sent.lock().front().map_or(packed, |batch| batch.start);
        Duration::from_secs(packed.saturating_sub(answered) / 1_024)
    }
}
