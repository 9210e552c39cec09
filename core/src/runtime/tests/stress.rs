//! Nodes that die at random under load: never two owners at once, and generations only grow.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use zlink_test_servers::RedisServer;

use super::rig::*;
use crate::ambient;
use crate::contract::Code;
use crate::runtime::record::OwnerId;
use crate::runtime::*;
use crate::{LocationStore, StoreOptions, background};

const NODES: usize = 3;
const OBJECTS: usize = 32;
/// How many workers share the objects in each seat.
const SHARES: usize = 4;

/// An object generation, an owner generation, and who had them.
type Hold = ((u64, u64), OwnerId);

/// Who says now that an object is theirs, and the largest generations that anybody had of it.
#[derive(Default)]
struct Truth {
    seen: Mutex<HashMap<String, Hold>>,
    takeovers: AtomicUsize,
    deaths: AtomicUsize,
}

impl Truth {
    /// A hold: larger than every one before, in object generation or in owner generation; or the same runtime's as before.
    fn held(&self, claim: &ObjectClaim, owner: OwnerId) {
        let mut seen = self.seen.lock();
        let now = (claim.object_generation, claim.owner_generation);
        let before = seen.insert(claim.id.global_id.as_str().to_owned(), (now, owner));
        let grows = before.is_none_or(|(before, by)| before < now || (before == now && by == owner));
        assert!(grows, "{before:?} then {now:?} of {owner:?}");
    }
}

/// A node as the test's world sees it: its runtime, and what it thinks it holds.
#[derive(Default)]
struct Seat {
    now: Mutex<Option<(LocationRuntime, NodeId)>>,
    claims: Mutex<HashMap<String, ObjectClaim>>,
}

fn dice(below: usize) -> usize {
    let bytes = ambient::random::<8>(&*ambient::system());
    usize::try_from(u64::from_le_bytes(bytes) % below as u64).unwrap()
}

/// Times at which a dead node's lease runs out soon, and a live one's does not under load.
fn times() -> LocationRuntimeOptions {
    LocationRuntimeOptions {
        owner_lease_ttl: Duration::from_millis(1_500),
        renew_interval: Duration::from_millis(100),
        renew_timeout: Duration::from_millis(600),
        fencing_margin: Duration::from_millis(300),
        polling_interval: Duration::from_millis(50),
        operation_timeout: Duration::from_secs(5),
    }
}

async fn sit_down(store: &LocationStore, seat: &Seat, place: usize) {
    let (runtime, _) = started(store, times()).await;
    let id = node("mesh", &format!("n{place}-{}", dice(1 << 40)));
    until("published", || async { runtime.publish_node(described(id.clone())).await.is_ok() }).await;
    *seat.now.lock() = Some((runtime, id));
}

/// One random step on one random object. What fails because a lease is lost, or a node just died, is no fault.
///
/// In each seat an object is one worker's, so that what the runtime answers and what is noted of it come in the same order.
async fn step(worker: usize, seats: &[Seat], truth: &Truth) {
    let seat = &seats[worker % NODES];
    let Some((runtime, node)) = seat.now.lock().clone() else { return };
    let id = actor(&format!("o{}", dice(OBJECTS / SHARES) * SHARES + worker / NODES));
    let name = id.global_id.as_str().to_owned();
    let mine = seat.claims.lock().get(&name).cloned();
    let taken = |claim: ObjectClaim| {
        let same = seat.claims.lock().insert(name.clone(), claim.clone()).is_some_and(|before| before == claim);
        if !same {
            truth.held(&claim, owner(&runtime));
        }
    };
    let result = match (mine, dice(10)) {
        (None, 0..=4) => runtime.take_over(id.clone(), node.clone()).await.map(|result| {
            if let TakeResult::Taken { claim, .. } = result {
                truth.takeovers.fetch_add(1, Ordering::SeqCst);
                taken(claim);
            }
        }),
        (None, _) => runtime.reserve(id.clone(), a_type(), node.clone()).await.map(|result| {
            if let ReserveResult::Reserved(claim) = result {
                taken(claim);
            }
        }),
        (Some(claim), 0..=5) => runtime.commit(claim).await.map(drop),
        (Some(claim), 6..=7) => {
            let target = seats[dice(NODES)].now.lock().as_ref().map(|(_, node)| node.clone());
            match target.filter(|target| *target != claim.node) {
                Some(target) => runtime.move_to(claim, target).await.map(drop),
                None => Ok(()),
            }
        }
        (Some(claim), _) => {
            let ended = runtime.release(claim).await;
            ended.map(drop)
        }
    };
    if let Err(error) = result {
        assert!(matches!(error.code(), Code::Unavailable | Code::Closed | Code::InvalidArgument), "{error}");
    }
    // What the runtime does not hold any more is forgotten.
    let held = seat.claims.lock().get(&name).cloned();
    if held.is_some_and(|claim| !runtime.is_owner(&claim)) {
        seat.claims.lock().remove(&name);
    }
}

/// Whoever says that an object is theirs says it alone.
fn one_owner_each(seats: &[Seat]) {
    let claims: Vec<_> = seats
        .iter()
        .filter_map(|seat| {
            let runtime = seat.now.lock().as_ref().map(|(runtime, _)| runtime.clone())?;
            Some((runtime, seat.claims.lock().values().cloned().collect::<Vec<_>>()))
        })
        .collect();
    for (place, (runtime, mine)) in claims.iter().enumerate() {
        for claim in mine {
            for (other, theirs) in &claims[place + 1..] {
                for their in theirs.iter().filter(|their| their.id == claim.id) {
                    // An owner's answer is asked for again after the other's: that both said yes in turn is no overlap.
                    let both = runtime.is_owner(claim) && other.is_owner(their) && runtime.is_owner(claim);
                    assert!(!both, "two owners: {claim:?} and {their:?}");
                }
            }
        }
    }
}

#[test]
fn in_memory_no_object_has_two_owners_while_nodes_die() {
    nodes_die_under_load(store());
}

#[test]
fn in_a_folder_no_object_has_two_owners_while_nodes_die() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("data").display());
    nodes_die_under_load(LocationStore::open(url.as_str(), Default::default()).unwrap());
}

#[test]
fn on_redis_no_object_has_two_owners_while_nodes_die() {
    let server = RedisServer::start(&[]).unwrap();
    let options = StoreOptions::with_prefix("runtime").unwrap();
    nodes_die_under_load(LocationStore::open(server.url().as_str(), options).unwrap());
}

/// For some seconds, or as many as `ZLINK_RUNTIME_SECONDS` says.
fn nodes_die_under_load(store: LocationStore) {
    let seconds = std::env::var("ZLINK_RUNTIME_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    run(async move {
        let seats: Arc<Vec<Seat>> = Arc::new(std::iter::repeat_with(Seat::default).take(NODES).collect());
        let truth = Arc::new(Truth::default());
        let over = Arc::new(AtomicBool::new(false));
        for (place, seat) in seats.iter().enumerate() {
            sit_down(&store, seat, place).await;
        }
        let mut work = Vec::new();
        for worker in 0..NODES * SHARES {
            let (seats, truth, over) = (Arc::clone(&seats), Arc::clone(&truth), Arc::clone(&over));
            work.push(tokio::spawn(async move {
                while !over.load(Ordering::SeqCst) {
                    step(worker, &seats, &truth).await;
                    one_owner_each(&seats);
                    tokio::task::yield_now().await;
                }
            }));
        }
        let end = ambient::monotonic() + Duration::from_secs(seconds);
        while ambient::monotonic() < end {
            background::sleep_until(ambient::monotonic() + Duration::from_millis(200 + dice(400) as u64)).await;
            let place = dice(NODES);
            drop(seats[place].now.lock().take());
            seats[place].claims.lock().clear();
            truth.deaths.fetch_add(1, Ordering::SeqCst);
            sit_down(&store, &seats[place], place).await;
        }
        over.store(true, Ordering::SeqCst);
        for worker in work {
            worker.await.unwrap();
        }
        assert!(truth.deaths.load(Ordering::SeqCst) > 1);
        assert!(truth.takeovers.load(Ordering::SeqCst) > 0, "nothing was ever taken over");
    });
}
