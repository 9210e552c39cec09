//! Each command of each operation in turn loses its answer, or its connection.
//!
//! An operation is made once in peace, to see how many commands it takes; then once for each of them and each kind of loss. It
//! takes effect at most once and as a whole, never meets a conflict with itself, the next operation works, and nothing that it
//! leaves stays.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Code, Condition, Error, Key, Mutation, Outcome, ReadResult,
    Retention, ScanRequest, ScanResult, Version, WriteRequest, WriteResult,
};
use zlink_test_faults::party::{Entry, Location, Party, Project, Relocation, Set};
use zlink_test_faults::report::Row;
use zlink_test_faults::verdict::Counts;
use zlink_test_servers::{Action, Proxy, RedisServer};

use crate::left::{each_value_has_its_expiry, nothing_stays};
use crate::rig::{OPERATION_TIMEOUT, for_parties, server, turn_to_work};

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

async fn writes_take_effect_at_most_once(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    rig.sweep("create two", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key(), rig.fresh_key()];
            let mut request = WriteRequest::new().condition(Condition::Missing { key: keys[0].clone() });
            for key in keys.clone() {
                request = request.mutation(Mutation::put_for(key, "new", retention()));
            }
            let written = rig.store.write(request).await;
            put_was(rig, &keys, None, &written, done).await
        })
    })
    .await;
    rig.sweep("compare and set", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key()];
            let expected = rig.put(&keys[0], "old").await;
            let request = WriteRequest::new()
                .condition(Condition::Version { key: keys[0].clone(), expected: expected.clone() })
                .mutation(Mutation::put(keys[0].clone(), "new"));
            let written = rig.store.write(request).await;
            put_was(rig, &keys, Some(expected), &written, done).await
        })
    })
    .await;
    rig.sweep("put", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key()];
            let before = rig.put(&keys[0], "old").await;
            let written = rig.store.write(WriteRequest::new().mutation(Mutation::put(keys[0].clone(), "new"))).await;
            put_was(rig, &keys, Some(before), &written, done).await
        })
    })
    .await;
    rig.sweep("delete two", |done| {
        Box::pin(async move {
            let keys = [rig.fresh_key(), rig.fresh_key()];
            rig.put(&keys[1], "old").await;
            let expected = rig.put(&keys[0], "old").await;
            let mut request = WriteRequest::new().condition(Condition::Version { key: keys[0].clone(), expected });
            for key in keys.clone() {
                request = request.mutation(Mutation::delete(key));
            }
            let written = rig.store.write(request).await;
            let there = rig.seen(&keys[0]).await.is_some();
            assert_eq!(there, rig.seen(&keys[1]).await.is_some(), "torn");
            match &written {
                Ok(WriteResult::Applied { .. }) => assert!(!there, "an acknowledged delete was not done"),
                Ok(WriteResult::Conflict { .. }) => panic!("a conflict with itself"),
                Err(_) => assert!(!(there && done == Done::Yes), "{written:?}"),
            }
            unknown(&written)
        })
    })
    .await;
    rig.sweep("check", |_| {
        Box::pin(async move {
            let key = rig.fresh_key();
            let checked = rig.store.write(WriteRequest::new().condition(Condition::Missing { key })).await;
            assert!(!matches!(checked, Ok(WriteResult::Conflict { .. })), "{checked:?}");
            unknown(&checked)
        })
    })
    .await;
    nothing_stays(&rig.server, "p");
    rig.finish("an answer or the line lost at each command of each write").await;
}

/// Puts of "new" that were disturbed were applied once and all together, or not at all and nobody was told that they were.
async fn put_was(rig: &Rig, keys: &[Key], before: Option<Version>, written: &Result<WriteResult, Error>, done: Done) -> bool {
    let mut seen = Vec::new();
    for key in keys {
        seen.push(rig.seen(key).await);
    }
    match written {
        Ok(WriteResult::Applied { put_versions, .. }) => {
            let told: Vec<_> = put_versions.iter().map(|put| Some((b"new".to_vec(), put.version.clone()))).collect();
            assert_eq!(seen, told, "what was acknowledged is not there");
        }
        Ok(WriteResult::Conflict { .. }) => panic!("a conflict with itself"),
        Err(error) => {
            // Of a commit that was made there is a mark, and there was time to look.
            assert_ne!(done, Done::Yes, "the commit was made, and nobody looked: {error:?}");
            let old = before.map(|version| (b"old".to_vec(), version));
            let all_old = seen.iter().all(|seen| *seen == old);
            let all_new = seen.iter().all(|seen| seen.as_ref().is_some_and(|(bytes, _)| bytes == b"new"));
            assert!(all_old || all_new, "{seen:?}");
        }
    }
    unknown(written)
}

async fn reads_and_scans_are_repeated(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    for number in 0..5 {
        rig.put(&Key::new(format!("s{number}")).expect("a legal key"), "value").await;
    }
    rig.sweep("ping", |_| {
        Box::pin(async move {
            rig.store.ping().await.expect("a ping");
            false
        })
    })
    .await;
    rig.sweep("read", |_| {
        Box::pin(async move {
            let read = rig.store.read(Key::new("s3").expect("a legal key")).await.expect("a read");
            assert!(matches!(read, ReadResult::Found(_)), "{read:?}");
            false
        })
    })
    .await;
    rig.sweep("scan", |_| {
        Box::pin(async move {
            let mut request = ScanRequest::new("s", 2);
            let mut keys = Vec::new();
            loop {
                let ScanResult::Page(page) = rig.store.scan(request).await.expect("a page") else { panic!("a scan expired") };
                keys.extend(page.items.into_iter().map(|item| item.key.as_str().to_owned()));
                let Some(cursor) = page.next_cursor else { break };
                request = ScanRequest::new("s", 2).after(cursor);
            }
            assert_eq!(keys, ["s0", "s1", "s2", "s3", "s4"]);
            false
        })
    })
    .await;
    nothing_stays(&rig.server, "p");
    rig.finish("an answer or the line lost at each command of each read").await;
}

async fn blobs_take_effect_at_most_once(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    for (name, size) in [("small blob put", 1_000), ("blob put in one round trip", 900_000), ("blob put", 2_500_000)] {
        rig.sweep(name, |done| {
            Box::pin(async move {
                let reference = rig.fresh_blob();
                let put = rig.blobs.put(reference.clone(), vec![7; size], retention()).await;
                let seen = match rig.seen_blob(&reference).await {
                    BlobReadResult::Found { bytes, expires_at, .. } => {
                        assert!(bytes == vec![7; size], "torn");
                        Some(expires_at)
                    }
                    BlobReadResult::Missing { .. } => None,
                };
                match &put {
                    Ok(BlobPutResult::Stored { expires_at, .. } | BlobPutResult::AlreadyStored { expires_at, .. }) => {
                        assert_eq!(seen, Some(*expires_at), "what was acknowledged is not there");
                    }
                    Ok(BlobPutResult::Conflict { .. }) => panic!("a conflict with itself"),
                    // Segments and script go out together up to 2 MiB, and may be lost together: those that follow the one that was done too.
                    Err(error) => assert!(size < 10_000 && done != Done::Yes || size == 900_000, "{error:?}"),
                }
                let again = rig.blob_seer.put(reference, vec![7; size], retention()).await.expect("a put beside the fault");
                let stored = matches!(again, BlobPutResult::Stored { .. });
                assert!(stored == seen.is_none() && !matches!(again, BlobPutResult::Conflict { .. }), "{again:?} after {put:?}");
                unknown(&put)
            })
        })
        .await;
    }
    rig.sweep("blob read", |_| {
        Box::pin(async move {
            let reference = rig.fresh_blob();
            rig.blob_seer.put(reference.clone(), vec![7; 900_000], retention()).await.expect("a put beside the fault");
            let read = rig.blobs.read(reference).await;
            assert!(matches!(&read, Ok(BlobReadResult::Found { bytes, .. }) if *bytes == vec![7; 900_000]), "{read:?}");
            false
        })
    })
    .await;
    rig.sweep("blob renewal", |_| {
        Box::pin(async move {
            let reference = rig.fresh_blob();
            rig.blob_seer.put(reference.clone(), vec![7; 300_000], retention()).await.expect("a put beside the fault");
            let shorter = Retention::from_ms(1_000_000).expect("a legal retention");
            let renewed = rig.blobs.renew(reference.clone(), shorter).await;
            let Ok(BlobRenewResult::Renewed { expires_at, .. }) = renewed else { panic!("{renewed:?}") };
            let seen = rig.seen_blob(&reference).await;
            assert!(matches!(seen, BlobReadResult::Found { expires_at: seen, .. } if seen == expires_at), "{expires_at:?}");
            false
        })
    })
    .await;
    rig.sweep("blob delete", |_| {
        Box::pin(async move {
            let reference = rig.fresh_blob();
            rig.blob_seer.put(reference.clone(), vec![7; 300_000], retention()).await.expect("a put beside the fault");
            rig.blobs.delete(reference.clone()).await.expect("a delete");
            let seen = rig.seen_blob(&reference).await;
            assert!(matches!(seen, BlobReadResult::Missing { .. }), "a deleted blob is there");
            false
        })
    })
    .await;
    for number in 0..rig.made.load(Ordering::Relaxed) {
        rig.blob_seer.delete(BlobReference::new(format!("k{number}")).expect("a legal reference")).await.expect("a delete");
    }
    nothing_stays(&rig.server, "p");
    rig.finish("an answer or the line lost at each command of a blob").await;
}

async fn projects_take_effect_at_most_once(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    for (name, expected) in [("set", None), ("set of nothing", Some(0)), ("compare and set of an entry", Some(1))] {
        rig.sweep(name, |done| {
            Box::pin(async move {
                let key = rig.fresh();
                let (state, seer) = (rig.project.state(), rig.project_seer.state());
                let mut before = None;
                if expected != Some(0) {
                    assert_eq!(seer.set(&key, 1, Some(0)).await.expect("a set beside the fault"), Set::Done(Some(1)));
                    before = Some(Entry { value: 1, version: 1 });
                }
                let set = state.set(&key, 2, expected).await;
                let seen = seer.get(&key).await.expect("a look beside the fault");
                let after = Some(Entry { value: 2, version: before.map_or(1, |_| 2) });
                match &set {
                    Ok(set) => assert_eq!((*set, seen), (Set::Done(after.map(|entry| entry.version)), after)),
                    Err(error) => {
                        assert_ne!(done, Done::Yes, "the entry was set, and nobody looked: {error:?}");
                        assert!(seen == before || seen == after, "{seen:?}");
                    }
                }
                unknown(&set)
            })
        })
        .await;
    }
    rig.sweep("delete of an entry", |done| {
        Box::pin(async move {
            let key = rig.fresh();
            let (state, seer) = (rig.project.state(), rig.project_seer.state());
            assert_eq!(seer.set(&key, 1, Some(0)).await.expect("a set beside the fault"), Set::Done(Some(1)));
            let deleted = state.delete(&key, Some(1)).await;
            let there = seer.get(&key).await.expect("a look beside the fault").is_some();
            match &deleted {
                Ok(deleted) => assert_eq!((*deleted, there), (Set::Done(None), false)),
                Err(_) => assert!(!(there && done == Done::Yes), "{deleted:?}"),
            }
            unknown(&deleted)
        })
    })
    .await;
    rig.sweep("acquire and release", |_| {
        Box::pin(async move {
            let key = rig.fresh();
            let locks = rig.project.locks();
            let acquired = locks.acquire(&key, 0, LEASE_MS).await;
            let mut token = 0;
            if let Ok(grant) = &acquired {
                let grant = grant.as_ref().expect("nobody else wants this lock");
                token = grant.token;
                assert!(grant.release().await.expect("a release is made sure of"), "a lease is lost");
            }
            // Whatever became of it, nobody holds the lock any more.
            let next = rig.project_seer.locks().acquire(&key, 5_000, LEASE_MS).await.expect("an acquire beside the fault");
            let next = next.expect("the lock is free");
            assert!(next.token > token, "token {} after {token}", next.token);
            assert!(next.release().await.expect("a release beside the fault"), "a lease is lost");
            unknown(&acquired)
        })
    })
    .await;
    each_value_has_its_expiry(&rig.server);
    rig.finish("an answer or the line lost at each command of state and locks").await;
}

const LEASE_MS: u64 = 30_000;

for_parties!([core Core, node Node, java Java] [
    writes_take_effect_at_most_once,
    reads_and_scans_are_repeated,
    blobs_take_effect_at_most_once,
    projects_take_effect_at_most_once,
]);
