//! The node on which a waiter for a lock listens is killed.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zlink_test_faults::party::{Grant, Party, Project};
use zlink_test_faults::report::Row;
use zlink_test_faults::rounds;
use zlink_test_faults::verdict::Counts;
use zlink_test_servers::RedisServer;

use crate::rig::{OPERATION_TIMEOUT, cluster, for_parties, trio, turn};

const WAIT_MS: u64 = 10_000;
const LEASE_MS: u64 = 60_000;
/// Within which a waiter has a lock that was given back, whatever it listens to: its next heartbeat finds it free. Generous.
const SOON: Duration = Duration::from_secs(2);

async fn under_sentinels(party: Party) {
    let _turn = turn().await;
    let mut trio = trio();
    let url = format!("{}?min_acked_replicas=1", trio.url());
    for round in 0..rounds() {
        let (holder, waiter) = (project(party, &url).await, project(party, &url).await);
        let (grant, waiting) = wait(&holder, &waiter, round).await;
        let old = trio.primary();
        listening(|| (0..1).find(|_| listens(trio.server(old)))).await;
        trio.servers()[old].kill().expect("the server does so");
        tokio::task::block_in_place(|| {
            trio.promoted(old);
            trio.servers()[old].restart().expect("the server does so");
            trio.in_step(1);
        });
        served(&grant, waiting).await;
        holder.close().await;
        waiter.close().await;
    }
    row("a waiter's primary killed, sentinels", party);
}

async fn in_a_cluster(party: Party) {
    let _turn = turn().await;
    let mut cluster = cluster();
    let url = format!("{}?min_acked_replicas=1", cluster.url());
    for round in 0..rounds() {
        let (holder, waiter) = (project(party, &url).await, project(party, &url).await);
        let (grant, waiting) = wait(&holder, &waiter, round).await;
        let nodes = cluster.nodes().len();
        let heard = listening(|| (0..nodes).find(|&node| listens(cluster.node(node)))).await;
        // Any slot of that node, if it has one.
        let slot = [0, 6_000, 12_000].into_iter().find(|&slot| cluster.owner(slot) == heard);
        cluster.nodes()[heard].kill().expect("the server does so");
        tokio::task::block_in_place(|| {
            if let Some(slot) = slot {
                cluster.promoted(slot, heard);
            }
            cluster.nodes()[heard].restart().expect("the server does so");
            cluster.settled().expect("the server does so");
        });
        served(&grant, waiting).await;
        holder.close().await;
        waiter.close().await;
    }
    row("a waiter's node killed, Cluster", party);
}

async fn project(party: Party, url: &str) -> Project {
    party.project(url, "waiters", OPERATION_TIMEOUT).await
}

type Waiting = tokio::task::JoinHandle<Grant>;

/// One has the lock, and another one waits for it.
async fn wait(holder: &Project, waiter: &Project, round: u32) -> (Grant, Waiting) {
    let lock = format!("lock/{round}");
    let grant = holder.locks().acquire(&lock, 0, LEASE_MS).await.expect("an answer").expect("a free lock");
    let locks = waiter.locks();
    let waiting = tokio::spawn(async move {
        // As long as it takes: a wait of its own is shorter than some failovers.
        loop {
            if let Some(grant) = locks.acquire(&lock, WAIT_MS, LEASE_MS).await.expect("an acquire") {
                return grant;
            }
        }
    });
    (grant, waiting)
}

/// Whether a waiter's connection is subscribed there.
fn listens(server: &RedisServer) -> bool {
    !server.say(&["PUBSUB", "CHANNELS", "zlink-project:*"]).items().is_empty()
}

async fn listening(which: impl Fn() -> Option<usize>) -> usize {
    let found = async {
        loop {
            match which() {
                Some(found) => return found,
                None => sleep(Duration::from_millis(5)).await,
            }
        }
    };
    timeout(Duration::from_secs(20), found).await.expect("the waiter listens")
}

/// The lock is given back, and the waiter has it.
async fn served(grant: &Grant, waiting: Waiting) {
    assert!(!waiting.is_finished(), "a lock that is held was given to another one");
    assert!(grant.release().await.expect("a release"), "the lease is lost");
    let next = timeout(SOON, waiting).await.expect("the waiter has the lock soon").expect("no panic");
    assert!(next.token > grant.token, "token {} after {}", next.token, grant.token);
    assert!(next.release().await.expect("a release"), "the lease is lost");
}

fn row(fault: &str, party: Party) {
    let acknowledged = u64::from(4 * rounds());
    Row { acknowledged, ..Row::passed(fault, party, &Counts::default()) }.write();
}

for_parties!([core Core, node Node, java Java] [under_sentinels, in_a_cluster]);
