//! One scan per prefix at a time: many at once would push each other's snapshots out of the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::stores::unavailable;
use crate::background;
use crate::contract::{Error, Outcome};

#[derive(Default)]
pub(super) struct Scans(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Scans {
    /// Waits until nobody scans this prefix.
    pub(super) async fn turn(&self, prefix: &str, deadline: Instant) -> Result<OwnedMutexGuard<()>, Error> {
        let turn = {
            let mut turns = self.0.lock();
            // Those that nobody has or waits for are not kept.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(prefix.to_owned()).or_default())
        };
        background::timeout_at(deadline, turn.lock_owned())
            .await
            .map_err(|_| unavailable(Outcome::NotApplied, "other scans of this runtime took all of the operation's time"))
    }
}
