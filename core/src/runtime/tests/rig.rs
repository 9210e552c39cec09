//! A provider that fails on demand, and short ways to say things.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::LocationStore;
use crate::ambient;
use crate::background;
use crate::contract::*;
use crate::runtime::record::{LeaseRecord, OwnerId, Record};
use crate::runtime::*;

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Fails(Code),
    Panics,
    NeverAnswers,
    /// It is applied, and its answer is lost.
    AnswerLost,
    /// It is not applied, and nobody knows.
    RequestLost,
}

/// A Location Store in memory that counts, fails on demand, and is a Relocation Store too.
pub(super) struct Provider {
    pub(super) store: LocationStore,
    pub(super) reads: AtomicUsize,
    pub(super) writes: AtomicUsize,
    pub(super) scans: AtomicUsize,
    pub(super) closed: AtomicUsize,
    /// Calls whose futures were dropped before their end.
    pub(super) left: Arc<AtomicUsize>,
    /// Goes wrong with each call, or with the next write only.
    pub(super) fault: Mutex<Option<Fault>>,
    pub(super) next_write: Mutex<Option<Fault>>,
    pub(super) close_fault: Mutex<Option<Fault>>,
    /// How far the clock that scans tell is ahead, in ms.
    pub(super) ahead: AtomicU64,
}

impl Provider {
    pub(super) fn on(store: LocationStore) -> Arc<Self> {
        Arc::new(Self {
            store,
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            scans: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            left: Arc::default(),
            fault: Mutex::default(),
            next_write: Mutex::default(),
            close_fault: Mutex::default(),
            ahead: AtomicU64::new(0),
        })
    }

    pub(super) fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock() = fault;
    }

    fn go<T: Send + 'static>(
        &self,
        fault: Option<Fault>,
        call: BoxFuture<'static, Result<T, Error>>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let left = Left(Some(Arc::clone(&self.left)));
        let lost = || Err(Error::new(Code::Unavailable, Outcome::Unknown, "the answer was lost"));
        async move {
            let mut left = left;
            let result = match fault {
                None => call.await,
                Some(Fault::Fails(code)) => Err(Error::new(code, Outcome::NotApplied, "on demand")),
                Some(Fault::Panics) => panic!("on demand"),
                Some(Fault::NeverAnswers) => std::future::pending().await,
                Some(Fault::AnswerLost) => call.await.and_then(|_| lost()),
                Some(Fault::RequestLost) => lost(),
            };
            left.0 = None;
            result
        }
        .boxed()
    }
}

struct Left(Option<Arc<AtomicUsize>>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(left) = &self.0 {
            left.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl LocationProvider for Provider {
    fn name(&self) -> String {
        "the test's provider".to_owned()
    }

    fn read(&self, key: Key) -> BoxFuture<'static, Result<ReadResult, Error>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.go(*self.fault.lock(), self.store.read(key).boxed())
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'static, Result<WriteResult, Error>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        let once = self.next_write.lock().take();
        self.go(once.or(*self.fault.lock()), self.store.write(request).boxed())
    }

    fn scan(&self, request: ScanRequest) -> BoxFuture<'static, Result<ScanResult, Error>> {
        self.scans.fetch_add(1, Ordering::SeqCst);
        let ahead = self.ahead.load(Ordering::SeqCst);
        let scan = self.store.scan(request).map(move |result| {
            result.map(|result| match result {
                ScanResult::Page(page) => {
                    ScanResult::Page(ScanPage { store_now: StoreTime::from_unix_ms(page.store_now.unix_ms() + ahead), ..page })
                }
                ScanResult::Expired => ScanResult::Expired,
            })
        });
        self.go(*self.fault.lock(), scan.boxed())
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        self.go(*self.close_fault.lock(), async { Ok(()) }.boxed())
    }
}

impl RelocationProvider for Provider {
    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        LocationProvider::close(self)
    }
}

/// Times at which nothing runs out while a test runs, unless it waits for that.
pub(super) fn long() -> LocationRuntimeOptions {
    LocationRuntimeOptions {
        owner_lease_ttl: Duration::from_secs(120),
        renew_interval: Duration::from_millis(100),
        renew_timeout: Duration::from_secs(10),
        fencing_margin: Duration::from_secs(5),
        polling_interval: Duration::from_millis(20),
        operation_timeout: Duration::from_secs(30),
    }
}

/// The times of `long`, with operations that are over soon.
pub(super) fn hasty() -> LocationRuntimeOptions {
    LocationRuntimeOptions { renew_timeout: Duration::from_millis(200), operation_timeout: Duration::from_millis(200), ..long() }
}

/// A private store in memory.
pub(super) fn store() -> LocationStore {
    LocationStore::open("memory:", Default::default()).unwrap()
}

pub(super) fn options(provider: &Arc<Provider>, times: LocationRuntimeOptions) -> FrameworkOptions {
    let mut options = FrameworkOptions::new();
    let location: Arc<dyn LocationProvider> = Arc::clone(provider) as _;
    options.add_location_store(location).unwrap().set_location_options(times);
    options
}

/// A runtime on `store`, and its provider.
pub(super) async fn started(store: &LocationStore, times: LocationRuntimeOptions) -> (LocationRuntime, Arc<Provider>) {
    let provider = Provider::on(store.clone());
    (LocationRuntime::start(options(&provider, times)).await.unwrap(), provider)
}

pub(super) fn node(mesh: &str, rid: &str) -> NodeId {
    NodeId { mesh_name: MeshName::new(mesh).unwrap(), node_rid: RoutingId::parse(rid).unwrap() }
}

pub(super) fn described(node: NodeId) -> NodeDescriptor {
    NodeDescriptor {
        node,
        endpoint: NodeEndpoint::new("tcp://here:1").unwrap(),
        role: Role::new("server").unwrap(),
        draining: false,
        state: NodeState::Ready,
        weight: 1,
    }
}

/// A runtime that has published the node `mesh`/`rid`.
pub(super) async fn with_node(store: &LocationStore, rid: &str) -> (LocationRuntime, Arc<Provider>, NodeId) {
    let (runtime, provider) = started(store, long()).await;
    let node = node("mesh", rid);
    assert_eq!(runtime.publish_node(described(node.clone())).await.unwrap(), PublishResult::Published);
    (runtime, provider, node)
}

pub(super) fn actor(id: &str) -> ObjectId {
    ObjectId { kind: ObjectKind::Actor, global_id: GlobalId::new(id).unwrap() }
}

pub(super) fn a_type() -> StableType {
    StableType::new("Type").unwrap()
}

pub(super) async fn reserved(runtime: &LocationRuntime, id: ObjectId, node: &NodeId) -> ObjectClaim {
    match runtime.reserve(id, a_type(), node.clone()).await.unwrap() {
        ReserveResult::Reserved(claim) => claim,
        ReserveResult::Exists(entry) => panic!("{entry:?}"),
    }
}

pub(super) async fn active(runtime: &LocationRuntime, id: ObjectId, node: &NodeId) -> ObjectClaim {
    let claim = reserved(runtime, id, node).await;
    assert_eq!(runtime.commit(claim.clone()).await.unwrap(), ClaimResult::Done);
    claim
}

pub(super) async fn find(runtime: &LocationRuntime, id: &ObjectId) -> Option<ObjectEntry> {
    match id.kind {
        ObjectKind::Actor => runtime.find_actor_location(id.global_id.clone()).await.unwrap(),
        _ => runtime.find_spot_location(id.global_id.clone()).await.unwrap(),
    }
}

pub(super) fn owner(runtime: &LocationRuntime) -> OwnerId {
    runtime.0.core.lease.owner
}

fn lease_key(owner: OwnerId) -> Key {
    keys::lease(owner).unwrap()
}

pub(super) async fn lease_generation(store: &LocationStore, owner: OwnerId) -> Option<u64> {
    match store.read(lease_key(owner)).await.unwrap() {
        ReadResult::Missing { .. } => None,
        ReadResult::Found(value) => Some(LeaseRecord::decode(&value.bytes).unwrap().generation),
    }
}

/// As if the lease had run out.
pub(super) async fn end_lease(store: &LocationStore, owner: OwnerId) {
    store.write(WriteRequest::new().mutation(Mutation::delete(lease_key(owner)))).await.unwrap();
}

/// A runtime that is gone as if its process had died, its lease with it.
pub(super) async fn killed(store: &LocationStore, runtime: LocationRuntime) {
    let owner = owner(&runtime);
    // The keeper may be in the middle of a renewal, which must not come after the end of the lease.
    runtime.0.core.stopping.cancel();
    drop(runtime);
    end_lease(store, owner).await;
}

/// Waits until this holds.
pub(super) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = ambient::monotonic() + Duration::from_secs(60);
    while !holds().await {
        assert!(ambient::monotonic() < deadline, "never: {what}");
        background::sleep_until(ambient::monotonic() + Duration::from_millis(5)).await;
    }
}

/// Runs `test` on the stores' own threads.
pub(super) fn run(test: impl Future<Output = ()> + Send + 'static) {
    background::handle().block_on(test);
}
