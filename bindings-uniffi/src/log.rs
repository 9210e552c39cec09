//! Log events of the core.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use zlink_store::packed::{LogListener, listen};

/// Events that are kept for a reader who is late; past that the oldest are dropped.
const KEPT: usize = 1_024;

/// Something that happened, such as a connection lost. It never holds a password, a value or a key.
#[derive(Clone, Debug, uniffi::Record)]
pub struct LogEvent {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// The part of the core where it happened.
    pub target: String,
    /// Words for a person.
    pub message: String,
}

/// Hears the log events of all stores of the process, from its making until it is freed.
#[derive(uniffi::Object)]
pub struct LogEvents {
    queue: Arc<Queue>,
    /// The core holds its listeners weakly.
    listener: Arc<dyn LogListener>,
}

#[derive(Default)]
struct Queue {
    events: Mutex<VecDeque<LogEvent>>,
    came: Condvar,
    noticed: Notify,
}

#[uniffi::export]
impl LogEvents {
    /// Hears events of at least this level: `error`, `warn`, `info`, `debug` or `trace`; `info` if it is none of these.
    #[uniffi::constructor]
    pub fn listen(level: &str) -> Arc<Self> {
        let queue = Arc::<Queue>::default();
        let listener: Arc<dyn LogListener> = Arc::clone(&queue) as _;
        listen(&listener, Some(level));
        Arc::new(Self { queue, listener })
    }

    /// Hears events of at least this level from now on, as told to `listen`.
    pub fn change_level(&self, level: &str) {
        listen(&self.listener, Some(level));
    }

    /// Ends when there is an event.
    pub async fn wait(&self) {
        loop {
            let noticed = self.queue.noticed.notified();
            if !self.queue.events.lock().is_empty() {
                return;
            }
            noticed.await;
        }
    }

    /// Blocks until there is an event, at most `timeout_ms` milliseconds: for a thread of its own.
    pub fn block(&self, timeout_ms: u32) {
        let mut events = self.queue.events.lock();
        if events.is_empty() {
            self.queue.came.wait_for(&mut events, Duration::from_millis(timeout_ms.into()));
        }
    }

    /// The events that came since the last call, at most the last 1,024, the oldest first.
    pub fn take(&self) -> Vec<LogEvent> {
        std::mem::take(&mut *self.queue.events.lock()).into()
    }
}

impl LogListener for Queue {
    fn event(&self, level: &str, target: &str, message: &str) {
        let event = LogEvent { level: level.to_owned(), target: target.to_owned(), message: message.to_owned() };
        {
            let mut events = self.events.lock();
            if events.len() == KEPT {
                events.pop_front();
            }
            events.push_back(event);
        }
        self.came.notify_all();
        self.noticed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_come_in_order_and_a_late_reader_has_the_last_ones() {
        let heard = LogEvents::listen("warn");
        for number in 0..KEPT + 5 {
            heard.queue.event("warn", "zlink_store", &number.to_string());
        }
        heard.wait().await;
        heard.block(60_000);
        let events = heard.take();
        assert_eq!(events.len(), KEPT);
        assert_eq!((events[0].message.as_str(), events[KEPT - 1].message.as_str()), ("5", "1028"));
        assert!(heard.take().is_empty());
    }
}
