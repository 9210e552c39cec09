//! How the runtime itself is.

use std::time::Duration;

use crate::contract::{Error, StoreTime};
use crate::runtime::core::Core;
use crate::runtime::stores::Health;

/// The state of a runtime, as it knows it without asking anybody.
#[derive(Clone, Debug)]
pub struct RuntimeStatus {
    /// Whether the Location Store answered the last call.
    pub store_healthy: bool,
    /// Whether anybody watches.
    pub watch_enabled: bool,
    /// From one scan of a watch to the next.
    pub polling_interval: Duration,
    /// When the store last answered, by its own clock.
    pub last_refresh_at: Option<StoreTime>,
    /// How the last call failed that did; it stays when others succeed.
    pub last_error: Option<Error>,
    /// Whether the owner lease cannot have run out, by the local clock.
    pub owner_lease_healthy: bool,
    /// When the owner lease was last renewed, by the store's clock.
    pub owner_lease_renewed_at: Option<StoreTime>,
}

impl Core {
    pub(in crate::runtime) fn status(&self) -> RuntimeStatus {
        let Health { healthy, refreshed_at, last_error } = self.stores.health();
        RuntimeStatus {
            store_healthy: healthy,
            watch_enabled: self.watches.any(),
            polling_interval: self.times.polling_interval,
            last_refresh_at: refreshed_at,
            last_error,
            owner_lease_healthy: self.lease.admitted().is_ok(),
            owner_lease_renewed_at: self.lease.renewed_at(),
        }
    }
}
