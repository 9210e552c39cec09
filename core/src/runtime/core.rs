//! What all parts of a running runtime share.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::claims::Objects;
use super::lease::{Lease, Renewal};
use super::leases::LeaseCache;
use super::nodes::Nodes;
use super::options::{FrameworkOptions, LocationRuntimeOptions};
use super::provider::LocationProvider;
use super::query::Watches;
use super::record::OwnerId;
use super::retry::Retry;
use super::scans::Scans;
use super::stores::Stores;
use crate::ambient::{self, Ambient};
use crate::call::{Cancellation, Gate, Kind, Operation, OperationTimeout, SMALL};
use crate::contract::{Error, Key, ReadResult, ScanRequest, ScanResult, WriteRequest, WriteResult};

/// How much longer than its own deadline an operation may take, so that the deadline's own error is what its caller gets.
const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Core {
    pub(super) stores: Arc<Stores>,
    pub(super) times: LocationRuntimeOptions,
    pub(super) ambient: Arc<dyn Ambient>,
    pub(super) lease: Lease,
    pub(super) leases: LeaseCache,
    pub(super) nodes: Nodes,
    pub(super) objects: Objects,
    pub(super) scans: Scans,
    pub(super) watches: Watches,
    gate: Arc<Gate>,
    /// Thrown when the runtime's own work is to end.
    pub(super) stopping: Cancellation,
    /// Rung when the lease was found lost.
    pub(super) lost: Notify,
    /// Rung when what is published must be looked over.
    pub(super) unsettled: Notify,
}

impl Core {
    pub(super) fn new(stores: Arc<Stores>, times: LocationRuntimeOptions, ambient: Arc<dyn Ambient>) -> Result<Self, Error> {
        let owner = OwnerId(ambient::random(&*ambient));
        let timeout = times.operation_timeout + GRACE;
        let longest = crate::contract::limits::MAX_OPERATION_TIMEOUT_MS;
        let timeout = OperationTimeout::new(u64::try_from(timeout.as_millis()).unwrap_or(longest).min(longest))?;
        let gate = Gate::new(timeout, false);
        Ok(Self {
            stores,
            times,
            ambient,
            lease: Lease::new(owner, &times)?,
            leases: LeaseCache::default(),
            nodes: Nodes::default(),
            objects: Objects::default(),
            scans: Scans::default(),
            watches: Watches::default(),
            gate,
            stopping: Cancellation::new(),
            lost: Notify::new(),
            unsettled: Notify::new(),
        })
    }

    /// An operation of a caller's: refused once the runtime stops, waited for by the stop, cancelled when it is dropped, and
    /// over at its deadline.
    pub(super) fn operation<T, F, W>(self: &Arc<Self>, kind: Kind, work: F) -> Operation<T>
    where
        F: FnOnce(Arc<Self>, Instant) -> W + Send + 'static,
        W: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let core = Arc::clone(self);
        self.gate.pass(kind, &SMALL, 0, move |_call| {
            let deadline = core.deadline();
            Box::pin(work(core, deadline))
        })
    }

    /// When an operation that begins now must be over.
    pub(super) fn deadline(&self) -> Instant {
        ambient::monotonic() + self.times.operation_timeout
    }

    /// Lets nobody in any more, and waits for those who are.
    pub(super) async fn close_gate(&self) {
        self.gate.close().await;
    }

    /// After a conflict: the reason may be a lease that was renewed meanwhile, or lost, which nobody knows yet.
    pub(super) async fn after_conflict(&self, retry: &mut Retry, deadline: Instant) -> Result<(), Error> {
        if matches!(self.lease.look(&self.stores, deadline).await, Renewal::Lost) {
            self.lost.notify_one();
        }
        retry.pause(&*self.ambient).await
    }
}

/// What was registered, and whether it can be started.
pub(super) struct Registered {
    pub(super) stores: Arc<Stores>,
    pub(super) checked: Result<(), Error>,
    pub(super) times: LocationRuntimeOptions,
}

impl Registered {
    pub(super) fn take(options: FrameworkOptions) -> Self {
        let FrameworkOptions { location, relocation, times } = options;
        let mut checked = times.validate();
        // What cannot be started is closed all the same, within the default time if the one that was set is wrong.
        let timeout = if checked.is_ok() { times } else { LocationRuntimeOptions::default() }.operation_timeout;
        let location = location.unwrap_or_else(|| {
            let missing = Error::argument("addLocationStore", "was not called: a location runtime needs a Location Store");
            checked = std::mem::replace(&mut checked, Ok(())).and(Err(missing));
            Arc::new(Absent)
        });
        Self { stores: Arc::new(Stores::new(location, relocation, timeout)), checked, times }
    }
}

/// In the place of a Location Store that was not registered; nothing asks it for anything but its close.
struct Absent;

impl LocationProvider for Absent {
    fn read(&self, _: Key) -> BoxFuture<'static, Result<ReadResult, Error>> {
        ready(Err(Error::closed())).boxed()
    }

    fn write(&self, _: WriteRequest) -> BoxFuture<'static, Result<WriteResult, Error>> {
        ready(Err(Error::closed())).boxed()
    }

    fn scan(&self, _: ScanRequest) -> BoxFuture<'static, Result<ScanResult, Error>> {
        ready(Err(Error::closed())).boxed()
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        ready(Ok(())).boxed()
    }
}
