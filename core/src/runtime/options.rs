//! What is registered, and with which times: checked before anything starts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::provider::{LocationProvider, RelocationProvider};
use crate::contract::{Error, Retention, limits};

/// The times of the location runtime (spec: runtime.md, Registration and lifetime). All are at least 1 ms, and
/// `renew_interval + renew_timeout < owner_lease_ttl − fencing_margin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationRuntimeOptions {
    /// How long an owner's lease lives after each renewal; 15 s.
    pub owner_lease_ttl: Duration,
    /// From one renewal to the next; 5 s.
    pub renew_interval: Duration,
    /// How long one renewal may take; 3 s.
    pub renew_timeout: Duration,
    /// How long before its end by the local clock a lease counts as run out; 5 s.
    pub fencing_margin: Duration,
    /// From one scan of a watch to the next, and how long a look at a lease is remembered; 1 s.
    pub polling_interval: Duration,
    /// How long one operation of the runtime may take, and one call of a store within it; 5 s, at most 2^31−1 ms.
    pub operation_timeout: Duration,
}

impl Default for LocationRuntimeOptions {
    fn default() -> Self {
        Self {
            owner_lease_ttl: Duration::from_secs(15),
            renew_interval: Duration::from_secs(5),
            renew_timeout: Duration::from_secs(3),
            fencing_margin: Duration::from_secs(5),
            polling_interval: Duration::from_secs(1),
            operation_timeout: Duration::from_millis(limits::DEFAULT_OPERATION_TIMEOUT_MS),
        }
    }
}

impl LocationRuntimeOptions {
    /// Checks every time, and how they fit together.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` that names the option.
    pub fn validate(&self) -> Result<(), Error> {
        let longest = Duration::from_millis(limits::MAX_OPERATION_TIMEOUT_MS);
        for (name, time) in [
            ("ownerLeaseTtl", self.owner_lease_ttl),
            ("renewInterval", self.renew_interval),
            ("renewTimeout", self.renew_timeout),
            ("fencingMargin", self.fencing_margin),
            ("pollingInterval", self.polling_interval),
            ("operationTimeout", self.operation_timeout),
        ] {
            if time < Duration::from_millis(1) || time > longest {
                return Err(Error::argument(name, format!("must be 1..={} ms, got {time:?}", longest.as_millis())));
            }
        }
        let renewed_after = self.renew_interval + self.renew_timeout;
        if renewed_after + self.fencing_margin >= self.owner_lease_ttl {
            return Err(Error::argument(
                "renewInterval",
                format!(
                    "+ renewTimeout ({renewed_after:?}) must be less than ownerLeaseTtl - fencingMargin ({:?} - {:?})",
                    self.owner_lease_ttl, self.fencing_margin
                ),
            ));
        }
        Ok(())
    }

    /// The lease's retention; the options were checked.
    pub(super) fn lease_retention(&self) -> Result<Retention, Error> {
        Retention::from_ms(u64::try_from(self.owner_lease_ttl.as_millis()).unwrap_or(limits::MAX_RETENTION_MS))
    }
}

/// The stores and times that a [`LocationRuntime`](super::LocationRuntime) is started with.
///
/// Registering hands a store over: the runtime closes it, exactly once, whether it starts, fails to, or is stopped. A store
/// whose registration failed stays its caller's.
#[derive(Default)]
pub struct FrameworkOptions {
    pub(super) location: Option<Arc<dyn LocationProvider>>,
    pub(super) relocation: Option<Arc<dyn RelocationProvider>>,
    pub(super) times: LocationRuntimeOptions,
}

impl FrameworkOptions {
    /// Nothing registered, and the default times.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the Location Store. An object that is a Relocation Store too may be registered as both, by clones of the same
    /// `Arc`; it is closed once.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` that names the first one, if there is one already.
    pub fn add_location_store(&mut self, store: Arc<dyn LocationProvider>) -> Result<&mut Self, Error> {
        if let Some(first) = &self.location {
            return Err(twice("addLocationStore", "Location Store", &first.name()));
        }
        self.location = Some(store);
        Ok(self)
    }

    /// Registers the Relocation Store.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` that names the first one, if there is one already.
    pub fn add_relocation_store(&mut self, store: Arc<dyn RelocationProvider>) -> Result<&mut Self, Error> {
        if let Some(first) = &self.relocation {
            return Err(twice("addRelocationStore", "Relocation Store", &first.name()));
        }
        self.relocation = Some(store);
        Ok(self)
    }

    /// Sets the times; they are checked at the start.
    pub fn set_location_options(&mut self, times: LocationRuntimeOptions) -> &mut Self {
        self.times = times;
        self
    }
}

impl fmt::Debug for FrameworkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameworkOptions")
            .field("location", &self.location.as_ref().map(|store| store.name()))
            .field("relocation", &self.relocation.as_ref().map(|store| store.name()))
            .field("times", &self.times)
            .finish()
    }
}

fn twice(call: &str, what: &str, first: &str) -> Error {
    Error::argument(call, format!("was called twice: the {what} is {first} already; register each store exactly once"))
}
