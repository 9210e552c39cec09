//! The runtime's own work: the lease is kept, and what was published is kept as it should be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::core::Core;
use super::lease::Renewal;
use crate::ambient::jittered;
use crate::contract::Error;
use crate::{ambient, background};

/// Renews the lease, and claims it again when it is lost, until the runtime stops.
pub(super) async fn keep_lease(core: Arc<Core>) {
    let interval = core.times.renew_interval;
    let soon = interval / 5;
    let mut next = ambient::monotonic() + interval;
    loop {
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = core.lost.notified() => {}
            () = background::sleep_until(next) => {}
        }
        let began = ambient::monotonic();
        next = match core.lease.renew(&core.stores).await {
            Renewal::Renewed => began + interval,
            // It has less than its whole life before it.
            Renewal::Adopted => began + jittered(soon, &*core.ambient),
            Renewal::Failed(error) => {
                tracing::warn!("the owner lease could not be renewed: {error}");
                began + jittered(soon, &*core.ambient)
            }
            Renewal::Lost => reclaim(&core, began, soon).await,
        };
    }
}

async fn reclaim(core: &Core, began: Instant, soon: Duration) -> Instant {
    match core.lease.claim(&core.stores, &*core.ambient, core.deadline()).await {
        Ok(()) => {
            tracing::warn!("the owner lease was lost, and claimed again");
            core.unsettled.notify_one();
            began + core.times.renew_interval
        }
        Err(error) => {
            tracing::warn!("the owner lease was lost, and could not be claimed again: {error}");
            ambient::monotonic() + jittered(soon, &*core.ambient)
        }
    }
}

/// Publishes again what must be, and looks after the descriptors of all, until the runtime stops.
pub(super) async fn keep_published(core: Arc<Core>) {
    let every = core.times.owner_lease_ttl;
    let mut sweep = ambient::monotonic() + jittered(every, &*core.ambient);
    loop {
        let next = ambient::monotonic() + jittered(core.times.polling_interval, &*core.ambient);
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = core.unsettled.notified() => {}
            () = background::sleep_until(next) => {}
        }
        // A call that is under way when the runtime stops is not left, so that its outcome is known before what follows.
        report("what this runtime has published could not be put again", core.settle_nodes().await);
        report("what this runtime holds could not be settled", core.settle_objects().await);
        if ambient::monotonic() >= sweep && !core.stopping.is_cancelled() {
            report("the nodes whose leases are gone could not be looked after", core.sweep().await);
            sweep = ambient::monotonic() + jittered(every, &*core.ambient);
        }
    }
}

fn report(what: &str, result: Result<(), Error>) {
    if let Err(error) = result {
        tracing::debug!("{what}, and will be tried again: {error}");
    }
}
