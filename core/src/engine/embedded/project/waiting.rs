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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_woken(turn: &Turn) -> bool {
        turn.woken().now_or_never().is_some()
    }

    #[test]
    fn who_is_first_wakes_the_next_in_leaving() {
        let waiting = Arc::new(Waiting::default());
        let [first, second, third] = [(); 3].map(|()| waiting.join(b"k"));
        let elsewhere = waiting.join(b"other");
        waiting.wake_first(b"k");
        // It never looked: what woke it is for the next one, or nobody would look.
        first.leave();
        assert!(second.is_first() && is_woken(&second));
        assert!(!is_woken(&third) && !is_woken(&elsewhere));
        drop(second);
        assert!(third.is_first() && is_woken(&third));
        third.leave();
        third.leave();
        assert!(waiting.is_nobody(b"k") && !waiting.is_nobody(b"other"));
    }

    #[test]
    fn who_is_not_first_wakes_nobody_in_leaving() {
        let waiting = Arc::new(Waiting::default());
        let [first, second, third] = [(); 3].map(|()| waiting.join(b"k"));
        second.leave();
        assert!(first.is_first() && !is_woken(&first) && !is_woken(&third));
        waiting.wake_first(b"k");
        assert!(is_woken(&first) && !is_woken(&first), "once for each call");
    }
}
