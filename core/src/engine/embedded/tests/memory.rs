use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::StoreOptions;

#[test]
fn every_operation_is_answered_at_the_first_poll() {
    let core = in_memory(&Set::at(1_000));
    let (location, relocation) = (location(&core, ""), relocation(&core, ""));
    assert!(location.answers_inline() && relocation.answers_inline());
    now(location.ping()).unwrap();
    now(location.write(put("a", "1"))).unwrap();
    assert!(matches!(now(location.read(key("a"))).unwrap(), ReadResult::Found(_)));
    page(now(location.scan(ScanRequest::new("", 10))).unwrap());
    let stored = now(relocation.put(reference("r"), "bytes", ms(5))).unwrap();
    assert!(matches!(stored, BlobPutResult::Stored { .. }));
    assert!(matches!(now(relocation.read(reference("r"))).unwrap(), BlobReadResult::Found { .. }));
    now(relocation.renew(reference("r"), ms(5))).unwrap();
    now(relocation.delete(reference("r"))).unwrap();
}

#[test]
fn a_name_is_shared_in_the_process_and_ends_with_its_last_store() {
    let open = |url: &str, prefix: &str| LocationStore::open(url, StoreOptions::with_prefix(prefix).unwrap()).unwrap();
    let name = "memory:a name of this test";
    let (one, two, other) = (open(name, "p"), open(name, "p"), open(name, "q"));
    now(one.write(put("a", "1"))).unwrap();
    assert!(matches!(now(two.read(key("a"))).unwrap(), ReadResult::Found(_)));
    assert!(matches!(now(other.read(key("a"))).unwrap(), ReadResult::Missing { .. }), "another prefix is another store");
    assert!(matches!(now(open("memory:", "p").read(key("a"))).unwrap(), ReadResult::Missing { .. }));
    drop((one, other));
    assert!(matches!(now(two.read(key("a"))).unwrap(), ReadResult::Found(_)));
    two.close().now_or_never().expect("nothing is under way");
    assert_eq!(now(two.read(key("a"))).unwrap_err().code(), Code::Closed);
    assert!(matches!(now(open(name, "p").read(key("a"))).unwrap(), ReadResult::Missing { .. }), "nobody had it open");
}

#[test]
fn time_never_runs_backwards() {
    let clock = Set::at(5_000);
    let store = location(&in_memory(&clock), "");
    now(store.write(put_for("a", "1", 100))).unwrap();
    clock.set(5_100);
    assert_eq!(now(store.read(key("a"))).unwrap(), ReadResult::Missing { store_now: StoreTime::from_unix_ms(5_100) });
    clock.set(5_050);
    assert_eq!(now(store.read(key("a"))).unwrap(), ReadResult::Missing { store_now: StoreTime::from_unix_ms(5_100) });
    assert_eq!(now(store.ping()).unwrap(), StoreTime::from_unix_ms(5_100));
}

#[tokio::test]
async fn what_has_expired_is_removed_and_nothing_else() {
    let clock = Set::at(1_000);
    let core = in_memory(&clock);
    let (location, relocation) = (location(&core, "p"), relocation(&core, "p"));
    for index in 0..600 {
        location.write(put_for(&format!("dead{index}"), "x", 10)).await.unwrap();
    }
    location.write(put_for("renewed", "x", 10)).await.unwrap();
    location.write(put_for("renewed", "x", 1_000)).await.unwrap();
    location.write(put_for("durable", "x", 10)).await.unwrap();
    location.write(put("durable", "x")).await.unwrap();
    relocation.put(reference("dead"), vec![0; 100], ms(10)).await.unwrap();
    relocation.put(reference("live"), vec![0; 100], ms(10)).await.unwrap();
    relocation.renew(reference("live"), ms(1_000)).await.unwrap();
    clock.set(1_010);
    core.upkeep().await.unwrap();
    assert_eq!(core.storage.lengths(), [2, 1, 1, 2, 0, 0, 0, 0], "records, manifests, segments, due");
    let rest = page(location.scan(ScanRequest::new("", 10)).await.unwrap());
    assert_eq!(names(&rest), ["durable", "renewed"]);
    clock.set(10_000);
    core.upkeep().await.unwrap();
    assert_eq!(core.storage.lengths(), [1, 0, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn what_has_expired_is_removed_without_anybody_asking() {
    let clock = Set::at(1_000);
    let core = in_memory(&clock);
    let store = location(&core, "");
    store.write(put_for("a", "1", 10)).await.unwrap();
    clock.set(2_000);
    eventually(|| core.storage.lengths() == [0; 8]).await;
}

struct Handed(Bytes);

impl PayloadSource for Handed {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn range(&self, range: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            tokio::task::yield_now().await;
            Ok(self.0.slice(range))
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_payload_may_be_handed_over_range_by_range() {
    let store = relocation(&in_memory(&Set::at(1_000)), "");
    let bytes: Bytes = (0..1_000_000u32).map(|index| (index % 251) as u8).collect::<Vec<_>>().into();
    let handed = || Payload::Source(Arc::new(Handed(bytes.clone())));
    let mut put = store.put(reference("r"), handed(), ms(10));
    assert!(matches!(put.poll_now(), Poll::Pending), "the owner is not ready");
    assert!(matches!(put.await.unwrap(), BlobPutResult::Stored { .. }));
    assert!(matches!(store.put(reference("r"), handed(), ms(10)).await.unwrap(), BlobPutResult::AlreadyStored { .. }));
    let BlobReadResult::Found { bytes: read, .. } = store.read(reference("r")).await.unwrap() else { panic!("missing") };
    assert_eq!(read, bytes);
}
