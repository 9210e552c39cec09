//! A bank of accounts on a Location Store: movers take money from one account to another by conditional commits, through two
//! store objects, and scanners must see the same total in every snapshot. One test for each engine.
//!
//! `ZLINK_BANK_SECONDS` is how long each takes: 2 by default, 20 in the full run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{env, io};

use libtest_mimic::{Arguments, Failed, Trial};
use zlink_store::{
    Condition, Error, Key, LocationStore, Mutation, ReadResult, ScanRequest, ScanResult, WriteRequest, WriteResult,
};
use zlink_test_conformance::place::{Engine, Place, Places};

const ACCOUNTS: usize = 24;
const EACH: u64 = 100;
const MOVERS: u64 = 8;
const SCANNERS: u64 = 4;

fn main() -> io::Result<()> {
    let arguments = Arguments::from_args();
    let seconds = env::var("ZLINK_BANK_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?);
    let places = Arc::new(Places::default());
    let trial = |engine: Engine| {
        let (runtime, places) = (Arc::clone(&runtime), Arc::clone(&places));
        Trial::test(format!("{engine}/every-scan-sees-the-same-total"), move || {
            let place = places.new_place(engine)?;
            runtime.block_on(run(engine, &place, Duration::from_secs(seconds))).map_err(Failed::from)
        })
    };
    let conclusion = libtest_mimic::run(&arguments, Engine::ALL.into_iter().map(trial).collect());
    // The servers end with their handle, which a plain exit would skip.
    drop(places);
    conclusion.exit()
}

/// What all tasks of one bank share.
#[derive(Default)]
struct Bank {
    over: AtomicBool,
    moved: AtomicU64,
    refused: AtomicU64,
    scanned: AtomicU64,
}

async fn run(engine: Engine, place: &Place, long: Duration) -> Result<(), String> {
    let stores = [open(place)?, open(place)?];
    let opening = (0..ACCOUNTS).map(|number| Mutation::put(account(number), record(EACH, 0)));
    let opened = stores[0].write(WriteRequest { conditions: Vec::new(), mutations: opening.collect() }).await;
    opened.map_err(|error| format!("{error:?}"))?;
    let bank = Arc::new(Bank::default());
    let mut tasks = Vec::new();
    for number in 0..MOVERS {
        let store = stores[usize::from(number % 2 == 0)].clone();
        tasks.push(tokio::spawn(mover(store, Arc::clone(&bank), fastrand::Rng::with_seed(number))));
    }
    for number in 0..SCANNERS {
        let store = stores[usize::from(number % 2 == 0)].clone();
        tasks.push(tokio::spawn(scanner(store, Arc::clone(&bank), fastrand::Rng::with_seed(number))));
    }
    tokio::time::sleep(long).await;
    bank.over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    let (moved, refused, scanned) = (count(&bank.moved), count(&bank.refused), count(&bank.scanned));
    println!("{engine}: {moved} commits, {refused} conflicts, {scanned} whole scans");
    let accounts = scan(&stores[1], 1_000).await?;
    // Every commit counts one up in two accounts: none is lost, none is applied twice.
    let counted: u64 = accounts.values().map(|(_, moves)| moves).sum();
    if counted != 2 * moved {
        return Err(format!("{moved} commits were acknowledged, {} applied", counted / 2));
    }
    if moved == 0 || scanned == 0 {
        return Err(format!("{moved} commits and {scanned} scans are no test"));
    }
    Ok(())
}

fn open(place: &Place) -> Result<LocationStore, String> {
    place.location("bank").map_err(|error| error.to_string())
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn account(number: usize) -> Key {
    Key::new(format!("account/{number:02}")).expect("within the limits")
}

/// Money and the number of moves, and bytes enough to make copies worth something.
fn record(money: u64, moves: u64) -> String {
    format!("{money} {moves} {}", "·".repeat(100))
}

fn parse(bytes: &[u8]) -> Result<(u64, u64), String> {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split(' ').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(money)), Some(Ok(moves))) => Ok((money, moves)),
        _ => Err(format!("no account: {text}")),
    }
}

async fn mover(store: LocationStore, bank: Arc<Bank>, mut random: fastrand::Rng) -> Result<(), String> {
    while !bank.over.load(Ordering::Relaxed) {
        let from = random.usize(..ACCOUNTS);
        let to = (from + 1 + random.usize(..ACCOUNTS - 1)) % ACCOUNTS;
        match transfer(&store, from, to, &mut random).await.map_err(|error| format!("{error:?}"))? {
            Some(true) => bank.moved.fetch_add(1, Ordering::Relaxed),
            Some(false) => bank.refused.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        // In memory nothing waits, and everybody is to have a turn.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Whether the commit was applied; `None` if there was nothing to move.
async fn transfer(store: &LocationStore, from: usize, to: usize, random: &mut fastrand::Rng) -> Result<Option<bool>, Error> {
    let (from, to) = (account(from), account(to));
    let (ReadResult::Found(source), ReadResult::Found(target)) = (store.read(from.clone()).await?, store.read(to.clone()).await?)
    else {
        return Err(Error::internal("an account is missing"));
    };
    let (money, moves) = parse(&source.bytes).map_err(Error::internal)?;
    let (other_money, other_moves) = parse(&target.bytes).map_err(Error::internal)?;
    let amount = random.u64(..=money.min(20));
    if amount == 0 {
        return Ok(None);
    }
    let request = WriteRequest::new()
        .condition(Condition::Version { key: from.clone(), expected: source.version })
        .condition(Condition::Version { key: to.clone(), expected: target.version })
        .mutation(Mutation::put(from, record(money - amount, moves + 1)))
        .mutation(Mutation::put(to, record(other_money + amount, other_moves + 1)));
    Ok(Some(matches!(store.write(request).await?, WriteResult::Applied { .. })))
}

async fn scanner(store: LocationStore, bank: Arc<Bank>, mut random: fastrand::Rng) -> Result<(), String> {
    let mut moves_before = 0;
    while !bank.over.load(Ordering::Relaxed) {
        let accounts = scan(&store, random.u32(1..=10)).await?;
        let total: u64 = accounts.values().map(|(money, _)| money).sum();
        if accounts.len() != ACCOUNTS || total != EACH * ACCOUNTS as u64 {
            return Err(format!("a snapshot with {} accounts and a total of {total}: {accounts:?}", accounts.len()));
        }
        let moves: u64 = accounts.values().map(|(_, moves)| moves).sum();
        if !moves.is_multiple_of(2) || moves < moves_before {
            return Err(format!("a snapshot with half a commit, or older than the one before: {moves} after {moves_before}"));
        }
        moves_before = moves;
        bank.scanned.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// A whole scan, page by page: money and moves of every account.
async fn scan(store: &LocationStore, limit: u32) -> Result<BTreeMap<String, (u64, u64)>, String> {
    let mut accounts = BTreeMap::new();
    let mut request = ScanRequest::new("account/", limit);
    loop {
        let page = match store.scan(request.clone()).await.map_err(|error| format!("{error:?}"))? {
            ScanResult::Page(page) => page,
            ScanResult::Expired => return Err("a snapshot expired though few are live".to_owned()),
        };
        for item in page.items {
            accounts.insert(item.key.to_string(), parse(&item.value.bytes)?);
        }
        match page.next_cursor {
            Some(cursor) => request = request.after(cursor),
            None => return Ok(accounts),
        }
        tokio::task::yield_now().await;
    }
}
