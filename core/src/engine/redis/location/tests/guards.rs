//! Every step of a page sees whether its snapshot still stands.

use super::super::scan::START;
use super::rig::*;
use super::scans::{expected, fill, next};
use crate::contract::*;
use crate::engine::redis::tests::tap::{named, runs};

/// The steps of a page, as the command and how many of its kind come before: names, records, what was saved of them, and what
/// was moved aside.
const STEPS: [(&str, usize); 4] = [("ZRANGEBYLEX", 0), ("MGET", 0), ("HMGET", 0), ("MGET", 1)];

/// Makes an end of every snapshot, by its time or as if the list were lost.
async fn end_snapshots(raw: &redis::aio::MultiplexedConnection, overdue: bool) {
    if overdue {
        age(raw, limits::SNAPSHOT_LIFE_MS).await;
    } else {
        ask::<()>(raw, "DEL {p}:S").await;
    }
}

/// † If in any step the snapshot is gone or overdue, the scan is expired.
#[tokio::test]
async fn an_overdue_or_lost_snapshot_is_expired_in_every_step() {
    for (step, skip) in STEPS {
        for overdue in [true, false] {
            let rig = Rig::new().await;
            fill(&rig, 100).await;
            // What was moved would be asked for in a later step, which would see that the snapshot is gone.
            let large = if skip > 0 { 20_000 } else { 10 };
            rig.put("k0071", &"x".repeat(large)).await;
            let first = rig.begin(50).await;
            rig.put("k0070", "new").await;
            rig.put("k0071", "new").await;
            let (store, tap) = rig.tapped(true);
            let raw = rig.raw.clone();
            tap.before_after(skip, named(step), async move { end_snapshots(&raw, overdue).await });
            assert!(page(&store, next(&first, 50)).await.is_none(), "{step} {skip}, overdue: {overdue}");
            assert_eq!(tap.left(), 0, "no step {step} {skip}");
        }
    }
}

/// † The same where no name is left that a later step would ask for: without its snapshot a scan does not end, it is expired.
#[tokio::test]
async fn a_page_behind_which_nothing_is_left_is_expired_with_its_snapshot() {
    for overdue in [true, false] {
        let rig = Rig::new().await;
        fill(&rig, 100).await;
        let first = rig.begin(50).await;
        end_snapshots(&rig.raw, overdue).await;
        for at in 50..100 {
            delete(&rig.store, &format!("k{at:04}")).await;
        }
        assert_eq!(rig.raw::<u64>("ZCARD {p}:i").await, 50);
        assert!(page(&rig.store, next(&first, 50)).await.is_none(), "overdue: {overdue}");
    }
}

/// A server that was emptied, or came back without its data, ends every scan; what was written since continues none.
#[tokio::test]
async fn a_cursor_of_data_that_are_all_gone_is_expired() {
    for command in ["FLUSHALL", "FLUSHDB"] {
        let rig = Rig::new().await;
        fill(&rig, 100).await;
        let first = rig.begin(50).await;
        rig.raw::<()>(command).await;
        assert!(page(&rig.store, next(&first, 50)).await.is_none(), "{command}");
        fill(&rig, 100).await;
        let again = rig.begin(50).await;
        assert!(page(&rig.store, next(&first, 50)).await.is_none(), "{command}, filled again");
        assert!(page(&rig.other(), next(&first, 50)).await.is_none(), "{command}, by somebody else");
        assert!(page(&rig.store, next(&again, 50)).await.is_some());
    }
}

/// † A first page that misses its snapshot in any step starts a new one.
#[tokio::test]
async fn a_first_page_is_never_expired() {
    for (step, skip) in STEPS {
        for overdue in [true, false] {
            let rig = Rig::new().await;
            fill(&rig, 100).await;
            rig.put("k0011", &"x".repeat(if skip > 0 { 20_000 } else { 10 })).await;
            // So that the script is known, and the next call of it is a start.
            rig.begin(1).await;
            let (store, tap) = rig.tapped(true);
            // Both are saved by the first snapshot.
            let other = rig.other();
            tap.once(runs(&START), async move |sending| {
                let started = sending.await;
                put(&other, "k0010", "new").await;
                put(&other, "k0011", "new").await;
                started
            });
            // The first look at the names is that of a scan without a snapshot.
            let skip = skip + usize::from(step == "ZRANGEBYLEX");
            for _ in 0..2 {
                let raw = rig.raw.clone();
                tap.before_after(skip, named(step), async move { end_snapshots(&raw, overdue).await });
            }
            let first = page(&store, ScanRequest::new("", 50)).await.unwrap();
            let mut all = shown(&first);
            all.extend(rest(&store, "", 50, &first).await.unwrap());
            let mut new = expected(0..100);
            new[10].1 = "new".to_owned();
            new[11].1 = "new".to_owned();
            assert_eq!(all, new, "{step} {skip}, overdue: {overdue}");
            assert!(tap.left() < 2, "no step {step} {skip}");
        }
    }
}

#[tokio::test]
async fn saved_records_that_were_evicted_make_the_scan_expired() {
    for size in [10, 20_000] {
        let rig = Rig::new().await;
        fill(&rig, 100).await;
        rig.put("k0070", &"x".repeat(size)).await;
        let first = rig.begin(50).await;
        rig.put("k0070", "new").await;
        let keys: Vec<String> = rig.raw("KEYS {p}:u:*").await;
        assert_eq!(keys.len(), 1 + usize::from(size > 10_000));
        for key in keys {
            if size < 10_000 || key.ends_with(":k0070") {
                rig.raw::<()>(&format!("DEL {key}")).await;
            }
        }
        assert!(page(&rig.store, next(&first, 1_000)).await.is_none());
    }
}
