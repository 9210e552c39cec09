//! Reaping: whoever writes reaps a little, and an open store goes on by a timer while anything is due.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::Inner;
use super::answer::Fields;
use crate::ambient::{self, random};
use crate::background;
use crate::call::Call;
use crate::contract::Error;
use crate::engine::redis::client::{Client, Script};
use crate::engine::redis::transport::Line;
use crate::engine::redis::words::unread;

/// Names that each write reaps while anything is due.
const PER_WRITE: usize = 16;
/// Names of one call, so that it never blocks the server for long.
const PER_CALL: usize = 256;
/// How often the timer reaps so many: 1,000 a second.
const TICK: Duration = Duration::from_millis(250);
/// How often an open store looks whether others left something, and while there are snapshots.
const LOOK: Duration = Duration::from_secs(15);
const LOOK_SNAPSHOTS: Duration = Duration::from_secs(3);
/// Longest time for one look and what follows from it.
const TIME: Duration = Duration::from_secs(5);

static DUE: Script = Script::reading(include_str!("due.lua"));

/// What the timer is told.
pub(super) struct Reaper {
    started: AtomicBool,
    /// Names that writes owe.
    owed: AtomicUsize,
    wake: Arc<Notify>,
}

/// What a look found.
struct Due {
    /// Snapshots that there are, and how many of the oldest nobody needs.
    snapshots: u64,
    over: u64,
    /// Milliseconds until the first name is due: 0 if it is, but a snapshot holds it back.
    first: Option<u64>,
    names: Vec<Bytes>,
}

impl Reaper {
    pub(super) fn new() -> Self {
        Self { started: AtomicBool::new(false), owed: AtomicUsize::new(0), wake: Arc::default() }
    }

    /// A write found that something is due.
    pub(super) fn owe(&self, writes: usize) {
        self.owed.fetch_add(PER_WRITE * writes, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// No timer for this store.
    #[cfg(test)]
    pub(super) fn never(&self) {
        self.started.store(true, Ordering::SeqCst);
    }

    /// The store is closed or gone.
    pub(super) fn stop(&self) {
        self.wake.notify_one();
    }
}

impl Inner {
    /// Starts the timer with the store's first operation.
    pub(super) fn keep_tidy(self: &Arc<Self>) {
        if !self.reaper.started.load(Ordering::Relaxed) && !self.reaper.started.swap(true, Ordering::SeqCst) {
            background::handle().spawn(timer(Arc::downgrade(self), Arc::clone(&self.reaper.wake)));
        }
    }

    /// Reaps up to `most` names. Answers how long to wait for more.
    pub(super) async fn reap(&self, client: &Client, most: usize) -> Result<Duration, Error> {
        let call = Call::reading(ambient::monotonic() + TIME);
        let mut left = most;
        loop {
            let asked = left.min(PER_CALL);
            let due = self.due(client, asked, &call).await?;
            if due.over > 0 || !due.names.is_empty() {
                self.tidy(client, None, &due.names, &call).await?;
            }
            left -= due.names.len().min(left);
            if due.names.len() < asked {
                let held = if due.snapshots > due.over { LOOK_SNAPSHOTS } else { LOOK };
                return Ok(match due.first {
                    None | Some(0) => held,
                    Some(first) => Duration::from_millis(first).min(held),
                });
            }
            if left == 0 {
                return Ok(TICK);
            }
        }
    }

    async fn due(&self, client: &Client, most: usize, call: &Call) -> Result<Due, Error> {
        let keys = [self.layout.snapshots.clone(), self.layout.due.clone()];
        let args = [Bytes::from(most.to_string())];
        let reply = client.script(Line::Small, &DUE, &keys, &args, true, call).await.map_err(unread)?;
        let mut fields = Fields::of(reply)?;
        let now = fields.number()?;
        let (snapshots, over) = (fields.number()?, fields.number()?);
        let first = std::str::from_utf8(&fields.bytes()?).ok().and_then(|score| score.parse::<u64>().ok());
        let names = fields.array()?.rest()?;
        Ok(Due { snapshots, over, first: first.map(|first| first.saturating_sub(now)), names })
    }
}

async fn timer(store: Weak<Inner>, wake: Arc<Notify>) {
    let mut wait = TICK;
    loop {
        // Stores that wait for the same instant should not all come at once.
        let Some(jitter) = store.upgrade().map(|store| random::<1>(&*store.ambient)[0]) else { return };
        let woken = tokio::time::timeout(wait + Duration::from_millis(jitter.into()), wake.notified()).await.is_ok();
        let Some(store) = store.upgrade() else { return };
        let Ok(client) = store.client() else { return };
        let owed = store.reaper.owed.swap(0, Ordering::Relaxed);
        let most = if woken { owed } else { owed.max(PER_CALL) };
        if most > 0 {
            // What fails now is tried again at the next look.
            wait = store.reap(&client, most).await.unwrap_or(LOOK);
        }
    }
}
