//! Gives back the room of what was deleted or replaced, when fjall's own merging leaves too much of it: it merges only what
//! is written, so a store that has been emptied and rests would keep its size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::database::Tables;
use crate::ambient;

/// The tables may take this many times what is live, and so many bytes more, before they are merged.
const MULTIPLE: u64 = 2;
const SLACK: u64 = 64 * 1_024 * 1_024;
/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// Between two merges: one may have freed little, because a snapshot still shows the old data.
const REST: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Reclaim {
    running: Arc<AtomicBool>,
    not_before: Option<Instant>,
}

impl Reclaim {
    /// Looks now and then whether the tables have become too large, and merges them in the background.
    pub(super) fn consider(&mut self, tables: &Arc<Tables>, live: u64) {
        let now = ambient::monotonic();
        if self.not_before.is_some_and(|not_before| now < not_before) || self.running.load(Ordering::Acquire) {
            return;
        }
        self.not_before = Some(now + EVERY);
        if tables.size() > live.saturating_mul(MULTIPLE).saturating_add(SLACK) {
            self.not_before = Some(now + REST);
            self.merge(Arc::clone(tables));
        }
    }

    fn merge(&self, tables: Arc<Tables>) {
        self.running.store(true, Ordering::Release);
        let running = Running(Arc::clone(&self.running));
        let merge = move || {
            let _running = running;
            let before = tables.size();
            match tables.compact() {
                Ok(()) => tracing::debug!(before, after = tables.size(), "the folder's tables were merged"),
                Err(error) => tracing::warn!(?error, "the folder's tables could not be merged"),
            }
        };
        if let Err(error) = thread::Builder::new().name("zlink-store-merge".to_owned()).spawn(merge) {
            tracing::warn!(%error, "the folder's tables could not be merged");
        }
    }
}

struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
