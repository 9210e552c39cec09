//! The load: many clients on several stores that share a key prefix.

mod blobs;
mod location;
mod project;
mod registers;
mod scans;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Code, Condition, Key, Mutation, ReadResult, Retention,
    ScanRequest, ScanResult, WriteRequest, WriteResult,
};

use self::registers::Registers;
use crate::history::{History, Lost};
use crate::party::{Answer, Location, Party, Project, Relocation};
use crate::verdict::{Counts, Problem, judge};

/// Now and then a client pauses, up to so many microseconds, so that the operations come in bursts and several loads have room on
/// one machine.
const PAUSE_US: u64 = 20_000;
/// How much longer than its operation timeout an operation may take on a busy machine.
const SLACK: Duration = Duration::from_secs(3);
/// Retention of whatever has one: nothing expires during a test.
const RETENTION_MS: u64 = 3_600_000;

/// What the load is like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whose stores these are.
    pub party: Party,
    /// The stores' key prefix, and the project's name.
    pub name: &'static str,
    /// The stores' operation timeout.
    pub timeout: Duration,
    /// Clients of Location Stores.
    pub clients: u32,
    /// Clients of Relocation Stores.
    pub blob_clients: u32,
    /// Clients of a project.
    pub project_clients: u32,
    /// How long leases last: longer than any fault, so that none expires while it is held; where a failover may lose that one was
    /// given back, not much longer than an operation and a wait for one.
    pub lease_ms: u64,
    /// Error codes that the fault explains.
    pub allowed: &'static [Code],
    /// Sizes of the blobs, one reference each.
    pub blobs: &'static [usize],
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            party: Party::Core,
            name: "load",
            timeout: Duration::from_secs(5),
            clients: 12,
            blob_clients: 4,
            project_clients: 5,
            lease_ms: 45_000,
            allowed: &[],
            blobs: &[100, 5_000, 300_000, 700_000, 1_700_000],
        }
    }
}

impl Plan {
    /// A plan for the stores of `party`.
    pub fn of(party: Party) -> Self {
        Self { party, ..Self::default() }
    }
}

/// A load under way.
#[derive(Debug)]
pub struct Load {
    at: Arc<Shared>,
    locations: Vec<Location>,
    relocations: Vec<Relocation>,
    projects: Vec<Project>,
    clients: JoinSet<()>,
    probes: AtomicU32,
}

#[derive(Debug)]
struct Shared {
    history: History,
    registers: Registers,
    plan: Plan,
    stop: AtomicBool,
}

/// An operation that was answered, or not.
struct Asked<T> {
    begun: u64,
    ended: u64,
    answer: Result<T, Lost>,
}

impl Load {
    /// Opens the stores on two sets of connections to `url`, and puts the first records.
    ///
    /// # Panics
    /// If that fails.
    pub async fn open(url: &str, plan: Plan) -> Self {
        let and = if url.contains('?') { '&' } else { '?' };
        let names = ["one", "two", "one", "two"].map(|name| format!("{url}{and}client_name={name}"));
        let (party, timeout) = (plan.party, plan.timeout);
        let (mut locations, mut relocations, mut projects) = (Vec::new(), Vec::new(), Vec::new());
        for url in &names {
            locations.push(party.location(url, plan.name, timeout).await);
        }
        for url in &names[..2] {
            relocations.push(party.relocation(url, plan.name, timeout).await);
            projects.push(party.project(url, plan.name, timeout).await);
        }
        let at = Shared { history: History::default(), registers: Registers::new(), plan, stop: AtomicBool::new(false) };
        let clients = JoinSet::new();
        let load = Self { at: Arc::new(at), locations, relocations, projects, clients, probes: AtomicU32::new(0) };
        location::Client::new(u32::MAX, load.locations[0].clone(), Arc::clone(&load.at)).begin().await;
        project::Client::new(u32::MAX, &load.projects[0], Arc::clone(&load.at)).begin().await;
        load
    }

    /// Starts the clients.
    pub fn start(&mut self) {
        for number in 0..self.at.plan.clients {
            let store = self.locations[number as usize % self.locations.len()].clone();
            let client = location::Client::new(number, store, Arc::clone(&self.at));
            self.clients.spawn(client.run());
        }
        for number in 0..self.at.plan.blob_clients {
            let store = self.relocations[number as usize % self.relocations.len()].clone();
            let client = blobs::Client::new(self.at.plan.clients + number, store, Arc::clone(&self.at));
            self.clients.spawn(client.run());
        }
        for number in 0..self.at.plan.project_clients {
            let project = &self.projects[number as usize % self.projects.len()];
            let number = self.at.plan.clients + self.at.plan.blob_clients + number;
            self.clients.spawn(project::Client::new(number, project, Arc::clone(&self.at)).run());
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.at.history.with(|log| log.counts.clone())
    }

    /// The stores.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// The stores of blobs.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// An instant of the history.
    pub fn tick(&self) -> u64 {
        self.at.history.tick()
    }

    /// What was acknowledged within may be lost.
    pub fn may_lose(&self, within: std::ops::RangeInclusive<u64>) {
        self.at.history.with(|log| log.window = Some(within));
    }

    /// Waits until `count` more writes were acknowledged: the load is at work.
    ///
    /// # Panics
    /// If that takes much longer than two operation timeouts.
    pub async fn goes_on(&self, count: u64) {
        let goal = self.counts().acknowledged + count;
        let advanced = async {
            while self.counts().acknowledged < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let limit = 2 * self.at.plan.timeout + 5 * SLACK;
        tokio::time::timeout(limit, advanced).await.unwrap_or_else(|_| panic!("fewer than {count} writes in {limit:?}"));
    }

    /// Each store does one operation of each kind at the first attempt.
    ///
    /// # Panics
    /// If one fails.
    pub async fn works(&self) {
        for (number, store) in self.locations.iter().enumerate() {
            let probe = self.probes.fetch_add(1, Ordering::Relaxed);
            location_works(store, &format!("zz/{number}/{probe}/")).await;
        }
        for (number, store) in self.relocations.iter().enumerate() {
            let probe = self.probes.fetch_add(1, Ordering::Relaxed);
            relocation_works(store, &format!("zz/{number}/{probe}")).await;
        }
        for (number, project) in self.projects.iter().enumerate() {
            let probe = self.probes.fetch_add(1, Ordering::Relaxed);
            project::works(project, &format!("zz/{number}/{probe}")).await;
        }
    }

    /// Each store puts something on each of its lines, in vain or not: a line that is silent shows it then.
    pub async fn tries(&self) {
        let retention = Retention::from_ms(RETENTION_MS).expect("a legal retention");
        for store in &self.locations {
            let _ = store.write(WriteRequest::new().mutation(Mutation::delete(Key::new("zz").expect("a legal key")))).await;
        }
        for store in &self.relocations {
            let reference = BlobReference::new("zz").expect("a legal reference");
            let _ = store.put(reference, value::blob(0, 2, 400_000), retention).await;
        }
    }

    /// Ends the clients, sees that all stores work, judges, and gives the counts back.
    ///
    /// # Panics
    /// If anything is wrong.
    pub async fn finish(mut self, name: &str) -> Counts {
        self.at.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("a client panicked");
        }
        self.works().await;
        for (number, store) in (self.at.plan.clients + 100..).zip(&self.locations) {
            location::Client::new(number, store.clone(), Arc::clone(&self.at)).end().await;
        }
        for (number, store) in (self.at.plan.clients + 200..).zip(&self.relocations) {
            blobs::Client::new(number, store.clone(), Arc::clone(&self.at)).end().await;
        }
        for (number, project) in (self.at.plan.clients + 300..).zip(&self.projects) {
            project::Client::new(number, project, Arc::clone(&self.at)).end().await;
        }
        let in_flight: usize = self.locations.iter().map(Location::in_flight).sum();
        let blobs_in_flight: usize = self.relocations.iter().map(Relocation::in_flight).sum();
        assert_eq!((in_flight, blobs_in_flight), (0, 0), "operations in flight when nobody waits");
        let closed = async {
            for store in &self.locations {
                store.close().await;
            }
            for store in &self.relocations {
                store.close().await;
            }
            for project in &self.projects {
                project.close().await;
            }
        };
        tokio::time::timeout(self.at.plan.timeout + SLACK, closed).await.expect("closing hangs");
        judge(name, self.at.plan.party, &self.at.history)
    }
}

impl Shared {
    /// Whether a client goes on, after a pause perhaps.
    async fn goes_on(&self, random: &mut fastrand::Rng) -> bool {
        if random.u8(..4) == 0 {
            tokio::time::sleep(Duration::from_micros(random.u64(..PAUSE_US))).await;
        }
        !self.stop.load(Ordering::SeqCst)
    }

    /// Does one operation, and writes down how it failed if it did.
    async fn ask<T>(&self, doing: &str, operation: Answer<T>) -> Asked<T> {
        self.ask_for(Duration::ZERO, doing, operation).await
    }

    /// An operation that may wait so much longer than its timeout.
    async fn ask_for<T>(&self, longer: Duration, doing: &str, operation: Answer<T>) -> Asked<T> {
        let begun = self.history.tick();
        let answer = tokio::time::timeout(longer + self.plan.timeout + SLACK, operation).await;
        let ended = self.history.tick();
        let answer = match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.history.with(|log| log.failed(&error, self.plan.allowed, doing))),
            Err(_) => {
                self.history.problem(Problem::Hung, doing.to_owned());
                Err(Lost::Unknown)
            }
        };
        Asked { begun, ended, answer }
    }
}

async fn location_works(store: &Location, prefix: &str) {
    let key = Key::new(format!("{prefix}a")).expect("a legal key");
    let create = WriteRequest::new()
        .condition(Condition::Missing { key: key.clone() })
        .mutation(Mutation::put(key.clone(), "first"))
        .mutation(Mutation::put(Key::new(format!("{prefix}b")).expect("a legal key"), "second"));
    let applied = store.write(create).await.expect("a write after the fault");
    let WriteResult::Applied { put_versions, .. } = applied else { panic!("a conflict of a new key: {applied:?}") };
    let read = store.read(key.clone()).await.expect("a read after the fault");
    assert!(matches!(&read, ReadResult::Found(value) if value.version == put_versions[0].version), "{read:?}");
    let scanned = store.scan(ScanRequest::new(prefix, 1)).await.expect("a scan after the fault");
    let ScanResult::Page(page) = scanned else { panic!("a scan expired") };
    let next = ScanRequest::new(prefix, 1).after(page.next_cursor.expect("another page"));
    let scanned = store.scan(next).await.expect("a second page after the fault");
    assert!(matches!(&scanned, ScanResult::Page(page) if page.items.len() == 1), "{scanned:?}");
    let expected = put_versions[0].version.clone();
    let delete = WriteRequest::new().condition(Condition::Version { key: key.clone(), expected }).mutation(Mutation::delete(key));
    let deleted = store.write(delete).await.expect("a delete after the fault");
    assert!(matches!(deleted, WriteResult::Applied { .. }), "{deleted:?}");
}

async fn relocation_works(store: &Relocation, reference: &str) {
    let reference = BlobReference::new(reference).expect("a legal reference");
    let retention = Retention::from_ms(RETENTION_MS).expect("a legal retention");
    let bytes = value::blob(0, 1, 400_000);
    let put = store.put(reference.clone(), bytes.clone(), retention).await.expect("a blob put after the fault");
    assert!(matches!(put, BlobPutResult::Stored { .. }), "{put:?}");
    let read = store.read(reference.clone()).await.expect("a blob read after the fault");
    assert!(matches!(read, BlobReadResult::Found { bytes: read, .. } if read == bytes), "a blob read is wrong");
    let renewed = store.renew(reference.clone(), retention).await.expect("a blob renewal after the fault");
    assert!(matches!(renewed, BlobRenewResult::Renewed { .. }), "{renewed:?}");
    store.delete(reference).await.expect("a blob delete after the fault");
}
