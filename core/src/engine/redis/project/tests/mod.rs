//! The engine of projects against real servers, through a proxy that disturbs. What it shares with the other engines the
//! scenarios test; here is what is Redis' own.

mod bells;
mod cancel;
mod expiry;
mod free;
mod keys;
mod lost;
mod queue;
mod rights;
mod tokens;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zlink_test_servers::{Proxy, RedisServer, Value};

use crate::ambient;
use crate::call::Operation;
use crate::contract::{
    Code, Error, LockOptions, Outcome, ProjectId, ReleaseResult, RenewResult, StateDeleteResult, StateEntry, StateSetResult,
    StateWriteOptions, limits,
};
use crate::engine::redis::client::Script;
use crate::{DistributedLocks, LockLease, Project, ProjectOptions, StateNamespace};

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
        self.process_with("")
    }

    fn process_with(&self, parameters: &str) -> Project {
        self.process_for(parameters, 5_000)
    }

    fn process_for(&self, parameters: &str, timeout_ms: u64) -> Project {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let url = format!("{}?client_name=process-{number}{parameters}", self.proxy.url());
        let options = ProjectOptions::default().with_operation_timeout_ms(timeout_ms);
        Project::open(&url, ProjectId::new("w", "p").unwrap(), options).unwrap()
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

    /// How many locks are held, by what says so: the lock itself, or the lease's id.
    fn leases(&self) -> i64 {
        held(&self.ask("HKEYS", "l", &[]))
    }

    /// How many leases are to expire.
    fn expiring(&self) -> i64 {
        self.ask("ZCOUNT", "d", &["-inf", "(+inf"]).number()
    }

    fn waiters(&self) -> i64 {
        self.ask("ZCARD", "q", &[]).number()
    }

    fn now(&self) -> i64 {
        let time = self.say(&["TIME"]);
        time.items()[0].number() * 1_000 + time.items()[1].number() / 1_000
    }
}

/// The larger number of locks and of ids among the fields of the leases, of which one, without a name, is about all of them.
fn held(fields: &Value) -> i64 {
    let fields: Vec<String> = fields.items().iter().map(Value::text).filter(|field| !field.is_empty()).collect();
    let locks = fields.iter().filter(|field| field.contains(':')).count();
    i64::try_from(locks.max(fields.len() - locks)).unwrap()
}

fn state(project: &Project) -> StateNamespace {
    project.state().namespace("n").unwrap()
}

fn waiting(wait_ms: u64) -> LockOptions {
    LockOptions { wait_ms, ..LockOptions::default() }
}

async fn set(state: &StateNamespace, key: &str, json: &str) -> StateEntry {
    stored(state.set(key, json, StateWriteOptions::default()).await)
}

fn stored(result: Result<StateSetResult, Error>) -> StateEntry {
    match result.unwrap() {
        StateSetResult::Stored(entry) => entry,
        other => panic!("{other:?}"),
    }
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

/// The id that an acquire makes known: behind the command, the script, the keys and their number, and the lock.
fn acquirer(request: &zlink_test_servers::Request) -> String {
    request.text(3 + 8 + 1)
}
