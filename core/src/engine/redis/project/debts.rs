//! What is still to be done when its caller is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::{ambient, background};

/// How long closing waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Default)]
pub(super) struct Debts(Arc<watch::Sender<usize>>);

/// One of them; over when it is dropped.
pub(super) struct Debt(Debts);

impl Debts {
    pub(super) fn enter(&self) -> Debt {
        self.0.send_modify(|count| *count += 1);
        Debt(self.clone())
    }

    /// Waits until all are done, but not for ever.
    pub(super) async fn done(&self) {
        let mut count = self.0.subscribe();
        let _ = background::timeout_at(ambient::monotonic() + PATIENCE, count.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
