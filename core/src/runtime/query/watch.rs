//! What changes: full looks one after the other, and the difference between two.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::objects::ObjectFilter;
use super::pages::{Page, PageRequest};
use super::topology::{TopologyEntry, TopologyFilter};
use crate::ambient::jittered;
use crate::call::{Kind, Operation};
use crate::contract::{Code, Error};
use crate::runtime::core::Core;
use crate::runtime::names::NodeId;
use crate::runtime::object::ObjectEntry;
use crate::{ambient, background};

/// Longest pause between two looks while the store fails.
const LONGEST: Duration = Duration::from_secs(30);

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// It was not there at the look before.
    Added(T),
    /// It is there as before, and differs.
    Changed(T),
    /// It is not there any more; this is how it was.
    Removed(T),
}

/// How many watch.
#[derive(Clone, Default)]
pub(in crate::runtime) struct Watches(Arc<AtomicUsize>);

impl Watches {
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn enter(&self) -> Watcher {
        self.0.fetch_add(1, Ordering::SeqCst);
        Watcher(self.clone())
    }
}

struct Watcher(Watches);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An entry that is the same one from look to look.
trait Watched: Clone + PartialEq + Send + 'static {
    type Id: Ord + Send;
    fn id(&self) -> Self::Id;
}

impl Watched for TopologyEntry {
    type Id = NodeId;
    fn id(&self) -> NodeId {
        self.node.clone()
    }
}

impl Watched for ObjectEntry {
    type Id = String;
    fn id(&self) -> String {
        self.global_id.as_str().to_owned()
    }
}

/// A stream of changes. It looks only while somebody waits for [`next`](Self::next), so a slow reader gets fewer and larger
/// batches, never a queue; dropping it ends it.
pub struct Watch<T>(Box<dyn Looks<T>>);

trait Looks<T>: Send {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Change<T>>>>;
}

impl<T> Watch<T> {
    /// The next changes. The first batch is the complete state, perhaps empty, as `Added`; later ones have at least one change.
    /// While the store fails it waits, at growing intervals. `None`: the runtime has stopped. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Vec<Change<T>>> {
        self.0.next().await
    }
}

impl<T> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

struct Looker<T: Watched, F> {
    core: Arc<Core>,
    /// Reads one page.
    read: F,
    /// The last complete state.
    last: Option<BTreeMap<T::Id, T>>,
    next_at: Instant,
    /// How many looks in a row have failed.
    failures: u32,
    _watcher: Watcher,
}

impl<T, F> Looks<T> for Looker<T, F>
where
    T: Watched,
    F: Fn(PageRequest) -> Operation<Page<T>> + Send + Sync,
{
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Change<T>>>> {
        async move {
            loop {
                tokio::select! {
                    biased;
                    () = self.core.stopping.cancelled() => return None,
                    () = background::sleep_until(self.next_at) => {}
                }
                match look(&self.read).await {
                    Ok(now) => {
                        self.failures = 0;
                        self.pause(self.core.times.polling_interval);
                        let before = self.last.take();
                        let first = before.is_none();
                        let changes = difference(before.unwrap_or_default(), &now);
                        self.last = Some(now);
                        if first || !changes.is_empty() {
                            return Some(changes);
                        }
                    }
                    Err(error) if error.code() == Code::Closed => return None,
                    Err(_) => {
                        let longer = self.core.times.polling_interval.saturating_mul(1 << self.failures.min(16));
                        self.failures += 1;
                        self.pause(longer.min(LONGEST.max(self.core.times.polling_interval)));
                    }
                }
            }
        }
        .boxed()
    }
}

impl<T: Watched, F> Looker<T, F> {
    fn pause(&mut self, time: Duration) {
        self.next_at = ambient::monotonic() + jittered(time, &*self.core.ambient);
    }
}

/// One full cycle of pages.
async fn look<T: Watched, W: Future<Output = Result<Page<T>, Error>>>(
    read: &(impl Fn(PageRequest) -> W + Sync),
) -> Result<BTreeMap<T::Id, T>, Error> {
    let mut all = BTreeMap::new();
    let mut request = PageRequest::default();
    loop {
        let page = read(request).await?;
        all.extend(page.entries.into_iter().map(|entry| (entry.id(), entry)));
        match page.continuation_token {
            None => return Ok(all),
            token => request = PageRequest { size: 0, continuation_token: token },
        }
    }
}

fn difference<T: Watched>(mut before: BTreeMap<T::Id, T>, now: &BTreeMap<T::Id, T>) -> Vec<Change<T>> {
    let mut changes = Vec::new();
    for (id, entry) in now {
        match before.remove(id) {
            None => changes.push(Change::Added(entry.clone())),
            Some(former) if former != *entry => changes.push(Change::Changed(entry.clone())),
            Some(_) => {}
        }
    }
    changes.extend(before.into_values().map(Change::Removed));
    changes
}

impl Core {
    fn watch<T: Watched>(self: &Arc<Self>, read: impl Fn(PageRequest) -> Operation<Page<T>> + Send + Sync + 'static) -> Watch<T> {
        Watch(Box::new(Looker {
            core: Arc::clone(self),
            read,
            last: None,
            next_at: ambient::monotonic(),
            failures: 0,
            _watcher: self.watches.enter(),
        }))
    }

    pub(in crate::runtime) fn watch_topology(self: &Arc<Self>, filter: TopologyFilter) -> Watch<TopologyEntry> {
        let core = Arc::clone(self);
        self.watch(move |request| {
            let filter = filter.clone();
            core.operation(Kind::Scan, |core, deadline| async move { core.list_topology(filter, request, deadline).await })
        })
    }

    pub(in crate::runtime) fn watch_objects(self: &Arc<Self>, filter: ObjectFilter) -> Watch<ObjectEntry> {
        let core = Arc::clone(self);
        self.watch(move |request| {
            let filter = filter.clone();
            core.operation(Kind::Scan, |core, deadline| async move { core.list_objects(filter, request, deadline).await })
        })
    }
}
