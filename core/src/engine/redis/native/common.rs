//! What all connections of one configuration share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::call::{Call, EngineCounters};
use crate::engine::redis::config::RedisConfig;
use crate::engine::redis::link::Link;
use crate::engine::redis::transport::{Batch, Reply, Scripts};
use crate::{ambient, background};

/// How long the look at the server's eviction policy may take.
const LOOK: Duration = Duration::from_secs(10);

/// Settings, counters, and what is known of the servers' scripts.
pub(super) struct Common {
    pub(super) config: RedisConfig,
    pub(super) counters: Arc<EngineCounters>,
    pub(super) scripts: Scripts,
    policy_seen: AtomicBool,
}

impl Common {
    pub(super) fn new(config: RedisConfig) -> Arc<Self> {
        let policy_seen = AtomicBool::new(config.allow_eviction);
        Arc::new(Self { config, counters: Arc::default(), scripts: Scripts::default(), policy_seen })
    }

    /// Warns once if the first server that is met may throw records away.
    pub(super) fn look_at_policy(&self, link: &Arc<Link>) {
        if !self.policy_seen.swap(true, Ordering::AcqRel) {
            let link = Arc::downgrade(link);
            background::handle().spawn(async move {
                if let Some(link) = link.upgrade() {
                    warn_of_eviction(&link).await;
                }
            });
        }
    }
}

/// Where the user may not run INFO, nobody can know.
async fn warn_of_eviction(link: &Arc<Link>) {
    let ask = Batch { commands: vec![vec![Bytes::from_static(b"INFO"), Bytes::from_static(b"memory")]], atomic: false };
    let Ok(replies) = link.send(Arc::new(ask), &Call::reading(ambient::monotonic() + LOOK)).await else { return };
    let Some(Reply::Bytes(info)) = replies.first() else { return };
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:")).map_or("noeviction", str::trim);
    if policy != "noeviction" {
        tracing::warn!(
            policy,
            "the server's maxmemory-policy lets it throw records away one by one when its memory is full: set it to noeviction, \
             or say allow_eviction=true in the URL if that is meant"
        );
    }
}
