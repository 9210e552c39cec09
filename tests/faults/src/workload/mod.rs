//! The load: many clients on several stores that share a key prefix.

mod blobs;
mod location;
mod registers;
mod scans;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Code, Condition, Key, KeyPrefix, LocationStore, Mutation,
    Operation, ReadResult, RelocationStore, Retention, ScanRequest, ScanResult, StoreOptions, WriteRequest, WriteResult,
};

use self::registers::Registers;
use crate::history::{History, Lost};
use crate::verdict::{Counts, Problem, judge};

/// How much longer than its operation timeout an operation may take on a busy machine.
const SLACK: Duration = Duration::from_secs(3);
/// Retention of whatever has one: nothing expires during a test.
const RETENTION_MS: u64 = 3_600_000;

/// What the load is like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The stores' operation timeout.
    pub timeout: Duration,
    /// Clients of Location Stores.
    pub clients: u32,
    /// Clients of Relocation Stores.
    pub blob_clients: u32,
    /// Error codes that the fault explains.
    pub allowed: &'static [Code],
    /// Sizes of the blobs, one reference each.
    pub blobs: &'static [usize],
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            clients: 12,
            blob_clients: 4,
            allowed: &[],
            blobs: &[100, 5_000, 300_000, 700_000, 1_700_000],
        }
    }
}

/// A load under way.
#[derive(Debug)]
pub struct Load {
    at: Arc<Shared>,
    locations: Vec<LocationStore>,
    relocations: Vec<RelocationStore>,
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
        let options = || StoreOptions {
            key_prefix: KeyPrefix::new("load").expect("a legal prefix"),
            operation_timeout_ms: u64::try_from(plan.timeout.as_millis()).expect("a legal timeout"),
        };
        let locations = names.iter().map(|url| LocationStore::open(url, options()).expect("a legal URL")).collect();
        let relocations = names[..2].iter().map(|url| RelocationStore::open(url, options()).expect("a legal URL")).collect();
        let at = Shared { history: History::default(), registers: Registers::new(), plan, stop: AtomicBool::new(false) };
        let load = Self { at: Arc::new(at), locations, relocations, clients: JoinSet::new(), probes: AtomicU32::new(0) };
        location::Client::new(u32::MAX, load.locations[0].clone(), Arc::clone(&load.at)).begin().await;
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
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.at.history.with(|log| log.counts.clone())
    }

    /// The stores.
    pub fn locations(&self) -> &[LocationStore] {
        &self.locations
    }

    /// The stores of blobs.
    pub fn relocations(&self) -> &[RelocationStore] {
        &self.relocations
    }

    /// Waits until `count` more writes were acknowledged: the load is at work.
    ///
    /// # Panics
    /// If that takes longer than two operation timeouts.
    pub async fn goes_on(&self, count: u64) {
        let goal = self.counts().acknowledged + count;
        let advanced = async {
            while self.counts().acknowledged < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let limit = 2 * self.at.plan.timeout + SLACK;
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
        let in_flight: usize = self.locations.iter().map(|store| store.stats().in_flight).sum();
        let blobs_in_flight: usize = self.relocations.iter().map(|store| store.stats().in_flight).sum();
        assert_eq!((in_flight, blobs_in_flight), (0, 0), "operations in flight when nobody waits");
        let closed = async {
            for store in &self.locations {
                store.close().await;
            }
            for store in &self.relocations {
                store.close().await;
            }
        };
        tokio::time::timeout(self.at.plan.timeout + SLACK, closed).await.expect("closing hangs");
        judge(name, &self.at.history)
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Does one operation, and writes down how it failed if it did.
    async fn ask<T: 'static>(&self, doing: &str, operation: Operation<T>) -> Asked<T> {
        let begun = self.history.tick();
        let answer = tokio::time::timeout(self.plan.timeout + SLACK, operation).await;
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

async fn location_works(store: &LocationStore, prefix: &str) {
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

async fn relocation_works(store: &RelocationStore, reference: &str) {
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
