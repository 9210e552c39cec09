//! A client of a project: entries of state, and locks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Asked, Shared};
use crate::history::{Granted, Lost};
use crate::linear::{Guard, Op, State as Value};
use crate::party::{Entry, Grant, Locks, Project, Set, State};
use crate::verdict::Problem;

/// Entries that are set and deleted by everybody.
const FREE: [&str; 2] = ["free/0", "free/1"];
/// Entries that are only replaced, version by version.
const COMPARED: [&str; 2] = ["compared/0", "compared/1"];
const LOCKS: [&str; 2] = ["lock/0", "lock/1"];
/// How long a lock may be waited for at the end.
const LAST_WAIT_MS: u64 = 10_000;
/// How often a lease is tried to be given back before it is left to expire.
const RELEASES: usize = 100;

pub(super) struct Client {
    number: u32,
    state: State,
    locks: Locks,
    at: Arc<Shared>,
    random: fastrand::Rng,
    known: HashMap<&'static str, Entry>,
}

impl Client {
    pub(super) fn new(number: u32, project: &Project, at: Arc<Shared>) -> Self {
        let random = fastrand::Rng::with_seed(u64::from(number));
        Self { number, state: project.state(), locks: project.locks(), at, random, known: HashMap::new() }
    }

    /// Makes the entries that must be there before the load.
    pub(super) async fn begin(mut self) {
        for key in COMPARED {
            self.set(key, Some(0)).await;
            assert!(self.known.contains_key(key), "the first entries could not be set");
        }
    }

    pub(super) async fn run(mut self) {
        while self.at.goes_on(&mut self.random).await {
            let free = FREE[self.random.usize(..FREE.len())];
            let compared = COMPARED[self.random.usize(..COMPARED.len())];
            match self.random.u8(..12) {
                0 | 1 => self.set(free, None).await,
                2 => self.set(free, Some(0)).await,
                3 => self.delete(free).await,
                4 => self.get(free).await,
                5..=7 => {
                    self.get(compared).await;
                    if let Some(entry) = self.known.get(compared) {
                        self.set(compared, Some(entry.version)).await;
                    }
                }
                _ => {
                    let wait = if self.random.bool() { 0 } else { self.random.u64(1..600) };
                    let lock = LOCKS[self.random.usize(..LOCKS.len())];
                    self.hold(lock, wait).await;
                }
            }
        }
    }

    async fn get(&mut self, key: &'static str) {
        let Asked { begun, ended, answer } = self.at.ask("a look at an entry", self.state.get(key)).await;
        let Ok(entry) = answer else { return };
        self.at.history.with(|log| log.counts.read += 1);
        self.known.remove(key);
        if let Some(entry) = entry {
            self.saw(key, entry);
        }
        self.log(key, Guard::Is(entry.map(|entry| entry.value)), None, begun, Some(ended));
    }

    /// With `expected` 0, or what is known of the entry, or in any case.
    async fn set(&mut self, key: &'static str, expected: Option<u64>) {
        let id = self.at.history.new_id();
        let guard = match expected {
            None => Guard::Any,
            Some(0) => Guard::Is(None),
            Some(_) => Guard::Is(self.known.get(key).map(|entry| entry.value)),
        };
        let Asked { begun, ended, answer } = self.at.ask("a set", self.state.set(key, id, expected)).await;
        self.known.remove(key);
        match answer {
            Ok(Set::Done(Some(version))) => {
                if expected.is_some_and(|expected| version != expected + 1) {
                    let said = format!("{key} has version {version} after {expected:?}");
                    self.at.history.problem(Problem::Wrong, said);
                }
                self.acknowledged();
                self.saw(key, Entry { value: id, version });
                self.log(key, guard, Some(Some(id)), begun, Some(ended));
            }
            Ok(Set::Conflict) => self.refused(key, id, guard, begun, ended),
            Ok(other) => self.at.history.problem(Problem::Wrong, format!("a set of {key} said {other:?}")),
            Err(Lost::NotApplied) => {
                self.at.history.with(|log| log.refused.insert(id, "an error said notApplied".to_owned()));
            }
            Err(Lost::Unknown) => self.log(key, guard, Some(Some(id)), begun, None),
        }
    }

    async fn delete(&mut self, key: &'static str) {
        let Asked { begun, ended, answer } = self.at.ask("a delete of an entry", self.state.delete(key, None)).await;
        self.known.remove(key);
        match answer {
            Ok(Set::Done(_)) => {
                self.acknowledged();
                self.log(key, Guard::Not(None), Some(None), begun, Some(ended));
            }
            Ok(Set::Missing) => self.log(key, Guard::Is(None), None, begun, Some(ended)),
            Ok(Set::Conflict) => self.at.history.problem(Problem::Wrong, format!("a conflict without a condition, on {key}")),
            Err(Lost::NotApplied) => {}
            Err(Lost::Unknown) => self.log(key, Guard::Any, Some(None), begun, None),
        }
    }

    fn refused(&self, key: &'static str, id: u64, guard: Guard, begun: u64, ended: u64) {
        self.at.history.with(|log| {
            log.counts.conflicts += 1;
            log.refused.insert(id, "the answer was a conflict".to_owned());
        });
        match guard {
            Guard::Is(state) => self.log(key, Guard::Not(state), None, begun, Some(ended)),
            _ => self.at.history.problem(Problem::Wrong, format!("a conflict without a condition, on {key}")),
        }
    }

    fn saw(&mut self, key: &'static str, entry: Entry) {
        if !self.at.history.knows(entry.value) {
            return self.at.history.problem(Problem::Wrong, format!("{key} holds what nobody set"));
        }
        self.known.insert(key, entry);
        self.at.history.with(|log| {
            if COMPARED.contains(&key) {
                log.saw_entry(key, entry.version, entry.value);
            } else {
                log.seen.insert(entry.value);
            }
        });
    }

    fn acknowledged(&self) {
        self.at.history.with(|log| log.counts.acknowledged += 1);
    }

    fn log(&self, key: &str, guard: Guard, set: Option<Value>, begun: u64, ended: Option<u64>) {
        let op = Op { client: self.number, guard, set, begun, ended };
        self.at.history.with(|log| log.op(&format!("state/{key}"), op));
    }

    /// Holds a lock for a moment; whether it could be had.
    async fn hold(&mut self, lock: &'static str, wait_ms: u64) -> bool {
        let acquire = self.locks.acquire(lock, wait_ms, self.at.plan.lease_ms);
        let Asked { begun, ended, answer } = self.at.ask_for(Duration::from_millis(wait_ms), "an acquire", acquire).await;
        let Ok(Some(grant)) = answer else { return false };
        self.acknowledged();
        tokio::time::sleep(Duration::from_millis(self.random.u64(0..8))).await;
        let over = self.at.history.tick();
        let granted = Granted { lock: lock.to_owned(), token: grant.token, begun, granted: ended, over };
        self.at.history.with(|log| log.grants.push(granted));
        self.release(lock, &grant).await;
        true
    }

    async fn release(&self, lock: &str, grant: &Grant) {
        for attempt in 0..RELEASES {
            match self.at.ask("a release", grant.release()).await.answer {
                Ok(true) => return self.acknowledged(),
                Ok(false) => {
                    // After one that may have been done, nothing is left to give back.
                    let lossy = self.at.history.with(|log| log.window.is_some());
                    if attempt == 0 && !lossy {
                        self.at.history.problem(Problem::Lost, format!("the lease {} of {lock}", grant.token));
                    }
                    return;
                }
                Err(_) => {}
            }
        }
    }

    /// Looks at everything; every lock can be had.
    pub(super) async fn end(mut self) {
        for key in FREE.into_iter().chain(COMPARED) {
            self.get(key).await;
        }
        for lock in LOCKS {
            // Twice: a lease that is lost to all but the server ends by itself.
            if !self.hold(lock, LAST_WAIT_MS).await && !self.hold(lock, LAST_WAIT_MS).await {
                self.at.history.problem(Problem::Hung, format!("nobody gives {lock} back"));
            }
        }
    }
}

/// A project does one operation of each kind at the first attempt.
pub(super) async fn works(project: &Project, key: &str) {
    let state = project.state();
    assert_eq!(state.set(key, 7, Some(0)).await.expect("a set after the fault"), Set::Done(Some(1)));
    let entry = state.get(key).await.expect("a look after the fault");
    assert_eq!(entry, Some(Entry { value: 7, version: 1 }));
    assert_eq!(state.delete(key, Some(1)).await.expect("a delete after the fault"), Set::Done(None));
    let grant = project.locks().acquire(key, 0, 30_000).await.expect("an acquire after the fault").expect("a free lock");
    assert!(grant.release().await.expect("a release after the fault"), "a lease is lost");
}
