//! core on Redis beside redis-rs: `make bench-core`, or `cargo run -p zlink-bench --profile fast --bin core [-- ROW…]`.

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use zlink_bench::results::Results;
use zlink_bench::rig::{Rig, VALUE, fill, name};
use zlink_bench::rounds::{Outcome, Rounds, Work, row, work};
use zlink_bench::{Pings, median, now, per_mille};
use zlink_store::{BlobReference, Key, LocationStore, ReadResult, RelocationStore, Retention, ScanRequest, ScanResult};

const ROWS: [&str; 3] = ["read", "scan", "waits"];
const KEYS: usize = 10_000;
const RECORDS: usize = 100_000;
const LARGE: usize = 64 << 20;

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(stranger) = wanted.iter().find(|row| !ROWS.contains(&row.as_str())) {
        eprintln!("no such row: {stranger}; there are: {}", ROWS.join(", "));
        return Ok(ExitCode::from(2));
    }
    let rounds = Rounds::wanted()?;
    let rig = Rig::start()?;
    let mut results = Results::new(rig.about());
    for row in ROWS {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == row) {
            continue;
        }
        eprintln!("   {row}");
        // One row that fails leaves the others.
        let measured = match row {
            "read" => reads(&mut results, &rig, rounds).await,
            "scan" => scans(&mut results, &rig, rounds).await,
            _ => waits(&mut results, &rig, rounds).await,
        };
        if let Err(error) = measured {
            results.failed(row, &error);
        }
        rig.clear();
    }
    Ok(if results.write()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Some key, another one each time.
fn pick(lane: usize, i: usize) -> usize {
    (lane * 7_919 + i * 104_729) % KEYS
}

async fn reads(results: &mut Results, rig: &Rig, rounds: Rounds) -> Outcome<()> {
    let store = rig.locations()?;
    let (plain, tuned) = (rig.rival(false).await?, rig.rival(true).await?);
    fill(&store, &plain, KEYS).await?;
    let ours = {
        let store = store.clone();
        work(move |lane, i| {
            let store = store.clone();
            async move {
                match store.read(Key::new(name(pick(lane, i)))?).await? {
                    ReadResult::Found(record) if record.bytes.len() == VALUE.len() => Ok(()),
                    other => Err(format!("{other:?}").into()),
                }
            }
        })
    };
    for in_flight in [64, 1_024] {
        let sides = [ours.clone(), get(&plain), get(&tuned)];
        let [ours, plain, tuned] = row(sides, in_flight, rounds, rig).await?;
        results.speed(&format!("core/read/{in_flight}"), &ours, &plain);
        results.speed(&format!("core/read/{in_flight}/tuned"), &ours, &tuned);
    }
    store.close().await;
    Ok(())
}

fn get(rival: &MultiplexedConnection) -> Work {
    let rival = rival.clone();
    work(move |lane, i| {
        let mut rival = rival.clone();
        async move {
            let bytes: Vec<u8> = redis::cmd("GET").arg(name(pick(lane, i))).query_async(&mut rival).await?;
            if bytes.len() == VALUE.len() { Ok(()) } else { Err("the string is not there".into()) }
        }
    })
}

async fn scans(results: &mut Results, rig: &Rig, rounds: Rounds) -> Outcome<()> {
    let store = rig.locations()?;
    let rival = rig.patient().await?;
    fill(&store, &rival, RECORDS).await?;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    scan(&store).await?;
    mget(&rival).await?;
    for _ in 0..rounds.count {
        ours.push(scan(&store).await?);
        plain.push(mget(&rival).await?);
    }
    results.figures("core/scan", &ours, &plain, "");
    store.close().await;
    Ok(())
}

/// Reads all records in pages of 1,000; records per second.
async fn scan(store: &LocationStore) -> Outcome<f64> {
    let began = now();
    let mut request = ScanRequest::new("", 1_000);
    let mut seen = 0;
    loop {
        let ScanResult::Page(page) = store.scan(request).await? else { return Err("the scan has expired".into()) };
        seen += page.items.len();
        let Some(cursor) = page.next_cursor else { break };
        request = ScanRequest::new("", 1_000).after(cursor);
    }
    if seen != RECORDS {
        return Err(format!("the scan gave {seen} of {RECORDS} records").into());
    }
    per_second(began.elapsed())
}

/// The same of plain strings, whose names the caller knows.
async fn mget(rival: &MultiplexedConnection) -> Outcome<f64> {
    let began = now();
    for from in (0..RECORDS).step_by(1_000) {
        let names: Vec<String> = (from..from + 1_000).map(name).collect();
        let values: Vec<Vec<u8>> = redis::cmd("MGET").arg(names).query_async(&mut rival.clone()).await?;
        if values.len() != 1_000 {
            return Err("strings are missing".into());
        }
    }
    per_second(began.elapsed())
}

fn per_second(elapsed: Duration) -> Outcome<f64> {
    Ok(f64::from(u32::try_from(RECORDS)?) / elapsed.as_secs_f64())
}

/// How long another client's PINGs take beside work that takes long.
async fn waits(results: &mut Results, rig: &Rig, rounds: Rounds) -> Outcome<()> {
    let (store, blobs) = (rig.locations()?, rig.blobs()?);
    let rival = rig.patient().await?;
    fill(&store, &rival, RECORDS).await?;
    let payload = Bytes::from(vec![b'b'; LARGE]);
    put(&blobs, &payload).await?;
    set(&rival, &payload).await?;
    let names = ["idle", "full scan", "plain MGETs", "blob puts", "plain SETs", "blob reads"];
    let mut all: [Vec<Duration>; 6] = Default::default();
    let mut p999: [Vec<f64>; 6] = Default::default();
    for _ in 0..rounds.count {
        for (which, beside) in names.into_iter().enumerate() {
            let pings = Pings::start(rig.port());
            let began = now();
            while began.elapsed() < rounds.each * 2 {
                match beside {
                    "idle" => tokio::time::sleep(rounds.each).await,
                    "full scan" => drop(scan(&store).await?),
                    "plain MGETs" => drop(mget(&rival).await?),
                    "blob puts" => put(&blobs, &payload).await?,
                    "plain SETs" => set(&rival, &payload).await?,
                    _ => drop(blobs.read(BlobReference::new("busy")?).await?),
                }
            }
            let waits = pings.stop();
            p999[which].push(ms(per_mille(&waits, 999)));
            all[which].extend(waits);
        }
    }
    let beside = all.iter_mut().zip(names).map(|(waits, name)| {
        waits.sort_unstable();
        let worst = waits.last().copied().unwrap_or_default();
        json!({ "name": name, "p99": ms(per_mille(waits, 990)), "p999": ms(per_mille(waits, 999)), "worst": ms(worst) })
    });
    let beside: Vec<_> = beside.collect();
    let remarks = format!(
        "worst {:.1} ms, idle {:.1} ms; beside MGETs p99.9 {:.2} ms",
        ms(all[1].last().copied().unwrap_or_default()),
        ms(all[0].last().copied().unwrap_or_default()),
        median(p999[2].clone())
    );
    results.figures("core/scan/ping", &p999[1], &p999[0], &remarks);
    let title = "How long another client's PING takes beside scans and 64 MiB blobs";
    results.plot("waits", json!({ "title": title, "unit": "ms", "beside": beside }));
    blobs.close().await;
    store.close().await;
    Ok(())
}

async fn put(store: &RelocationStore, payload: &Bytes) -> Outcome<()> {
    let reference = BlobReference::new("busy")?;
    store.delete(reference.clone()).await?;
    store.put(reference, payload.clone(), Retention::from_ms(600_000)?).await?;
    Ok(())
}

async fn set(rival: &MultiplexedConnection, payload: &Bytes) -> Outcome<()> {
    Ok(redis::cmd("SET").arg("plain-blob").arg(&payload[..]).query_async(&mut rival.clone()).await?)
}

fn ms(wait: Duration) -> f64 {
    wait.as_secs_f64() * 1e3
}
