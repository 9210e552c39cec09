//! The engine of projects against real servers, through a proxy that disturbs. What it shares with the other engines the
//! scenarios test; here is what is Redis' own.

mod queue;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zlink_test_servers::{Proxy, RedisServer, Value};

use crate::ambient;
use crate::call::Operation;
use crate::contract::{Error, LockOptions, ProjectId, ReleaseResult, RenewResult};
use crate::engine::redis::client::Script;
use crate::{DistributedLocks, LockLease, Project, ProjectOptions};

/// Hash tag of the project that the tests use.
const TAG: &str = "zlink-project{1:w:p}";

/// A server of the test's own, and a proxy in front of it.
struct Rig {
    server: RedisServer,
    proxy: Proxy,
}

impl Rig {
    fn start(settings: &[&str]) -> Self {
        let server = RedisServer::start(settings).unwrap();
        let proxy = Proxy::to(server.port()).unwrap();
        Self { server, proxy }
    }

    /// The project as one more process has it: on connections of its own, through the proxy.
    fn process(&self) -> Project {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let url = format!("{}?client_name=process-{number}", self.proxy.url());
        Project::open(&url, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap()
    }

    fn say(&self, command: &[&str]) -> Value {
        self.server.say(command)
    }

    /// What lies under a key of the project, said with its type's command.
    fn ask(&self, command: &str, key: &str, rest: &[&str]) -> Value {
        let key = format!("{TAG}:{key}");
        let mut words = vec![command, &key];
        words.extend(rest);
        self.say(&words)
    }

    fn leases(&self) -> i64 {
        self.ask("HLEN", "l", &[]).number()
    }

    fn waiters(&self) -> i64 {
        self.ask("ZCARD", "q", &[]).number()
    }

    fn now(&self) -> i64 {
        let time = self.say(&["TIME"]);
        time.items()[0].number() * 1_000 + time.items()[1].number() / 1_000
    }
}

fn waiting(wait_ms: u64) -> LockOptions {
    LockOptions { wait_ms, ..LockOptions::default() }
}

fn lasting(lease_ms: u64) -> LockOptions {
    LockOptions { lease_ms, ..LockOptions::default() }
}

/// A lock that must be free.
async fn take(locks: &DistributedLocks, key: &str) -> LockLease {
    locks.acquire(key, LockOptions::default()).await.unwrap().expect("it is free")
}

async fn release(lease: &LockLease) {
    assert_eq!(lease.release().await.unwrap(), ReleaseResult::Released);
}

async fn renew(lease: &LockLease) {
    assert!(matches!(lease.renew(None).await.unwrap(), RenewResult::Renewed { .. }));
}

/// Polls until it is so, ten seconds at most.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = ambient::monotonic() + Duration::from_secs(10);
    while !so() {
        assert!(ambient::monotonic() < deadline, "it never came that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let start: Instant = ambient::monotonic();
    let result = future.await;
    (result, ambient::monotonic() - start)
}

/// Begins an operation, so that it goes on while the test does something else.
fn begin<T: Send + 'static>(operation: Operation<T>) -> tokio::task::JoinHandle<Result<T, Error>> {
    tokio::spawn(operation)
}

/// Calls of that script.
fn calls(script: &'static Script) -> impl Fn(&zlink_test_servers::Request) -> bool {
    move |request| request.name().starts_with("EVAL") && script.is(&request.args[1])
}
