//! Blobs beside SET and GET of one string through redis-rs: `cargo run -p zlink-bench --profile fast --bin blobs`. Behind `--`
//! a part of a line's name picks lines, such as `1024 KiB, 8` or `PING`.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use zlink_bench::{Pings, median, now, per_mille};
use zlink_store::{BlobPutResult, BlobReadResult, BlobReference, RelocationStore, Retention, StoreOptions};
use zlink_test_servers::RedisServer;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> Outcome<()> {
    let server = RedisServer::start(&[])?;
    let options = StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::with_prefix("bench")? };
    let ours = Ours(RelocationStore::open(&server.url(), options)?);
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let client = redis::Client::open(server.url())?;
    let theirs = Theirs(client.get_multiplexed_async_connection_with_config(&config).await?);

    println!(
        "{}; redis-rs 1.8, multiplexed, no timeouts; median of {ROUNDS} rounds, both sides in turn",
        version(&theirs).await?
    );
    let only = std::env::args().nth(1).unwrap_or_default();
    println!("{:<28}{:>12}{:>12}{:>8}", "MB/s", "ours", "redis-rs", "ratio");
    for (size, count, flight) in [(16 << 10, 400, 1), (256 << 10, 100, 1), (1 << 20, 60, 1), (1 << 20, 60, 8), (64 << 20, 3, 1)] {
        let line = format!("{} KiB, {flight} in flight", size >> 10);
        if !line.contains(&only) {
            continue;
        }
        let payload =
            Bytes::from((0..size).map(|place: usize| u8::try_from(place % 251).unwrap_or_default()).collect::<Vec<u8>>());
        let (mut put, mut set, mut read, mut get) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..=ROUNDS {
            put.push(speed(size, count, flight, |which| ours.put(which, payload.clone())).await?);
            set.push(speed(size, count, flight, |which| theirs.set(which, payload.clone())).await?);
            read.push(speed(size, count, flight, |which| ours.read(which, size)).await?);
            get.push(speed(size, count, flight, |which| theirs.get(which, size)).await?);
            for which in 0..count {
                ours.0.delete(name(which)?).await?;
                let _: () = redis::cmd("DEL").arg(which).query_async(&mut theirs.0.clone()).await?;
            }
        }
        for (what, mut our, mut their) in [("put", put, set), ("read", read, get)] {
            // The first round warms up.
            our.remove(0);
            their.remove(0);
            let (our, their) = (median(our), median(their));
            let label = format!("{what} {line}");
            println!("{label:<28}{our:>12.0}{their:>12.0}{:>8.2}", our / their);
        }
    }

    if !"PING".contains(&only) {
        return Ok(());
    }
    println!("\n{:<28}{:>12}{:>12}{:>12}", "another client's PING, ms", "p99", "p99.9", "worst");
    let payload = Bytes::from(vec![7; 64 << 20]);
    for beside in ["idle", "64 MiB puts", "64 MiB reads", "64 MiB SETs"] {
        let pings = Pings::start(server.port());
        let until = now() + Duration::from_secs(4);
        match beside {
            "idle" => tokio::time::sleep(until - now()).await,
            "64 MiB puts" => {
                while now() < until {
                    ours.put(0, payload.clone()).await?;
                    ours.0.delete(name(0)?).await?;
                }
                ours.put(0, payload.clone()).await?;
            }
            "64 MiB reads" => {
                while now() < until {
                    ours.read(0, payload.len()).await?;
                }
            }
            _ => {
                while now() < until {
                    theirs.set(0, payload.clone()).await?;
                }
            }
        }
        let waits = pings.stop();
        let ms = |wait: Duration| wait.as_secs_f64() * 1e3;
        let worst = waits.last().copied().unwrap_or_default();
        println!("{beside:<28}{:>12.2}{:>12.2}{:>12.2}", ms(per_mille(&waits, 990)), ms(per_mille(&waits, 999)), ms(worst));
    }
    Ok(())
}

/// MB per second of `count` operations, `flight` at a time.
#[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
async fn speed<F>(size: usize, count: usize, flight: usize, operation: impl Fn(usize) -> F) -> Outcome<f64>
where
    F: Future<Output = Outcome<()>>,
{
    let began = now();
    stream::iter((0..count).map(operation)).buffer_unordered(flight).try_collect::<()>().await?;
    Ok((size * count) as f64 / 1e6 / (now() - began).as_secs_f64())
}

fn name(which: usize) -> Outcome<BlobReference> {
    Ok(BlobReference::new(which.to_string())?)
}

struct Ours(RelocationStore);

impl Ours {
    async fn put(&self, which: usize, payload: Bytes) -> Outcome<()> {
        match self.0.put(name(which)?, payload, Retention::from_ms(600_000)?).await? {
            BlobPutResult::Stored { .. } => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    }

    async fn read(&self, which: usize, size: usize) -> Outcome<()> {
        match self.0.read(name(which)?).await? {
            BlobReadResult::Found { bytes, .. } if bytes.len() == size => Ok(()),
            _ => Err("the blob is not there".into()),
        }
    }
}

struct Theirs(MultiplexedConnection);

impl Theirs {
    async fn set(&self, which: usize, payload: Bytes) -> Outcome<()> {
        Ok(redis::cmd("SET").arg(which).arg(&payload[..]).arg("PX").arg(600_000).query_async(&mut self.0.clone()).await?)
    }

    async fn get(&self, which: usize, size: usize) -> Outcome<()> {
        let bytes: Vec<u8> = redis::cmd("GET").arg(which).query_async(&mut self.0.clone()).await?;
        if bytes.len() == size { Ok(()) } else { Err("the string is not there".into()) }
    }
}

async fn version(theirs: &Theirs) -> Outcome<String> {
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut theirs.0.clone()).await?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("?");
    Ok(format!("Redis {}", version.trim()))
}
