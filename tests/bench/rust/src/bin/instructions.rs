//! One of core's hot paths, so many times: what `tests/bench/instructions.mjs` counts the instructions of.
//! `instructions WORK TIMES`.

use std::sync::LazyLock;

use futures_util::future::try_join_all;
use zlink_bench::rig::{Rig, VALUE, name};
use zlink_bench::rounds::Outcome;
use zlink_store::{
    Condition, Endpoint, Key, LocationStore, Mutation, ReadResult, ScanRequest, ScanResult, StoreOptions, WriteRequest,
    WriteResult,
};

const KEYS: usize = 1_000;
const TOGETHER: usize = 64;
/// Made before anything is counted: what it costs to write a number is not core's.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| (0..KEYS).map(name).collect());

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (engine, work) = arguments.next().and_then(split).ok_or("the work is missing")?;
    let times: usize = arguments.next().ok_or("how many times is missing")?.parse()?;
    let rig = if engine == "redis" { Some(Rig::start()?) } else { None };
    let store = match &rig {
        Some(rig) => rig.locations()?,
        None => LocationStore::open(Endpoint::Memory(None), StoreOptions::default())?,
    };
    store.write(puts(KEYS)?).await?;
    match work.as_str() {
        "read" => {
            for i in 0..times {
                read(&store, i).await?;
            }
        }
        "read-64" => {
            for i in 0..times {
                try_join_all((0..TOGETHER).map(|lane| read(&store, i + lane))).await?;
            }
        }
        "put" => {
            for i in 0..times {
                store.write(put(i)?).await?;
            }
        }
        "put-64" => {
            for i in 0..times {
                try_join_all((0..TOGETHER).map(async |lane| Outcome::Ok(store.write(put(i + lane)?).await?))).await?;
            }
        }
        "cas" => cas(&store, times).await?,
        "commit-100" => {
            for _ in 0..times {
                store.write(puts(100)?).await?;
            }
        }
        "scan-page" => {
            for _ in 0..times {
                match store.scan(ScanRequest::new("", 1_000)).await? {
                    ScanResult::Page(page) if page.items.len() == KEYS => {}
                    _ => return Err("no whole page".into()),
                }
            }
        }
        other => return Err(format!("no work is called {other}").into()),
    }
    store.close().await;
    Ok(())
}

/// `memory/read` is `read` in memory.
fn split(text: String) -> Option<(String, String)> {
    text.split_once('/').map(|(engine, work)| (engine.to_owned(), work.to_owned()))
}

fn key(which: usize) -> Outcome<Key> {
    Ok(Key::new(NAMES[which % KEYS].as_str())?)
}

fn put(which: usize) -> Outcome<WriteRequest> {
    Ok(WriteRequest::new().mutation(Mutation::put(key(which)?, &VALUE[..])))
}

fn puts(count: usize) -> Outcome<WriteRequest> {
    let mut request = WriteRequest::new();
    for which in 0..count {
        request = request.mutation(Mutation::put(key(which)?, &VALUE[..]));
    }
    Ok(request)
}

async fn read(store: &LocationStore, which: usize) -> Outcome<()> {
    match store.read(key(which)?).await? {
        ReadResult::Found(_) => Ok(()),
        ReadResult::Missing { .. } => Err("a record is missing".into()),
    }
}

/// Each with the version of the one before it.
async fn cas(store: &LocationStore, times: usize) -> Outcome<()> {
    let key = Key::new("cas")?;
    let mut condition = Condition::Missing { key: key.clone() };
    for _ in 0..times {
        let request = WriteRequest::new().mutation(Mutation::put(key.clone(), &VALUE[..])).condition(condition);
        let WriteResult::Applied { put_versions, .. } = store.write(request).await? else {
            return Err("nobody else writes this record".into());
        };
        condition = Condition::Version { key: key.clone(), expected: put_versions[0].version.clone() };
    }
    Ok(())
}
