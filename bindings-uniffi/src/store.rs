//! What the stores and the project have alike.

use crate::operation::operation;

operation! {
    /// A shutdown.
    ShutdownOperation: () => [()], |()| ()
}

/// Gives an object around a store of the core its health call, its counters and its end.
macro_rules! store {
    ($(#[$end:meta])* $name:ident) => {
        #[uniffi::export]
        impl $name {
            /// Asks the engine for its clock: shows that it answers.
            pub fn ping(&self) -> Result<std::sync::Arc<crate::location::PingOperation>, crate::error::StoreError> {
                let ping = crate::operation::Running::new(self.0.ping(), crate::operation::Unwanted::Drop)?;
                Ok(std::sync::Arc::new(crate::location::PingOperation(ping)))
            }

            /// What it has counted so far.
            pub fn stats(&self) -> crate::stats::Stats {
                self.0.stats().into()
            }

            /// Fails new operations with `Closed`, waits for those under way (at most the operation timeout) and gives up the
            /// connection. It goes on if the wait for it is given up; doing it again does nothing more.
            $(#[$end])*
            pub async fn shutdown(&self) {
                let store = self.0.clone();
                let _ = crate::drive::finish(async move { store.close().await }).await;
            }

            /// `shutdown` as an operation: cancelling it gives up the wait only.
            pub fn begin_shutdown(&self) -> Result<std::sync::Arc<crate::store::ShutdownOperation>, crate::error::StoreError> {
                let store = self.0.clone();
                let end = zlink_store::Operation::of(crate::drive::finish(async move { store.close().await }));
                let end = crate::operation::Running::new(end, crate::operation::Unwanted::Drop)?;
                Ok(std::sync::Arc::new(crate::store::ShutdownOperation(end)))
            }
        }
    };
}
pub(crate) use store;
