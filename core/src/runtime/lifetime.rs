//! From the start to the disposal of the stores, which comes exactly once on every way.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::core::{Core, Registered};
use super::keeper;
use super::options::FrameworkOptions;
use super::record::ObjectPhase;
use super::stores::Stores;
use crate::ambient::Ambient;
use crate::background;
use crate::contract::Error;

/// How many objects are given up at a time.
const TOGETHER: usize = 64;

/// What went wrong at a start or a stop: everything, in the order in which it happened, and at least one thing. Whatever
/// failed, the rest was done, and the stores are closed.
#[derive(Clone)]
pub struct LifetimeError(Vec<Error>);

impl LifetimeError {
    /// The first is the cause of a failed start.
    pub fn errors(&self) -> &[Error] {
        &self.0
    }

    fn unless_none(errors: Vec<Error>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }
}

impl fmt::Display for LifetimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if place == 0 { "" } else { "; also: " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for LifetimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LifetimeError").field(&self.0).finish()
    }
}

impl std::error::Error for LifetimeError {}

type Stopped = Shared<BoxFuture<'static, Result<(), LifetimeError>>>;

/// A runtime that was started, and its end.
pub(super) struct Life {
    pub(super) core: Arc<Core>,
    state: Mutex<State>,
}

enum State {
    Running(Vec<JoinHandle<()>>),
    Stopping(Stopped),
}

impl Life {
    /// Claims the lease and begins the runtime's own work. It goes on in the background if its caller leaves, and ends as a
    /// runtime does that is dropped.
    pub(super) async fn start(options: FrameworkOptions, ambient: Arc<dyn Ambient>) -> Result<Arc<Self>, LifetimeError> {
        let started = background::handle().spawn(Self::start_here(options, ambient));
        started.await.unwrap_or_else(|error| Err(LifetimeError(vec![Error::internal(format!("the start ended early: {error}"))])))
    }

    async fn start_here(options: FrameworkOptions, ambient: Arc<dyn Ambient>) -> Result<Arc<Self>, LifetimeError> {
        let Registered { stores, checked, times } = Registered::take(options);
        let core = match checked.and_then(|()| Core::new(Arc::clone(&stores), times, ambient)) {
            Ok(core) => Arc::new(core),
            Err(wrong) => return Err(with_closing(wrong, &stores).await),
        };
        if let Err(cause) = core.lease.claim(&stores, &*core.ambient, core.deadline()).await {
            let mut errors = vec![cause];
            // What may have been claimed is given back.
            errors.extend(core.lease.release(&stores, &*core.ambient, core.deadline()).await.err());
            errors.extend(stores.close().await);
            return Err(LifetimeError(errors));
        }
        let work = vec![
            background::handle().spawn(keeper::keep_lease(Arc::clone(&core))),
            background::handle().spawn(keeper::keep_published(Arc::clone(&core))),
        ];
        Ok(Arc::new(Self { core, state: Mutex::new(State::Running(work)) }))
    }

    /// Ends everything, once; whoever stops again gets the same answer. It goes on if its caller leaves.
    pub(super) fn stop(&self) -> Stopped {
        let mut state = self.state.lock();
        match &mut *state {
            State::Stopping(stopped) => stopped.clone(),
            State::Running(work) => {
                let task = background::handle().spawn(stop(Arc::clone(&self.core), std::mem::take(work)));
                let stopped = task.map(|joined| {
                    let early = |error| LifetimeError(vec![Error::internal(format!("the stop ended early: {error}"))]);
                    LifetimeError::unless_none(joined.map_err(early)?)
                });
                let stopped = stopped.boxed().shared();
                *state = State::Stopping(stopped.clone());
                stopped
            }
        }
    }
}

impl Drop for Life {
    /// Without a stop: as if the process had died, except that the stores are closed.
    fn drop(&mut self) {
        if let State::Running(work) = self.state.get_mut() {
            self.core.stopping.cancel();
            work.iter().for_each(JoinHandle::abort);
            let core = Arc::clone(&self.core);
            background::spawn(async move {
                core.close_gate().await;
                for error in core.stores.close().await {
                    tracing::warn!("{error}");
                }
            });
        }
    }
}

async fn with_closing(cause: Error, stores: &Stores) -> LifetimeError {
    let mut errors = vec![cause];
    errors.extend(stores.close().await);
    LifetimeError(errors)
}

async fn stop(core: Arc<Core>, work: Vec<JoinHandle<()>>) -> Vec<Error> {
    core.stopping.cancel();
    core.close_gate().await;
    for task in work {
        // One that ended by itself has nothing left to end.
        let _ = task.await;
    }
    let mut errors = remove_published(&core).await;
    errors.extend(core.lease.release(&core.stores, &*core.ambient, core.deadline()).await.err());
    errors.extend(core.stores.close().await);
    errors
}

/// Removes objects and nodes, within one operation's time: what is left is found by others when the lease is gone.
async fn remove_published(core: &Core) -> Vec<Error> {
    let deadline = core.deadline();
    let any = &[ObjectPhase::Reserved, ObjectPhase::Active];
    let objects = core.objects.all().into_iter().map(|(_, claim)| core.give_up(claim, any, deadline));
    let given_up: Vec<_> = stream::iter(objects.collect::<Vec<_>>()).buffer_unordered(TOGETHER).collect().await;
    // One reason is enough for any number of objects.
    let mut errors: Vec<Error> = given_up.into_iter().filter_map(Result::err).take(1).collect();
    for node in core.nodes.names() {
        errors.extend(core.remove_node(&node, deadline).await.err());
    }
    errors
}
