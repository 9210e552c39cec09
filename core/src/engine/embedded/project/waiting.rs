//! Who waits for a lock. Every waiter is in this process: a folder is open in one process only.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The waiters of an engine's locks, by lock, in the order in which they came.
#[derive(Debug, Default)]
pub(in super::super) struct Waiting(Mutex<HashMap<Vec<u8>, VecDeque<Arc<Notify>>>>);

impl Waiting {
    pub(in super::super) fn is_nobody(&self, key: &[u8]) -> bool {
        !self.0.lock().contains_key(key)
    }

    /// Joins the queue.
    pub(super) fn join(self: &Arc<Self>, key: &[u8]) -> Turn {
        let bell = Arc::new(Notify::new());
        self.0.lock().entry(key.to_vec()).or_default().push_back(Arc::clone(&bell));
        Turn { waiting: Arc::clone(self), key: key.to_vec(), bell }
    }

    /// Wakes the first: the lock may be free.
    pub(super) fn wake_first(&self, key: &[u8]) {
        let first = self.0.lock().get(key).and_then(|queue| queue.front().cloned());
        if let Some(first) = first {
            first.notify_one();
        }
    }
}

/// A place in a queue. Dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct Turn {
    waiting: Arc<Waiting>,
    key: Vec<u8>,
    bell: Arc<Notify>,
}

impl Turn {
    pub(super) fn is_first(&self) -> bool {
        self.waiting.0.lock().get(&self.key).and_then(VecDeque::front).is_some_and(|first| Arc::ptr_eq(first, &self.bell))
    }

    /// Until somebody wakes this place; at once if somebody did since the last time.
    pub(super) async fn woken(&self) {
        self.bell.notified().await;
    }

    /// Leaves the queue; then who comes next, if this was the first, is woken. Doing it again changes nothing.
    pub(super) fn leave(&self) {
        let mut queues = self.waiting.0.lock();
        let Some(queue) = queues.get_mut(&self.key) else { return };
        let was_first = queue.front().is_some_and(|first| Arc::ptr_eq(first, &self.bell));
        queue.retain(|other| !Arc::ptr_eq(other, &self.bell));
        let next = queue.front().cloned();
        if next.is_none() {
            queues.remove(&self.key);
        }
        drop(queues);
        if let Some(next) = next.filter(|_| was_first) {
            next.notify_one();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}
