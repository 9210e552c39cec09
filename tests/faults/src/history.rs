//! What every client did and was told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use zlink_store::{Code, Error, Key, Outcome, StoreTime, Version};

use crate::linear::Op;
use crate::verdict::{Counts, Problem};

/// Everything that happened during one test.
#[derive(Debug, Default)]
pub struct History {
    clock: AtomicU64,
    ids: AtomicU64,
    log: Mutex<Log>,
}

/// See [`History`].
#[derive(Debug, Default)]
pub struct Log {
    /// The operations of each register.
    pub registers: HashMap<String, Vec<Op>>,
    /// What is known of each put, by key and id.
    pub puts: HashMap<(Key, u64), Put>,
    /// Which put each version belongs to.
    pub versions: HashMap<Version, (Key, u64)>,
    /// Writes that were refused, and in which words: surely never applied.
    pub refused: HashMap<u64, String>,
    /// Writes whose value somebody saw.
    pub seen: HashSet<u64>,
    /// What was acknowledged within may be lost, if anything may.
    pub window: Option<RangeInclusive<u64>>,
    /// The leases that were granted.
    pub grants: Vec<Granted>,
    /// Which write made which version of an entry of state.
    pub entries: HashMap<(String, u64), u64>,
    /// The counters.
    pub counters: BTreeMap<String, Tally>,
    /// What was counted.
    pub counts: Counts,
    /// What was wrong, and how.
    pub problems: Vec<(Problem, String)>,
}

/// One put.
#[derive(Debug)]
pub struct Put {
    version: Version,
    expires_at: Option<StoreTime>,
}

/// One lease, in instants of the history.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The lock.
    pub lock: String,
    /// The fencing token.
    pub token: u64,
    /// When it was asked for.
    pub begun: u64,
    /// When it was there.
    pub granted: u64,
    /// When it was about to be given back.
    pub over: u64,
}

/// What was said of a counter's increments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Applied.
    pub applied: u64,
    /// Outcome unknown.
    pub unknown: u64,
}

/// What became of an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It surely did nothing.
    NotApplied,
    /// Nobody knows.
    Unknown,
}

impl History {
    /// An instant: later than all before.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// An id for one write.
    pub fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::SeqCst)
    }

    /// Whether [`new_id`](Self::new_id) ever gave `id`.
    pub fn knows(&self, id: u64) -> bool {
        id < self.ids.load(Ordering::SeqCst)
    }

    /// Looks at, or adds to, what was written down.
    pub fn with<T>(&self, what: impl FnOnce(&mut Log) -> T) -> T {
        what(&mut self.log.lock())
    }

    /// Writes down something that must not be.
    pub fn problem(&self, problem: Problem, said: String) {
        self.with(|log| log.problem(problem, said));
    }
}

impl Log {
    /// Writes down something that must not be.
    pub fn problem(&mut self, problem: Problem, said: String) {
        self.problems.push((problem, said));
    }

    /// How many changes of a register were acknowledged when that could still be lost.
    pub fn losable(&self, register: &str) -> u64 {
        let Some(window) = &self.window else { return 0 };
        let ops = self.registers.get(register).into_iter().flatten();
        ops.filter(|op| op.set.is_some() && op.ended.is_some_and(|ended| window.contains(&ended))).count() as u64
    }

    /// Somebody was told, or saw, that version `version` of an entry was written by `id`.
    pub fn saw_entry(&mut self, key: &str, version: u64, id: u64) {
        self.seen.insert(id);
        // A version counts the writes of an entry, so it comes again when some of them are lost.
        if self.window.is_none()
            && let Some(other) = self.entries.insert((key.to_owned(), version), id)
            && other != id
        {
            self.problem(Problem::Reused, format!("version {version} of {key} belongs to writes {other} and {id}"));
        }
    }

    /// Adds an operation of a register.
    pub fn op(&mut self, register: &str, op: Op) {
        if let Some(ops) = self.registers.get_mut(register) {
            ops.push(op);
        } else {
            self.registers.insert(register.to_owned(), vec![op]);
        }
    }

    /// Somebody was told, or saw, that the put of `id` under `key` has this version and expiry.
    pub fn saw(&mut self, key: &Key, id: u64, version: &Version, expires_at: Option<StoreTime>) {
        self.seen.insert(id);
        match self.versions.get(version) {
            None => {
                self.versions.insert(version.clone(), (key.clone(), id));
            }
            Some((other, other_id)) if (other, *other_id) != (key, id) => {
                let said = format!("{version:?} belongs to write {other_id} of {other:?} and to write {id} of {key:?}");
                self.problem(Problem::Reused, said);
            }
            Some(_) => {}
        }
        match self.puts.get(&(key.clone(), id)) {
            None => {
                self.puts.insert((key.clone(), id), Put { version: version.clone(), expires_at });
            }
            Some(put) if put.version != *version => {
                let said = format!("write {id} of {key:?} got {:?} and {version:?}", put.version);
                self.problem(Problem::Twice, said);
            }
            Some(put) if put.expires_at != expires_at => {
                let said = format!("write {id} of {key:?} expires at {:?} and at {expires_at:?}", put.expires_at);
                self.problem(Problem::Wrong, said);
            }
            Some(_) => {}
        }
    }

    /// Counts an error, and says what it means for the operation.
    pub fn failed(&mut self, error: &Error, allowed: &[Code], doing: &str) -> Lost {
        if !allowed.contains(&error.code()) {
            self.problem(Problem::Error, format!("{doing}: {error:?}"));
        }
        *self.counts.errors.entry(error.code().as_str()).or_default() += 1;
        match error.outcome() {
            Outcome::NotApplied => {
                self.counts.not_applied += 1;
                Lost::NotApplied
            }
            Outcome::Unknown => {
                self.counts.unknown += 1;
                *self.counts.unknown_errors.entry(error.code().as_str()).or_default() += 1;
                Lost::Unknown
            }
        }
    }
}
