//! Other owners' leases: looked up for queries in batches and remembered for a moment, or as evidence for one commit.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::core::Core;
use super::keys;
use super::lease::remaining;
use super::record::{LeaseRecord, OwnerId, Record};
use crate::ambient;
use crate::contract::{Condition, Error, Mutation, ReadResult};

/// Most look-ups at a time.
const TOGETHER: usize = 64;
/// How many are remembered before those that are out of date are thrown out.
const MANY: usize = 4_096;

#[derive(Default)]
pub(super) struct LeaseCache(Mutex<HashMap<OwnerId, Seen>>);

#[derive(Clone, Copy)]
struct Seen {
    /// The live lease's generation.
    generation: Option<u64>,
    until: Instant,
}

/// Which owners have a live lease, and of which generation.
#[derive(Default)]
pub(super) struct Live(HashMap<OwnerId, u64>);

impl Live {
    pub(super) fn has(&self, owner: OwnerId, generation: u64) -> bool {
        self.0.get(&owner) == Some(&generation)
    }

    pub(super) fn has_any(&self, owner: OwnerId) -> bool {
        self.0.contains_key(&owner)
    }
}

/// What a commit that takes something from an owner must carry.
pub(super) enum Evidence {
    /// Its lease of that generation is live: nothing can be taken.
    Live,
    /// It is gone while these conditions hold.
    Gone(Vec<Condition>, Vec<Mutation>),
}

impl Core {
    /// The live leases among those of `owners`: each distinct one read at most once, and not again within the polling interval.
    pub(super) async fn live(&self, owners: impl IntoIterator<Item = OwnerId>, deadline: Instant) -> Result<Live, Error> {
        let mut live = Live::default();
        let mut unknown = HashSet::new();
        {
            let now = ambient::monotonic();
            let cache = self.leases.0.lock();
            for owner in owners {
                match cache.get(&owner).filter(|seen| now < seen.until) {
                    Some(seen) => live.0.extend(seen.generation.map(|generation| (owner, generation))),
                    None => _ = unknown.insert(owner),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(live);
        }
        let looks = unknown.into_iter().map(|owner| async move { Ok::<_, Error>((owner, self.look_up(owner, deadline).await?)) });
        let seen: Vec<_> = stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(TOGETHER).try_collect().await?;
        let mut cache = self.leases.0.lock();
        if cache.len() > MANY {
            let now = ambient::monotonic();
            cache.retain(|_, seen| now < seen.until);
        }
        for (owner, seen) in seen {
            live.0.extend(seen.generation.map(|generation| (owner, generation)));
            cache.insert(owner, seen);
        }
        Ok(live)
    }

    async fn look_up(&self, owner: OwnerId, deadline: Instant) -> Result<Seen, Error> {
        let asked = ambient::monotonic();
        Ok(match self.stores.read(keys::lease(owner)?, deadline).await? {
            ReadResult::Missing { .. } => Seen { generation: None, until: asked + self.times.polling_interval },
            ReadResult::Found(value) => {
                let generation = Some(LeaseRecord::decode(&value.bytes)?.generation);
                Seen { generation, until: asked + self.times.polling_interval.min(remaining(&value)) }
            }
        })
    }

    /// Whether this lease of another owner's is gone, as a commit can prove it. One that is missing is also deleted by its key,
    /// so that a clock that is set back cannot bring it to life again.
    pub(super) async fn evidence(&self, owner: OwnerId, generation: u64, deadline: Instant) -> Result<Evidence, Error> {
        let key = keys::lease(owner)?;
        Ok(match self.stores.read(key.clone(), deadline).await? {
            ReadResult::Missing { .. } => {
                Evidence::Gone(vec![Condition::Missing { key: key.clone() }], vec![Mutation::delete(key)])
            }
            ReadResult::Found(value) if LeaseRecord::decode(&value.bytes)?.generation > generation => {
                Evidence::Gone(vec![Condition::Version { key, expected: value.version }], Vec::new())
            }
            ReadResult::Found(_) => Evidence::Live,
        })
    }
}
