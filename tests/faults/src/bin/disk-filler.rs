//! `disk-filler FOLDER`: fills the journal of the file engine until the operating system takes no more of it, and tells how
//! the engine bears that. It is started with a limit on the length of files, and with the signal for it ignored; after some
//! refusals it lifts the limit, as if somebody had made room.

use std::path::Path;
use std::process::ExitCode;

use zlink_store::{
    Code, Endpoint, Error, Key, LocationStore, Mutation, Outcome, ReadResult, StoreOptions, WriteRequest, WriteResult,
};

/// Far more than the limit lets through.
const COMMITS: usize = 200;
const VALUE: usize = 1_000_000;
/// Writes that are refused before somebody makes room.
const REFUSALS: usize = 10;
/// A file engine that recovers does so within so many attempts, 50 ms apart.
const ATTEMPTS: usize = 1_200;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else { return ExitCode::from(2) };
    match fill(Path::new(&folder)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(said) => {
            eprintln!("disk-filler: {said}");
            ExitCode::FAILURE
        }
    }
}

async fn fill(folder: &Path) -> Result<(), String> {
    let options = StoreOptions { operation_timeout_ms: 60_000, ..StoreOptions::default() };
    let store = LocationStore::open(Endpoint::File(folder.to_owned()), options).map_err(text)?;
    // What may be there: the last acknowledged write, and those since that may have been applied.
    let mut may_be = vec![0];
    write(&store, 0).await.map_err(text)?;
    let mut refused = 0;
    let mut acknowledged = 0;
    for number in 1..COMMITS {
        match write(&store, number).await {
            Ok(()) => {
                acknowledged += 1;
                may_be = vec![number];
            }
            Err(error) => {
                refused += 1;
                if !matches!(error.code(), Code::OutOfMemory | Code::Unavailable) || !error.retryable() {
                    return Err(format!("a full disk is {error:?}"));
                }
                println!("refused {} {}", error.code().as_str(), error.outcome().as_str());
                if error.outcome() == Outcome::Unknown {
                    may_be.push(number);
                }
                let found = read(&store).await.map_err(text)?;
                if !may_be.contains(&found) {
                    return Err(format!("{found} is there, where {may_be:?} may be"));
                }
                if refused == REFUSALS {
                    make_room()?;
                    recover(&store, number).await?;
                    may_be = vec![number];
                }
            }
        }
    }
    store.close().await;
    println!("recovered after {refused}");
    println!("acknowledged {acknowledged}");
    Ok(())
}

/// Lifts the limit on the length of files.
fn make_room() -> Result<(), String> {
    let process = format!("--pid={}", std::process::id());
    let lifted = std::process::Command::new("prlimit").args([&process, "--fsize=unlimited"]).status();
    match lifted {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("prlimit: {other:?}")),
    }
}

/// Writes until it is taken again.
async fn recover(store: &LocationStore, number: usize) -> Result<(), String> {
    for _ in 0..ATTEMPTS {
        if write(store, number).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err("the folder is not opened again".to_owned())
}

async fn write(store: &LocationStore, number: usize) -> Result<(), Error> {
    let mut value = number.to_string().into_bytes();
    value.resize(VALUE, b'.');
    let result = store.write(WriteRequest::new().mutation(Mutation::put(Key::new("k")?, value))).await?;
    match result {
        WriteResult::Applied { .. } => Ok(()),
        WriteResult::Conflict { .. } => Err(Error::internal("a conflict with nobody")),
    }
}

async fn read(store: &LocationStore) -> Result<usize, Error> {
    let ReadResult::Found(found) = store.read(Key::new("k")?).await? else {
        return Err(Error::internal("the record is gone"));
    };
    let text = String::from_utf8_lossy(&found.bytes).into_owned();
    text.trim_end_matches('.').parse().map_err(|_| Error::internal("the record is torn"))
}

fn text(error: Error) -> String {
    format!("{error:?}")
}
