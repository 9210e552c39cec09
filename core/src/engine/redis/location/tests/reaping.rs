//! What has expired or was deleted leaves nothing behind, and nothing leaves too early.

use std::sync::Arc;

use bytes::Bytes;

use super::super::tidy::Finished;
use super::super::{Inner, RedisLocation};
use super::rig::*;
use crate::call::Call;
use crate::contract::*;
use crate::engine::redis::client::Client;

struct Reaping {
    rig: Rig,
    /// Its drop closes the store.
    _location: RedisLocation,
    engine: Arc<Inner>,
    client: Client,
}

impl Reaping {
    /// A store whose timer does not run, with more live records than a small scan has.
    async fn new() -> Self {
        let rig = Rig::new().await;
        let (location, client) = rig.engine();
        let engine = Arc::clone(&location.0);
        let quiet = Self { rig, _location: location, engine, client };
        let mut request = WriteRequest::new();
        for at in 0..100 {
            request = request.mutation(Mutation::put(key(&format!("k{at:02}")), "old"));
        }
        quiet.write(request).await;
        quiet
    }

    fn call() -> Call {
        Call::reading(crate::ambient::monotonic() + std::time::Duration::from_secs(10))
    }

    async fn write(&self, request: WriteRequest) {
        let call = Call::writing(crate::ambient::monotonic() + std::time::Duration::from_secs(10));
        applied(Arc::clone(&self.engine).write(request, call).await);
    }

    async fn put_for(&self, name: &str, retention: u64) {
        self.write(WriteRequest::new().mutation(Mutation::put_for(key(name), "", ms(retention)))).await;
    }

    async fn delete(&self, name: &str) {
        self.write(WriteRequest::new().mutation(Mutation::delete(key(name)))).await;
    }

    /// Waits until the server's clock is past `ms` from now.
    async fn pass(&self, ms: u64) {
        let end = self.now().await + ms;
        until(async || self.now().await > end).await;
    }

    async fn now(&self) -> u64 {
        let (seconds, micros): (u64, u64) = self.rig.raw("TIME").await;
        seconds * 1_000 + micros / 1_000
    }

    async fn scan(&self) -> [u8; 16] {
        let request = ScanRequest::new("", 1);
        let result = Arc::clone(&self.engine).scan(request, Self::call()).await.unwrap();
        assert!(matches!(result, ScanResult::Page(page) if page.next_cursor.is_some()));
        self.rig.entries().await.last().unwrap().id
    }

    async fn end(&self, id: [u8; 16]) {
        self.finish(id, Finished::ForGood).await;
    }

    async fn finish(&self, id: [u8; 16], how: Finished) {
        self.engine.finish(&self.client, id, how, Self::call().deadline).await;
    }

    /// The reaping script, told that these names are due.
    async fn tidy(&self, names: &[&'static str]) {
        let names: Vec<Bytes> = names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect();
        self.engine.tidy(&self.client, None, &names, &Self::call()).await.unwrap();
    }

    /// Puts `names` for a while, starts a scan while they are live, and waits until they have expired.
    async fn scan_before_expiry(&self, names: &[&str]) -> [u8; 16] {
        for retention in [100, 1_000, 10_000] {
            for name in names {
                self.put_for(name, retention).await;
            }
            let expires: u64 = self.rig.raw::<String>(&format!("ZSCORE {{p}}:x {}", names[0])).await.parse().unwrap();
            let id = self.scan().await;
            if self.rig.entries().await.last().unwrap().start.unix_ms() < expires {
                self.pass(retention).await;
                return id;
            }
            // The machine was too slow.
            self.end(id).await;
        }
        panic!("ten seconds for a start");
    }

    async fn reap(&self) {
        self.engine.reap(&self.client, 1_000).await.unwrap();
    }

    /// Whether there is a record, a name and a due time.
    async fn parts(&self, name: &str) -> (bool, bool, bool) {
        let record: u64 = self.rig.raw(&format!("EXISTS {{p}}:r:{name}")).await;
        let index: Option<f64> = self.rig.raw(&format!("ZSCORE {{p}}:i {name}")).await;
        let due: Option<f64> = self.rig.raw(&format!("ZSCORE {{p}}:x {name}")).await;
        (record == 1, index.is_some(), due.is_some())
    }
}

const GONE: (bool, bool, bool) = (false, false, false);

#[tokio::test]
async fn an_expired_record_goes_with_its_name() {
    let reaping = Reaping::new().await;
    reaping.put_for("a", 5).await;
    reaping.put_for("b", 60_000).await;
    reaping.pass(5).await;
    assert_eq!(reaping.parts("a").await, (true, true, true));
    reaping.reap().await;
    assert_eq!(reaping.parts("a").await, GONE);
    assert_eq!(reaping.parts("b").await, (true, true, true));
}

#[tokio::test]
async fn a_snapshot_from_before_the_expiry_holds_a_record_back_until_it_is_over() {
    let reaping = Reaping::new().await;
    let before = reaping.scan_before_expiry(&["z"]).await;
    let later = reaping.scan().await;
    reaping.reap().await;
    assert_eq!(reaping.parts("z").await, (true, true, true));
    reaping.end(before).await;
    reaping.reap().await;
    assert_eq!(reaping.parts("z").await, GONE, "the later snapshot holds nothing back");
    reaping.end(later).await;
}

#[tokio::test]
async fn the_name_that_a_delete_left_goes_with_the_snapshots_of_that_moment() {
    let reaping = Reaping::new().await;
    let (first, second) = (reaping.scan().await, reaping.scan().await);
    reaping.pass(0).await;
    reaping.delete("k50").await;
    reaping.put_for("k51", 1).await;
    reaping.delete("k51").await;
    assert_eq!(reaping.parts("k50").await, (false, true, true));
    reaping.pass(1).await;
    let later = reaping.scan().await;
    reaping.end(first).await;
    reaping.reap().await;
    assert_eq!(reaping.parts("k50").await, (false, true, true), "the second is live");
    reaping.end(second).await;
    reaping.reap().await;
    assert_eq!((reaping.parts("k50").await, reaping.parts("k51").await), (GONE, GONE), "the later one holds nothing back");
    reaping.end(later).await;
}

#[tokio::test]
async fn a_store_that_is_always_scanned_is_reaped_all_the_same() {
    let reaping = Reaping::new().await;
    let mut live = std::collections::VecDeque::from([reaping.scan().await]);
    for round in 0..5 {
        let name = format!("mortal{round}");
        reaping.put_for(&name, 1).await;
        reaping.delete(&format!("k{:02}", 50 + round)).await;
        reaping.pass(1).await;
        live.push_back(reaping.scan().await);
        reaping.end(live.pop_front().unwrap()).await;
        reaping.reap().await;
        assert_eq!(reaping.parts(&name).await, GONE);
        assert_eq!(reaping.parts(&format!("k{:02}", 50 + round)).await, GONE);
        assert!(!live.is_empty());
    }
}

#[tokio::test]
async fn a_finished_scan_holds_back_what_its_last_page_may_be_asked_for_again() {
    let reaping = Reaping::new().await;
    let id = reaping.scan_before_expiry(&["z"]).await;
    reaping.finish(id, Finished::MayBeRepeated).await;
    let finished = reaping.rig.entries().await[0].finished;
    reaping.tidy(&["z"]).await;
    assert_eq!(reaping.parts("z").await, (true, true, true));
    reaping.finish(id, Finished::MayBeRepeated).await;
    assert_eq!(reaping.rig.entries().await[0].finished, finished, "asking again does not prolong it");
    reaping.end(id).await;
    reaping.tidy(&["z"]).await;
    assert_eq!(reaping.parts("z").await, GONE);
}

#[tokio::test]
async fn snapshots_that_nobody_needs_go_though_nobody_writes() {
    for overdue in [true, false] {
        let reaping = Reaping::new().await;
        let id = reaping.scan().await;
        reaping.delete("k50").await;
        if overdue {
            reaping.rig.age_snapshots(limits::SNAPSHOT_LIFE_MS).await;
        } else {
            reaping.finish(id, Finished::MayBeRepeated).await;
            reaping.rig.edit_snapshots(|_, raw| raw[52..].copy_from_slice(&1_u64.to_be_bytes())).await;
        }
        reaping.reap().await;
        let left: Vec<String> = reaping.rig.raw("KEYS {p}:[Suv]*").await;
        assert!(left.is_empty(), "overdue {overdue}: {left:?}");
    }
}

#[tokio::test]
async fn what_is_no_due_record_stays_whatever_the_due_times_say() {
    let reaping = Reaping::new().await;
    reaping.put_for("longer", 600_000).await;
    let due = |name: &str| format!("ZADD {{p}}:x 1 {name}");
    for command in ["HSET {p}:r:foreign field value", "ZADD {p}:i 0 foreign", &due("foreign"), &due("longer")] {
        reaping.rig.raw::<()>(command).await;
    }
    reaping.reap().await;
    assert_eq!(reaping.parts("longer").await, (true, true, true));
    assert!(reaping.rig.raw::<f64>("ZSCORE {p}:x longer").await > 1.0, "it is due when it expires");
    assert_eq!(reaping.parts("foreign").await, (true, true, false));
}

#[tokio::test]
async fn the_second_step_looks_again() {
    let reaping = Reaping::new().await;
    for name in ["durable", "longer", "deleted", "held"] {
        reaping.put_for(name, 1).await;
    }
    reaping.put_for("early", 60_000).await;
    reaping.pass(1).await;
    // After the names were read as due, and before the script comes:
    reaping.write(WriteRequest::new().mutation(Mutation::put(key("durable"), "new"))).await;
    reaping.put_for("longer", 60_000).await;
    let snapshot = reaping.scan_before_expiry(&["held"]).await;
    reaping.delete("deleted").await;
    reaping.tidy(&["durable", "longer", "deleted", "held", "early"]).await;
    assert_eq!(reaping.parts("durable").await, (true, true, false), "put anew: only its due time goes");
    assert_eq!(reaping.parts("longer").await, (true, true, true), "a newer due time stays");
    assert_eq!(reaping.parts("early").await, (true, true, true));
    assert_eq!(reaping.parts("deleted").await, (false, true, true), "left by a delete under a live snapshot");
    assert_eq!(reaping.parts("held").await, (true, true, true), "the snapshot shows it");
    reaping.end(snapshot).await;
}

#[tokio::test]
async fn an_open_store_reaps_what_others_left() {
    let rig = Rig::new().await;
    let mut request = WriteRequest::new();
    for at in 0..1_500 {
        request = request.mutation(Mutation::put_for(key(&at.to_string()), "", ms(1)));
    }
    let other = rig.other();
    applied(other.write(request).await);
    other.close().await;
    assert_eq!(rig.get("0").await, None, "the first operation of this store");
    until(async || rig.raw::<u64>("ZCARD {p}:i").await == 0).await;
    let left: Vec<String> = rig.raw("KEYS {p}:*").await;
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn native_expiry_is_the_net_behind_the_longest_snapshot() {
    let rig = Rig::new().await;
    let before = rig.store.ping().await.unwrap().unix_ms();
    for (retention, name) in
        [(60_000, "a"), (99_999_999_999_999, "b"), (999_999_999_999_999, "c"), (limits::MAX_RETENTION_MS, "d")]
    {
        let request = WriteRequest::new().mutation(Mutation::put_for(key(name), "", ms(retention)));
        let several = request.clone().mutation(Mutation::delete(key("none")));
        for request in [request, several] {
            let (_, now) = applied(rig.store.write(request).await);
            let expires = now.plus(ms(retention)).unix_ms();
            assert!(expires > before);
            assert_eq!(rig.expiry(&format!("{{p}}:r:{name}")).await, expires + 360_000);
            assert_eq!(rig.raw::<String>(&format!("ZSCORE {{p}}:x {name}")).await, expires.to_string());
            let ReadResult::Found(found) = rig.store.read(key(name)).await.unwrap() else { panic!() };
            assert_eq!(found.expires_at.unwrap().unix_ms(), expires, "every digit of it");
        }
    }
}
