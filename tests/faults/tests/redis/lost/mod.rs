//! Each command of each operation in turn loses its answer, or its connection.
//!
//! An operation is made once in peace, to see how many commands it takes; then once for each of them and each kind of loss. It
//! takes effect at most once and as a whole, never meets a conflict with itself, the next operation works, and nothing that it
//! leaves stays.

mod blobs;
mod projects;
mod records;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

use zlink_store::{
    BlobReadResult, BlobReference, Code, Error, Key, Mutation, Outcome, ReadResult, Retention, Version, WriteRequest, WriteResult,
};
use zlink_test_faults::party::{Location, Party, Project, Relocation};
use zlink_test_faults::report::Row;
use zlink_test_faults::verdict::Counts;
use zlink_test_servers::{Action, Proxy, RedisServer};

use crate::rig::{OPERATION_TIMEOUT, server};

/// What is done to a command, and whether the server surely did it.
const LOSSES: [(Action, Done); 5] = [
    (Action::CutBefore, Done::No),
    (Action::CutInside, Done::No),
    (Action::CutAfter, Done::Maybe),
    (Action::DropReply, Done::Yes),
    (Action::CutReply, Done::Yes),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    No,
    Maybe,
    Yes,
}

/// Stores whose line is disturbed, and stores beside them that see what is there.
struct Rig {
    server: RedisServer,
    proxy: Proxy,
    party: Party,
    store: Location,
    blobs: Relocation,
    project: Project,
    seer: Location,
    blob_seer: Relocation,
    project_seer: Project,
    made: AtomicU32,
    survived: AtomicU32,
    unknown: AtomicU32,
}

type Run<'a> = Pin<Box<dyn Future<Output = bool> + 'a>>;

impl Rig {
    async fn new(party: Party) -> Self {
        let server = server();
        let proxy = Proxy::to(server.port()).expect("a proxy");
        let (straight, disturbed) = (server.url(), proxy.url());
        Self {
            party,
            store: party.location(&disturbed, "p", OPERATION_TIMEOUT).await,
            blobs: party.relocation(&disturbed, "p", OPERATION_TIMEOUT).await,
            project: party.project(&disturbed, "p", OPERATION_TIMEOUT).await,
            seer: Party::Core.location(&straight, "p", OPERATION_TIMEOUT).await,
            blob_seer: Party::Core.relocation(&straight, "p", OPERATION_TIMEOUT).await,
            project_seer: Party::Core.project(&straight, "p", OPERATION_TIMEOUT).await,
            made: AtomicU32::new(0),
            survived: AtomicU32::new(0),
            unknown: AtomicU32::new(0),
            server,
            proxy,
        }
    }

    /// Adds what was survived to the table, and closes the stores.
    async fn finish(&self, fault: &str) {
        let unknown = u64::from(self.unknown.load(Ordering::Relaxed));
        let acknowledged = u64::from(self.survived.load(Ordering::Relaxed)) - unknown;
        Row { acknowledged, unknown, ..Row::passed(fault, self.party, &Counts::default()) }.write();
        self.store.close().await;
        self.blobs.close().await;
        self.project.close().await;
    }

    fn fresh(&self) -> String {
        format!("k{}", self.made.fetch_add(1, Ordering::Relaxed))
    }

    fn fresh_key(&self) -> Key {
        Key::new(self.fresh()).expect("a legal key")
    }

    fn fresh_blob(&self) -> BlobReference {
        BlobReference::new(self.fresh()).expect("a legal reference")
    }

    async fn put(&self, key: &Key, value: &'static str) -> Version {
        let written = self.seer.write(WriteRequest::new().mutation(Mutation::put(key.clone(), value))).await;
        let Ok(WriteResult::Applied { put_versions, .. }) = written else { panic!("{written:?}") };
        put_versions[0].version.clone()
    }

    async fn seen(&self, key: &Key) -> Option<(Vec<u8>, Version)> {
        match self.seer.read(key.clone()).await.expect("a read beside the fault") {
            ReadResult::Found(value) => Some((value.bytes.to_vec(), value.version)),
            ReadResult::Missing { .. } => None,
        }
    }

    async fn seen_blob(&self, reference: &BlobReference) -> BlobReadResult {
        self.blob_seer.read(reference.clone()).await.expect("a blob read beside the fault")
    }

    /// Makes `operation` in peace, and once for each of its commands and each loss. It is told whether the command that is
    /// lost is the one by which the server does its work, and says whether its outcome was left unknown.
    async fn sweep<'a>(&'a self, name: &str, operation: impl Fn(Done) -> Run<'a>) {
        // The second time all scripts are known.
        operation(Done::Yes).await;
        self.proxy.record();
        operation(Done::Yes).await;
        let commands: Vec<String> = self.proxy.recorded().iter().map(|request| request.name()).collect();
        assert!(!commands.is_empty(), "{name} sends nothing");
        let (mut made, mut unknown) = (0, 0);
        for (loss, done) in LOSSES {
            for skip in 0..commands.len() {
                self.proxy.once("*", skip, loss.clone());
                unknown += u32::from(operation(done).await);
                self.proxy.pass();
                made += 1;
                // The line works again.
                self.store.ping().await.unwrap_or_else(|error| panic!("{name}, {loss:?} of {skip}: {error:?}"));
            }
        }
        self.survived.fetch_add(made, Ordering::Relaxed);
        self.unknown.fetch_add(unknown, Ordering::Relaxed);
        let _ = std::io::Write::write_all(
            &mut std::io::stdout().lock(),
            format!("{name:>24}: {made} losses over {commands:?}, {unknown} outcomes unknown\n").as_bytes(),
        );
    }
}

/// `Err` must be an unknown outcome of a lost line; gives back whether it was one.
fn unknown<T: Debug>(result: &Result<T, Error>) -> bool {
    let Err(error) = result else { return false };
    assert!(matches!(error.code(), Code::Unavailable), "{error:?}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error:?}");
    true
}

fn retention() -> Retention {
    Retention::from_ms(3_600_000).expect("a legal retention")
}
