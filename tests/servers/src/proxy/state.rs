//! What a proxy was told and has seen, which all its connections share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::Way;
use super::action::{Action, Request};

pub(super) type Judge = Arc<dyn Fn(&Request) -> Action + Send + Sync>;

pub(super) struct State {
    pub(super) target: Mutex<Option<u16>>,
    pub(super) judge: Mutex<Option<Judge>>,
    pub(super) once: Mutex<Vec<Once>>,
    pub(super) commands: Mutex<HashMap<String, u64>>,
    pub(super) record: Mutex<Option<Vec<Request>>>,
    pub(super) delay: [AtomicU64; 2],
    /// Bytes per second, 0 for any.
    pub(super) throttle: AtomicU64,
    /// Bytes until the cut, per way; `u64::MAX` for none.
    pub(super) cut: [AtomicU64; 2],
    /// Bytes that went each way.
    pub(super) passed: [AtomicU64; 2],
    pub(super) refusing: AtomicBool,
    pub(super) open: AtomicUsize,
    pub(super) accepted: AtomicUsize,
    /// Counts `cut_all`: a connection ends when it changes.
    pub(super) cuts: watch::Sender<u64>,
    /// Counts `swallow`: a connection that was open then is silent for good, and new ones are while it is odd.
    pub(super) silence: watch::Sender<u64>,
    /// Which ways a silent connection is silent.
    pub(super) silent: [AtomicBool; 2],
    pub(super) ended: watch::Sender<bool>,
}

/// An action for one command to come.
pub(super) struct Once {
    pub(super) name: String,
    /// So many commands of that name pass before.
    pub(super) skip: usize,
    pub(super) action: Action,
    pub(super) done: Arc<Notify>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl State {
    /// Where the connection is to be cut inside the next `count` bytes, if it is.
    pub(super) fn allowed(&self, way: Way, count: usize) -> Option<usize> {
        let left = &self.cut[way as usize];
        let next = |left: u64| (left != u64::MAX).then(|| if left <= count as u64 { u64::MAX } else { left - count as u64 });
        let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()?;
        usize::try_from(before).ok().filter(|before| *before <= count)
    }

    pub(super) fn action_for(&self, request: &Request) -> Action {
        let name = request.name();
        *self.commands.lock().entry(name.clone()).or_default() += 1;
        if let Some(record) = &mut *self.record.lock() {
            record.push(request.clone());
        }
        let planned = {
            let mut once = self.once.lock();
            let mut place = None;
            for (at, plan) in once.iter_mut().enumerate().filter(|(_, plan)| plan.name == "*" || plan.name == name) {
                if plan.skip == 0 {
                    place = Some(at);
                    break;
                }
                plan.skip -= 1;
            }
            place.map(|place| once.remove(place))
        };
        if let Some(Once { action, done, .. }) = planned {
            done.notify_one();
            return action;
        }
        let judge = self.judge.lock().clone();
        judge.map_or(Action::Pass, |judge| judge(request))
    }
}
