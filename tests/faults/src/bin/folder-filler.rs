//! `folder-filler FOLDER MIB`: puts so much into the file engine, says `full`, and waits to be killed.

use std::path::Path;
use std::process::ExitCode;

use zlink_store::{
    BlobReference, Endpoint, Error, Key, LocationStore, LockOptions, Mutation, Project, ProjectId, ProjectOptions,
    RelocationStore, Retention, StateSetResult, StateWriteOptions, StoreOptions, WriteRequest,
};

const VALUE: usize = 4_096;
/// Records of one commit.
const TOGETHER: usize = 256;
const BLOB: usize = 1 << 20;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [folder, mib] = &arguments[..] else { return ExitCode::from(2) };
    let Ok(mib) = mib.parse() else { return ExitCode::from(2) };
    match fill(Path::new(folder), mib).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("folder-filler: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Each MiB is 256 records, every eighth a blob; the keys come in no order.
async fn fill(folder: &Path, mib: usize) -> Result<(), Error> {
    let options = || StoreOptions { operation_timeout_ms: 120_000, ..StoreOptions::default() };
    let place = || Endpoint::File(folder.to_owned());
    let records = LocationStore::open(place(), options())?;
    let blobs = RelocationStore::open(place(), options())?;
    let project = Project::open(place(), ProjectId::new("w", "p")?, ProjectOptions::default())?;
    let day = Retention::from_ms(86_400_000)?;
    let mut rng = fastrand::Rng::with_seed(1);
    for number in 0..mib {
        if number % 8 == 7 {
            let mut bytes = vec![0; BLOB];
            rng.fill(&mut bytes);
            blobs.put(BlobReference::new(format!("b{number}"))?, bytes, day).await?;
            continue;
        }
        let mut request = WriteRequest::new();
        for _ in 0..TOGETHER {
            let mut value = vec![0; VALUE];
            rng.fill(&mut value);
            request = request.mutation(Mutation::put(Key::new(format!("{:016x}", rng.u64(..)))?, value));
        }
        records.write(request).await?;
    }
    let last = WriteRequest::new().mutation(Mutation::put(Key::new("last")?, "v"));
    records.write(last).await?;
    let StateSetResult::Stored(_) = project.state().namespace("n")?.set("last", "1", StateWriteOptions::default()).await? else {
        return Err(Error::internal("an entry that nobody else sets was not set"));
    };
    let lease = project.locks().acquire("last", LockOptions { lease_ms: 60_000, ..LockOptions::default() }).await?;
    println!("full {}", lease.map_or(0, |lease| lease.fencing_token()));
    std::future::pending().await
}
