//! What the tests share.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use zlink_test_faults::rounds;
use zlink_test_servers::{Cluster, ClusterSettings, RedisServer, SentinelSettings, SentinelTrio, Settings};

/// Room for tests that mostly wait; those that work all the time take more of it.
static ROOM: Semaphore = Semaphore::const_new(6);

/// Waits until there is room on this machine for a test that mostly waits, for a server or for its time to pass.
pub(crate) async fn turn() -> SemaphorePermit<'static> {
    ROOM.acquire().await.expect("it is never closed")
}

/// The same for a test that works all the time.
pub(crate) async fn turn_to_work() -> SemaphorePermit<'static> {
    ROOM.acquire_many(2).await.expect("it is never closed")
}

/// Makes tests of functions: one of each for each party.
macro_rules! for_parties {
    ([$($module:ident $party:ident),+] $tests:tt) => { $( $crate::rig::for_parties!(@ $module $party $tests); )+ };
    (@ $module:ident $party:ident [$($test:ident),+ $(,)?]) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
                async fn $test() {
                    super::$test(zlink_test_faults::party::Party::$party).await;
                }
            )+
        }
    };
}
pub(crate) use for_parties;

/// Of stores beside a load.
pub(crate) const OPERATION_TIMEOUT: Duration = Duration::from_secs(20);

/// A server that nothing is the matter with.
pub(crate) fn server() -> RedisServer {
    RedisServer::with(Settings::default()).expect("a Redis server")
}

/// A server whose acknowledged writes survive a kill.
pub(crate) fn durable_server() -> RedisServer {
    RedisServer::with(Settings { aof: true, ..Settings::default() }).expect("a Redis server")
}

/// A primary and a replica under sentinels. They keep what they acknowledged: after one failover sentinels may take the new primary
/// for down before it has answered their first PING, and promote the old one that has just been started again, as it is.
pub(crate) fn trio() -> SentinelTrio {
    let down_after = Duration::from_secs(2);
    SentinelTrio::with(SentinelSettings { replicas: 1, aof: true, down_after, ..SentinelSettings::default() }).expect("servers")
}

/// A Cluster whose nodes have a replica each, and keep what they acknowledged.
pub(crate) fn cluster() -> Cluster {
    Cluster::with(ClusterSettings { aof: true, ..ClusterSettings::default() }).expect("servers")
}

/// How long a fault goes on.
pub(crate) fn long(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds * rounds()))
}
