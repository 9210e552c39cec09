//! Cancellation for callers that cannot drop a future.

use tokio::sync::watch;

/// A switch that ends operations early. Clones share the switch.
#[derive(Clone, Debug)]
pub struct Cancellation(watch::Sender<bool>);

impl Cancellation {
    /// A switch that is not yet thrown.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Throws the switch. Doing it again changes nothing.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the switch was thrown.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the switch is thrown.
    pub async fn cancelled(&self) {
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|thrown| *thrown).await;
    }
}

impl Default for Cancellation {
    fn default() -> Self {
        Self::new()
    }
}
