//! A client of a Location Store.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use zlink_store::{Condition, Mutation, PutVersion, ReadResult, Retention, StoreTime, Version, WriteRequest, WriteResult};

use super::registers::{OPENING, Purpose};
use super::value::{Said, said, value};
use super::{Asked, RETENTION_MS, Shared};
use crate::history::Lost;
use crate::linear::{Guard, Op, State};
use crate::party::Location;
use crate::verdict::Problem;

pub(super) struct Client {
    number: u32,
    pub(super) store: Location,
    pub(super) at: Arc<Shared>,
    pub(super) random: fastrand::Rng,
    /// What it saw last of each register.
    known: HashMap<usize, Seen>,
}

#[derive(Clone)]
struct Seen {
    place: usize,
    said: Said,
    version: Version,
}

/// What one commit does to one register.
struct Change {
    register: usize,
    expected: Expected,
    /// The number to put; `None` deletes.
    put: Option<u64>,
}

enum Expected {
    Anything,
    Nothing,
    Seen(Seen),
}

impl Expected {
    fn guard(&self) -> Guard {
        match self {
            Self::Anything => Guard::Any,
            Self::Nothing => Guard::Is(None),
            Self::Seen(seen) => Guard::Is(Some(seen.said.id)),
        }
    }
}

impl Client {
    pub(super) fn new(number: u32, store: Location, at: Arc<Shared>) -> Self {
        Self { number, store, at, random: fastrand::Rng::with_seed(u64::from(number)), known: HashMap::new() }
    }

    /// Puts what must be there before the load.
    pub(super) async fn begin(mut self) {
        for (purpose, number) in [(Purpose::Counter, 0), (Purpose::Account, OPENING)] {
            for register in self.at.registers.of(purpose) {
                let change = Change { register, expected: Expected::Nothing, put: Some(number) };
                assert!(self.write(vec![change]).await, "the first records could not be put");
            }
        }
    }

    pub(super) async fn run(mut self) {
        while self.at.goes_on(&mut self.random).await {
            self.step().await;
        }
    }

    async fn step(&mut self) {
        let at = Arc::clone(&self.at);
        let any = |client: &mut Self, purpose| {
            let all = at.registers.of(purpose);
            all[client.random.usize(..all.len())]
        };
        let free = any(self, Purpose::Free);
        match self.random.u8(..20) {
            0..=2 => self.change(free, Expected::Anything, Some(0)).await,
            3..=5 => self.replace(free, Some(0)).await,
            6 | 7 => self.change(free, Expected::Nothing, Some(0)).await,
            8 => self.change(free, Expected::Anything, None).await,
            9 => self.replace(free, None).await,
            10 | 11 => {
                let counter = any(self, Purpose::Counter);
                self.increment(counter).await;
            }
            12 | 13 => {
                let (from, to) = (any(self, Purpose::Account), any(self, Purpose::Account));
                self.transfer(from, to).await;
            }
            14 => {
                let prefix = if self.random.bool() { "group/" } else { "bank/" };
                self.scan(prefix).await;
            }
            15 => self.scan("").await,
            _ => {
                let wanted = (0..self.random.usize(1..=4)).map(|_| self.random.usize(..at.registers.all.len())).collect();
                self.read(wanted).await;
            }
        }
    }

    async fn change(&mut self, register: usize, expected: Expected, put: Option<u64>) {
        self.write(vec![Change { register, expected, put }]).await;
    }

    /// Replaces or deletes what was seen last.
    async fn replace(&mut self, register: usize, put: Option<u64>) {
        if !self.known.contains_key(&register) {
            self.read(vec![register]).await;
        }
        if let Some(seen) = self.known.get(&register).cloned() {
            self.change(register, Expected::Seen(seen), put).await;
        }
    }

    async fn increment(&mut self, register: usize) {
        self.read(vec![register]).await;
        let Some(seen) = self.known.get(&register).cloned() else { return };
        let put = Some(seen.said.number + 1);
        self.write(vec![Change { register, expected: Expected::Seen(seen), put }]).await;
    }

    async fn transfer(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        self.read(vec![from, to]).await;
        let (Some(rich), Some(poor)) = (self.known.get(&from).cloned(), self.known.get(&to).cloned()) else { return };
        let amount = self.random.u64(0..=rich.said.number.min(50));
        let (less, more) = (rich.said.number - amount, poor.said.number + amount);
        self.write(vec![
            Change { register: from, expected: Expected::Seen(rich), put: Some(less) },
            Change { register: to, expected: Expected::Seen(poor), put: Some(more) },
        ])
        .await;
    }

    /// One commit; whether it was applied.
    async fn write(&mut self, changes: Vec<Change>) -> bool {
        let at = Arc::clone(&self.at);
        let id = at.history.new_id();
        let mut request = WriteRequest::new();
        for change in &changes {
            let register = &at.registers.all[change.register];
            match &change.expected {
                Expected::Anything => {}
                Expected::Nothing => {
                    let missing = register.keys.iter().map(|key| Condition::Missing { key: key.clone() });
                    request.conditions.extend(missing);
                }
                Expected::Seen(seen) => {
                    let key = register.keys[seen.place].clone();
                    request.conditions.push(Condition::Version { key, expected: seen.version.clone() });
                }
            }
            request.mutations.extend(register.keys.iter().map(|key| match change.put {
                None => Mutation::delete(key.clone()),
                Some(number) => {
                    let bytes = value(key, Said { id, number }, register.size);
                    Mutation::Put { key: key.clone(), bytes, retention: retention(id) }
                }
            }));
        }
        let Asked { begun, ended, answer } = at.ask("a write", self.store.write(request)).await;
        changes.iter().for_each(|change| drop(self.known.remove(&change.register)));
        match answer {
            Ok(WriteResult::Applied { put_versions, store_now }) => {
                at.history.with(|log| log.counts.acknowledged += 1);
                self.applied(id, &changes, put_versions, store_now);
                self.log_changes(id, &changes, begun, Some(ended));
                return true;
            }
            Ok(WriteResult::Conflict { .. }) => self.conflict(id, &changes, begun, ended),
            Err(Lost::NotApplied) => {
                at.history.with(|log| log.refused.insert(id, "an error said notApplied".to_owned()));
            }
            Err(Lost::Unknown) => self.log_changes(id, &changes, begun, None),
        }
        false
    }

    fn log_changes(&self, id: u64, changes: &[Change], begun: u64, ended: Option<u64>) {
        let client = self.number;
        self.at.history.with(|log| {
            for change in changes {
                let register = &self.at.registers.all[change.register];
                let set: State = change.put.map(|_| id);
                log.op(&register.name, Op { client, guard: change.expected.guard(), set: Some(set), begun, ended });
                if register.purpose == Purpose::Counter && change.put != Some(0) {
                    let tally = log.counters.entry(register.name.clone()).or_default();
                    *(if ended.is_some() { &mut tally.applied } else { &mut tally.unknown }) += 1;
                }
            }
        });
    }

    fn conflict(&self, id: u64, changes: &[Change], begun: u64, ended: u64) {
        self.at.history.with(|log| {
            log.counts.conflicts += 1;
            log.refused.insert(id, "the answer was a conflict".to_owned());
            // Of several conditions nobody knows which did not hold.
            let [change] = changes else { return };
            let register = &self.at.registers.all[change.register].name;
            match change.expected.guard() {
                Guard::Is(state) => {
                    log.op(register, Op { client: self.number, guard: Guard::Not(state), set: None, begun, ended: Some(ended) });
                }
                _ => log.problem(Problem::Wrong, format!("a conflict without a condition, on {register}")),
            }
        });
    }

    /// Takes down the versions of the puts, which come in the order of the puts.
    fn applied(&mut self, id: u64, changes: &[Change], put_versions: Vec<PutVersion>, store_now: StoreTime) {
        let mut versions = put_versions.into_iter();
        let puts = changes.iter().filter_map(|change| change.put.map(|number| (change.register, number)));
        for (register, number) in puts {
            let keys = &self.at.registers.all[register].keys;
            for (place, key) in keys.iter().enumerate() {
                let version = versions.next().filter(|version| version.key == *key).map(|version| version.version);
                let Some(version) = version else {
                    return self.at.history.problem(Problem::Wrong, format!("no version of {key:?} in an answer"));
                };
                let expires_at = retention(id).map(|retention| store_now.plus(retention));
                self.at.history.with(|log| log.saw(key, id, &version, expires_at));
                self.known.insert(register, Seen { place, said: Said { id, number }, version });
            }
        }
        if versions.next().is_some() {
            self.at.history.problem(Problem::Wrong, "more versions than puts in an answer".to_owned());
        }
    }

    /// Reads one key of each of these registers at once.
    async fn read(&mut self, wanted: Vec<usize>) {
        let at = Arc::clone(&self.at);
        let places: Vec<_> =
            wanted.into_iter().map(|register| (register, self.random.usize(..at.registers.all[register].keys.len()))).collect();
        let reads = places.iter().map(|&(register, place)| {
            let key = at.registers.all[register].keys[place].clone();
            at.ask("a read", self.store.read(key))
        });
        let answers = join_all(reads).await;
        for ((register, place), Asked { begun, ended, answer }) in places.into_iter().zip(answers) {
            let Ok(answer) = answer else { continue };
            at.history.with(|log| log.counts.read += 1);
            let state = match answer {
                ReadResult::Missing { .. } => {
                    self.known.remove(&register);
                    None
                }
                ReadResult::Found(found) => {
                    let key = &at.registers.all[register].keys[place];
                    let Some(said) = self.look(register, key, &found.bytes, &found.version, found.expires_at) else { continue };
                    self.known.insert(register, Seen { place, said, version: found.version });
                    Some(said.id)
                }
            };
            self.saw(register, state, begun, ended);
        }
    }

    /// Checks a value that was read.
    pub(super) fn look(
        &self,
        register: usize,
        key: &zlink_store::Key,
        bytes: &bytes::Bytes,
        version: &Version,
        expires_at: Option<StoreTime>,
    ) -> Option<Said> {
        let size = self.at.registers.all[register].size;
        let Some(said) = said(key, bytes, size).filter(|said| self.at.history.knows(said.id)) else {
            self.at.history.problem(Problem::Wrong, format!("{key:?} holds what nobody wrote"));
            return None;
        };
        self.at.history.with(|log| log.saw(key, said.id, version, expires_at));
        Some(said)
    }

    pub(super) fn saw(&self, register: usize, state: State, begun: u64, ended: u64) {
        let name = &self.at.registers.all[register].name;
        let op = Op { client: self.number, guard: Guard::Is(state), set: None, begun, ended: Some(ended) };
        self.at.history.with(|log| log.op(name, op));
    }

    /// Looks at everything, and at the counters' numbers.
    pub(super) async fn end(mut self) {
        let at = Arc::clone(&self.at);
        self.read((0..at.registers.all.len()).collect()).await;
        let scanned = self.pages("", 1_000, usize::MAX).await.expect("a scan of everything");
        self.scanned("", &scanned);
        for register in at.registers.of(Purpose::Counter) {
            let name = &at.registers.all[register].name;
            let number = self.known.get(&register).map_or(0, |seen| seen.said.number);
            at.history.with(|log| {
                let tally = log.counters.get(name).copied().unwrap_or_default();
                let said = format!("{name} is {number} after {} increments and {} unknown ones", tally.applied, tally.unknown);
                if number + log.losable(name) < tally.applied {
                    log.problem(Problem::Lost, said);
                } else if number > tally.applied + tally.unknown {
                    log.problem(Problem::Twice, said);
                }
            });
        }
    }
}

/// Some writes have one.
fn retention(id: u64) -> Option<Retention> {
    id.is_multiple_of(3).then(|| Retention::from_ms(RETENTION_MS).expect("a legal retention"))
}
