//! How many commands an operation sends to Redis, and how many bytes go each way: no more than `tests/bench/wire.json` allows. Unlike
//! its time, that is the same on every machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use serde_json::Value;
use zlink_store::{
    BlobReadResult, BlobReference, Condition, Cursor, Key, LocationStore, LockOptions, Mutation, Project, ProjectId,
    ProjectOptions, ReadResult, ReleaseResult, RelocationStore, Retention, ScanRequest, ScanResult, StateDeleteResult,
    StateSetResult, StateWriteOptions, StoreOptions, WriteRequest, WriteResult,
};
use zlink_test_conformance::place::TIMEOUT_MS;
use zlink_test_servers::{Proxy, RedisServer, Request, Way};

type Outcome<T> = Result<T, Box<dyn Error>>;

const LIMITS: &str = include_str!("../../bench/wire.json");
const VALUE: [u8; 256] = [b'v'; 256];
const RECORDS: usize = 10_000;
/// How often an operation is done.
const TIMES: usize = 3;
/// Long enough for 64 calls to be made while the first one waits for its answer.
const HELD: Duration = Duration::from_millis(200);

/// The operations go by a proxy that counts.
struct Wire {
    proxy: Proxy,
    _server: RedisServer,
    limits: BTreeMap<String, Value>,
    /// What is beyond its limit.
    beyond: Vec<String>,
}

impl Wire {
    fn start() -> Outcome<Self> {
        let server = RedisServer::start(&[])?;
        let limits: Value = serde_json::from_str(LIMITS)?;
        let limits = limits["operations"].as_array().ok_or("a list of operations")?;
        let named = |limit: &Value| (limit["operation"].to_string().replace('"', ""), limit.clone());
        Ok(Self {
            proxy: Proxy::to(server.port())?,
            _server: server,
            limits: limits.iter().map(named).collect(),
            beyond: Vec::new(),
        })
    }

    /// The address of the proxy. Nothing is asked about the server's settings, so that nothing but the operations is counted.
    fn url(&self) -> String {
        format!("{}?allow_eviction=true", self.proxy.url())
    }

    fn options() -> Outcome<StoreOptions> {
        Ok(StoreOptions { operation_timeout_ms: TIMEOUT_MS, ..StoreOptions::with_prefix("wire")? })
    }

    /// Counts what `operation` sends and gets, and holds it against the limits of that name. Stores look now and then for what is
    /// to be removed, too: of several times that it is done, the one counts that had the least to do. It gets the number of the time.
    async fn count<T>(&mut self, name: &str, operation: impl AsyncFn(usize) -> Outcome<T>) -> Outcome<()> {
        let limits =
            self.limits.remove(name).ok_or_else(|| format!("wire.json does not know “{name}”, or it was counted before"))?;
        let mut least: Option<([u64; 3], Vec<String>)> = None;
        for time in 0..TIMES {
            let before = [Way::Requests, Way::Replies].map(|way| self.proxy.passed(way));
            self.proxy.record();
            operation(time).await?;
            let commands: Vec<_> = self.proxy.recorded().iter().map(Request::name).collect();
            let sent = self.proxy.passed(Way::Requests) - before[0];
            let got = self.proxy.passed(Way::Replies) - before[1];
            let figures = [commands.len() as u64, sent, got];
            if least.as_ref().is_none_or(|(other, _)| figures < *other) {
                least = Some((figures, commands));
            }
        }
        let (figures, commands) = least.ok_or("nothing was counted")?;
        println!("{name}: {figures:?}");
        for (field, figure) in ["commands", "sent", "got"].into_iter().zip(figures) {
            let most = limits[field].as_u64().ok_or_else(|| format!("{name} has no limit of {field}"))?;
            if figure > most || figure == 0 {
                self.beyond.push(format!("{name}: {field} {figure}, limit {most}; {commands:?}"));
            }
        }
        Ok(())
    }

    /// As [`count`](Self::count), with the answers held back, so that what waits together is seen to go together.
    async fn count_held<T>(&mut self, name: &str, operation: impl AsyncFn(usize) -> Outcome<T>) -> Outcome<()> {
        self.proxy.delay(Way::Replies, HELD);
        let result = self.count(name, operation).await;
        self.proxy.delay(Way::Replies, Duration::ZERO);
        result
    }
}

#[tokio::test]
async fn no_operation_sends_more_than_it_may() -> Outcome<()> {
    let mut wire = Wire::start()?;
    locations(&mut wire).await?;
    blobs(&mut wire).await?;
    projects(&mut wire).await?;
    assert!(wire.limits.is_empty(), "never counted: {:?}", wire.limits.keys());
    assert!(wire.beyond.is_empty(), "beyond the limits of tests/bench/wire.json:\n{}", wire.beyond.join("\n"));
    Ok(())
}

fn key(which: usize) -> Outcome<Key> {
    Ok(Key::new(format!("actor/{which:024}"))?)
}

fn put(which: usize) -> Outcome<WriteRequest> {
    Ok(WriteRequest::new().mutation(Mutation::put(key(which)?, &VALUE[..])))
}

fn puts(from: usize, count: usize, value: &'static [u8]) -> Outcome<WriteRequest> {
    let mut request = WriteRequest::new();
    for which in from..from + count {
        request = request.mutation(Mutation::put(key(which)?, value));
    }
    Ok(request)
}

async fn locations(wire: &mut Wire) -> Outcome<()> {
    static LARGE: [u8; 1_024] = [b'w'; 1_024];
    let store = LocationStore::open(&*wire.url(), Wire::options()?)?;
    // Every kind of call was made once, so that connections are open and the server knows the scripts.
    for from in (0..RECORDS).step_by(1_000) {
        store.write(puts(from, 1_000, &VALUE)?).await?;
    }
    store.write(put(0)?).await?;
    try_join_all((0..64).map(|which| store.write(put(which).expect("a key")))).await?;
    let removed = WriteRequest::new().mutation(Mutation::delete(key(RECORDS)?));
    store.write(removed.clone()).await?;
    let version = found(store.read(key(0)?).await?)?;

    wire.count("read", async |_| Ok(store.read(key(1)?).await?)).await?;
    wire.count_held("read, 64 in flight", async |_| {
        let reads = (0..64).map(|which| store.read(key(which).expect("a key")));
        for read in join_all(reads).await {
            found(read?)?;
        }
        Ok(())
    })
    .await?;
    wire.count("put", async |_| Ok(store.write(put(1)?).await?)).await?;
    wire.count_held("put, 64 in flight", async |_| {
        Ok(try_join_all((0..64).map(|which| store.write(put(which + 64).expect("a key")))).await?)
    })
    .await?;
    let version = RefCell::new(version);
    let cas = async |_| {
        let condition = Condition::Version { key: key(0)?, expected: version.borrow().clone() };
        let WriteResult::Applied { put_versions, .. } = store.write(put(0)?.condition(condition)).await? else {
            return Outcome::Err("nobody else writes this record".into());
        };
        *version.borrow_mut() = put_versions[0].version.clone();
        Ok(())
    };
    wire.count("CAS", cas).await?;
    wire.count("delete", async |_| Ok(store.write(removed.clone()).await?)).await?;
    wire.count("commit of 100 puts", async |_| Ok(store.write(puts(0, 100, &VALUE)?).await?)).await?;
    wire.count("commit of 2,048 puts of 1 KiB", async |_| Ok(store.write(puts(2 * RECORDS, 2_048, &LARGE)?).await?)).await?;

    // Those of 256 bytes each.
    let first = ScanRequest::new(format!("actor/{:020}", 0), 1_000);
    let cursor = page(store.scan(first.clone()).await?, 1_000)?.ok_or("there is more than one page")?;
    wire.count("scan page of 1,000, the first", async |_| page(store.scan(first.clone()).await?, 1_000)).await?;
    wire.count("scan page of 1,000, the next", async |_| page(store.scan(first.clone().after(cursor.clone())).await?, 1_000))
        .await?;
    wire.count("scan of 1 record", async |_| page(store.scan(ScanRequest::new(format!("actor/{:024}", 7), 1_000)).await?, 1))
        .await?;
    store.close().await;
    Ok(())
}

fn found(read: ReadResult) -> Outcome<zlink_store::Version> {
    match read {
        ReadResult::Found(record) => Ok(record.version),
        ReadResult::Missing { .. } => Err("a record is missing".into()),
    }
}

fn page(scan: ScanResult, count: usize) -> Outcome<Option<Cursor>> {
    match scan {
        ScanResult::Page(page) if page.items.len() == count => Ok(page.next_cursor),
        other => Err(format!("no page of {count}: {other:?}").into()),
    }
}

async fn blobs(wire: &mut Wire) -> Outcome<()> {
    let store = RelocationStore::open(&*wire.url(), Wire::options()?)?;
    let retention = Retention::from_ms(600_000)?;
    for (name, size) in [("1 MiB", 1 << 20), ("4 MiB", 4 << 20)] {
        let payload = Bytes::from(vec![b'b'; size]);
        let reference = |which: &str| BlobReference::new(format!("{which}/{size}"));
        store.put(reference("warm")?, payload.clone(), retention).await?;
        let read = async |_| match store.read(reference("warm")?).await? {
            BlobReadResult::Found { bytes, .. } if bytes.len() == size => Ok(()),
            _ => Outcome::Err("the blob is not there".into()),
        };
        read(0).await?;
        wire.count(&format!("blob put {name}"), async |time| {
            Ok(store.put(reference(&format!("new{time}"))?, payload.clone(), retention).await?)
        })
        .await?;
        wire.count(&format!("blob read {name}"), read).await?;
        if size == 1 << 20 {
            let again = async |_| Ok(store.put(reference("new0")?, payload.clone(), retention).await?);
            wire.count("blob put 1 MiB that is there", again).await?;
            store.renew(reference("warm")?, retention).await?;
            wire.count("blob renew", async |_| Ok(store.renew(reference("new0")?, retention).await?)).await?;
        }
    }
    store.close().await;
    Ok(())
}

async fn projects(wire: &mut Wire) -> Outcome<()> {
    let options = ProjectOptions::default().with_operation_timeout_ms(TIMEOUT_MS);
    let project = Project::open(&*wire.url(), ProjectId::new("w", "p")?, options)?;
    let locks = project.locks();
    let pair = async |name: &'static str| {
        let lease = locks.acquire(name, LockOptions::default()).await?.ok_or("a free lock")?;
        match lease.release().await? {
            ReleaseResult::Released => Ok(()),
            other => Outcome::Err(format!("{other:?}").into()),
        }
    };
    pair("warm").await?;
    wire.count("lock acquire + release", async |_| pair("lock").await).await?;
    let state = project.state().namespace("n")?;
    let json = format!("{{\"note\":\"{}\"}}", "x".repeat(240));
    let set = async |key: &'static str| match state.set(key, &json, StateWriteOptions::default()).await? {
        StateSetResult::Stored(_) => Ok(()),
        other => Outcome::Err(format!("{other:?}").into()),
    };
    let delete = async |key: &'static str| match state.delete(key, None).await? {
        StateDeleteResult::Deleted | StateDeleteResult::Missing => Ok(()),
        other => Outcome::Err(format!("{other:?}").into()),
    };
    set("warm").await?;
    state.get("warm").await?;
    wire.count("state set", async |_| set("k").await).await?;
    wire.count("state get", async |_| Ok(state.get("k").await?)).await?;
    delete("warm").await?;
    wire.count("state delete", async |_| delete("k").await).await?;
    project.close().await;
    Ok(())
}
