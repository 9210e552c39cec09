//! What the committer shows: the state after its last finished commit, and the clock.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::database::FileView;
use crate::ambient::Ambient;
use crate::contract::{Error, StoreTime};
use crate::engine::embedded::storage::Clock;

pub(super) struct Front {
    ambient: Arc<dyn Ambient>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    phase: Phase,
    clock: Clock,
    /// While a batch of this time is being synced, time stands still for everybody: else a read could call a lease missing
    /// that the commit then finds alive.
    standing: Option<StoreTime>,
}

enum Phase {
    /// The folder is being opened, for the first time or again.
    Opening,
    Open(Arc<FileView>),
    Failed(Error),
}

impl Front {
    pub(super) fn new(ambient: Arc<dyn Ambient>) -> Self {
        let clock = Clock::new(StoreTime::from_unix_ms(0));
        let state = State { phase: Phase::Opening, clock, standing: None };
        Self { ambient, state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn ambient(&self) -> &dyn Ambient {
        &*self.ambient
    }

    /// The state and the clock of one instant. Waits while the folder is being opened.
    pub(super) async fn moment(&self) -> Result<(Arc<FileView>, StoreTime), Error> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                match &state.phase {
                    Phase::Open(view) => {
                        let view = Arc::clone(view);
                        return Ok((view, state.now(&*self.ambient)));
                    }
                    Phase::Failed(error) => return Err(error.clone()),
                    Phase::Opening => {}
                }
            }
            changed.await;
        }
    }

    pub(super) fn opening(&self) {
        self.state.lock().phase = Phase::Opening;
    }

    pub(super) fn failed(&self, error: Error) {
        self.state.lock().phase = Phase::Failed(error);
        self.changed.notify_waiters();
    }

    /// Shows what was found in the folder. Time goes on from where it was, here or there.
    pub(super) fn opened(&self, view: Arc<FileView>) {
        let mut state = self.state.lock();
        state.clock.at_least(view.meta.time);
        state.phase = Phase::Open(view);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The one clock reading of a batch; time stands still until `show` or `go_on`.
    pub(super) fn stand_still(&self) -> StoreTime {
        let mut state = self.state.lock();
        let now = state.now(&*self.ambient);
        state.standing = Some(now);
        now
    }

    /// Shows the state after the batch, and lets time go on.
    pub(super) fn show(&self, view: Arc<FileView>) {
        let mut state = self.state.lock();
        state.phase = Phase::Open(view);
        state.standing = None;
    }

    /// The batch changed nothing, or failed.
    pub(super) fn go_on(&self) {
        self.state.lock().standing = None;
    }

    /// The last time that anybody was told.
    pub(super) fn last_told(&self) -> StoreTime {
        self.state.lock().clock.last()
    }
}

impl State {
    fn now(&mut self, ambient: &dyn Ambient) -> StoreTime {
        match self.standing {
            Some(standing) => standing,
            None => self.clock.now(ambient),
        }
    }
}
