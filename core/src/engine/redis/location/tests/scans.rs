//! Snapshots: what a scan shows, when it is expired, and what it leaves behind.

use super::super::scan::{CHUNK, START};
use super::super::tidy::TIDY;
use super::rig::*;
use crate::contract::*;
use crate::engine::redis::tests::tap::{lost, named, runs};

pub(super) async fn fill(rig: &Rig, count: usize) {
    for at in 0..count {
        rig.put(&format!("k{at:04}"), &at.to_string()).await;
    }
}

pub(super) fn expected(range: std::ops::Range<usize>) -> Vec<(String, String)> {
    range.map(|at| (format!("k{at:04}"), at.to_string())).collect()
}

impl Rig {
    /// Puts `names` for a while, begins a scan while they are live, and waits until they have expired.
    async fn begin_before_expiry(&self, names: &[&str], limit: u32) -> ScanPage {
        for retention in [100, 1_000, 10_000] {
            let mut request = WriteRequest::new();
            for name in names {
                request = request.mutation(Mutation::put_for(key(name), "mortal", ms(retention)));
            }
            let (_, put) = applied(self.store.write(request).await);
            let first = self.begin(limit).await;
            // Else the machine was too slow.
            if first.store_now < put.plus(ms(retention)) {
                let expired = async || self.get(names[0]).await.is_none();
                until(expired).await;
                return first;
            }
        }
        panic!("ten seconds for a first page");
    }

    /// The first page of a scan of everything that has more pages.
    pub(super) async fn begin(&self, limit: u32) -> ScanPage {
        let first = page(&self.store, ScanRequest::new("", limit)).await.unwrap();
        assert!(first.next_cursor.is_some());
        first
    }
}

pub(super) fn next(page: &ScanPage, limit: u32) -> ScanRequest {
    ScanRequest::new("", limit).after(page.next_cursor.clone().unwrap())
}

#[tokio::test]
async fn a_small_scan_makes_no_snapshot() {
    let rig = Rig::new().await;
    fill(&rig, CHUNK).await;
    let all = page(&rig.store, ScanRequest::new("", 1_000)).await.unwrap();
    assert_eq!(shown(&all), expected(0..CHUNK));
    assert_eq!(rig.raw::<u64>("EXISTS {p}:S").await, 0);
    fill(&rig, CHUNK + 1).await;
    let all = page(&rig.store, ScanRequest::new("", 1_000)).await.unwrap();
    assert_eq!(shown(&all), expected(0..CHUNK + 1));
    assert_eq!(rig.raw::<u64>("EXISTS {p}:S").await, 0, "a scan that ends on its first page leaves nothing behind");
}

#[tokio::test]
async fn a_small_scan_beside_which_names_come_and_go_is_one_instant() {
    let rig = Rig::new().await;
    fill(&rig, 3).await;
    let (store, tap) = rig.tapped(true);
    // Between the names and the records, again and again: in the end a snapshot is made.
    for at in 0..4 {
        let other = rig.other();
        tap.before(named("MGET"), async move {
            put(&other, &format!("new{at}"), "").await;
            delete(&other, &format!("k{at:04}")).await;
        });
    }
    let all = page(&store, ScanRequest::new("", 100)).await.unwrap();
    let keys: Vec<_> = all.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["new0", "new1", "new2"], "the snapshot started after the third change and before the fourth");
    assert!(tap.seen().iter().any(runs(&START)));
}

#[tokio::test]
async fn a_page_ends_before_four_mebibytes_and_holds_an_item() {
    let rig = Rig::new().await;
    let large = "x".repeat(limits::MAX_VALUE);
    for at in 0..9 {
        rig.put(&at.to_string(), &large).await;
    }
    let first = page(&rig.store, ScanRequest::new("", 1_000)).await.unwrap();
    assert_eq!(first.items.len(), 3, "with keys and versions four are more than 4 MiB");
    let second = page(&rig.store, next(&first, 1_000)).await.unwrap();
    let third = page(&rig.store, next(&second, 1_000)).await.unwrap();
    assert_eq!((second.items.len(), third.items.len(), third.next_cursor), (3, 3, None));
}

/// Small records say nothing of those behind them: whatever comes together, no reply is larger than what a step asks for, and
/// a record.
#[tokio::test]
async fn no_reply_to_a_page_is_large_whatever_lies_in_a_row() {
    const LARGE: usize = 200_000;
    let value = |large: bool| if large { "x".repeat(LARGE) } else { "small".to_owned() };
    let name = |at: usize| format!("k{at:04}");
    // Which of 1,000 are large, from a place on; and how many are replaced once the snapshot has started.
    for (large, replaced) in [(200..230, false), (200..230, true), (5..6, false), (900..1_000, false)] {
        let rig = Rig::new().await;
        for from in (0..1_000).step_by(20) {
            let puts = (from..from + 20).fold(WriteRequest::new(), |request, at| {
                request.mutation(Mutation::put(key(&name(at)), value(large.contains(&at))))
            });
            applied(rig.store.write(puts).await);
        }
        for transactions in [true, false] {
            let (store, tap) = rig.tapped(transactions);
            let first = page(&store, ScanRequest::new("", 100)).await.unwrap();
            if replaced {
                for at in large.clone() {
                    put(&rig.store, &name(at), "new").await;
                }
            }
            let mut all = shown(&first);
            all.extend(rest(&store, "", 1_000, &first).await.unwrap());
            assert_eq!(all.len(), 1_000);
            let shown = |at: usize| all[at].1.len() == if large.contains(&at) { LARGE } else { 5 };
            assert!((0..1_000).all(shown), "{large:?}");
            let (heaviest, bound) = (tap.heaviest(), if replaced { 16 * LARGE } else { 1_048_576 } + LARGE);
            assert!(heaviest < bound, "{heaviest} bytes in one reply for {large:?}");
            for at in large.clone().filter(|_| replaced) {
                put(&rig.store, &name(at), &value(true)).await;
            }
        }
    }
}

#[tokio::test]
async fn the_last_page_has_no_cursor_even_when_it_is_full() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let first = rig.begin(50).await;
    assert_eq!(shown(&first), expected(0..50));
    let second = page(&rig.store, next(&first, 50)).await.unwrap();
    assert_eq!((shown(&second), second.next_cursor), (expected(50..100), None));
}

#[tokio::test]
async fn a_cursor_is_good_in_any_process_and_with_no_other_prefix() {
    let rig = Rig::new().await;
    fill(&rig, 200).await;
    let first = rig.begin(70).await;
    assert_eq!(rest(&rig.other(), "", 1_000, &first).await.unwrap(), expected(70..200));
    let cursor = rig.begin(70).await.next_cursor.unwrap();
    assert!(page(&rig.store, ScanRequest::new("k", 10).after(cursor.clone())).await.is_none());
    let bent = Cursor::new(format!("B{}", &cursor.as_str()[1..])).unwrap();
    assert!(page(&rig.store, ScanRequest::new("", 10).after(bent)).await.is_none());
    assert!(page(&rig.store, ScanRequest::new("", 10).after(Cursor::new("nonsense").unwrap())).await.is_none());
    let options = crate::StoreOptions::with_prefix("other").unwrap();
    let other = crate::LocationStore::open(&*rig.server.url(), options).unwrap();
    assert!(page(&other, ScanRequest::new("", 10).after(cursor)).await.is_none());
}

#[tokio::test]
async fn dead_names_in_between_are_passed_over() {
    let rig = Rig::new().await;
    fill(&rig, 3_000).await;
    // A snapshot that keeps the names.
    rig.begin(1).await;
    for at in 10..2_990 {
        delete(&rig.store, &format!("k{at:04}")).await;
    }
    let first = page(&rig.store, ScanRequest::new("", 10)).await.unwrap();
    assert_eq!((shown(&first), first.next_cursor.is_some()), (expected(0..10), true));
    let (store, tap) = rig.tapped(true);
    assert_eq!(rest(&store, "", 20, &first).await.unwrap(), expected(2_990..3_000));
    let steps = tap.seen().iter().filter(|batch| named("MGET")(batch)).count();
    assert!(steps < 30, "{steps} steps for 2,980 dead names");
}

#[tokio::test]
async fn a_later_page_tells_the_time_it_was_read() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let first = rig.begin(50).await;
    let after = rig.store.ping().await.unwrap();
    assert!(first.store_now <= after);
    let second = page(&rig.store, next(&first, 50)).await.unwrap();
    assert!(second.store_now >= after);
    assert!(second.items.iter().all(|item| item.value.store_now == second.store_now));
}

#[tokio::test]
async fn a_record_live_at_the_start_is_shown_after_its_expiry() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let first = rig.begin_before_expiry(&["z"], 50).await;
    // Whoever replaces the expired record saves it.
    rig.put("z", "new").await;
    let mut all = expected(50..100);
    all.push(("z".into(), "mortal".into()));
    assert_eq!(rest(&rig.store, "", 1_000, &first).await.unwrap(), all);
}

#[tokio::test]
async fn a_logically_expired_record_is_saved_when_it_is_replaced_or_deleted() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let first = rig.begin_before_expiry(&["x", "y"], 50).await;
    rig.put("x", "new").await;
    delete(&rig.store, "y").await;
    let mut all = expected(50..100);
    all.extend([("x".into(), "mortal".into()), ("y".into(), "mortal".into())]);
    assert_eq!(rest(&rig.store, "", 1_000, &first).await.unwrap(), all);
}

#[tokio::test]
async fn a_snapshot_lives_five_minutes_to_the_millisecond() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let first = rig.begin(50).await;
    rig.age_snapshots(limits::SNAPSHOT_LIFE_MS - 5_000).await;
    assert!(page(&rig.store, next(&first, 10)).await.is_some(), "reading does not cut it short");
    rig.age_snapshots(5_000).await;
    assert!(page(&rig.store, next(&first, 10)).await.is_none());
}

#[tokio::test]
async fn a_start_that_is_repeated_is_the_same_start() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let (store, tap) = rig.tapped(true);
    tap.lose(runs(&START));
    let first = page(&store, ScanRequest::new("", 50)).await.unwrap();
    assert_eq!(tap.seen().iter().filter(|batch| runs(&START)(batch)).count(), 3, "NOSCRIPT, lost, repeated");
    assert_eq!(rig.entries().await.len(), 1);
    assert_eq!(rest(&store, "", 50, &first).await.unwrap(), expected(50..100));
}

#[tokio::test]
async fn an_abandoned_first_page_gives_its_snapshot_up() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let (store, tap) = rig.tapped(true);
    let reached = std::sync::Arc::new(tokio::sync::Notify::new());
    let tell = std::sync::Arc::clone(&reached);
    tap.once(named("MGET"), async move |_| {
        tell.notify_one();
        std::future::pending().await
    });
    let scan = tokio::spawn(store.scan(ScanRequest::new("", 50)));
    reached.notified().await;
    assert_eq!(rig.entries().await.len(), 1);
    scan.abort();
    until(async || rig.entries().await.is_empty()).await;
}

#[tokio::test]
async fn the_65th_unfinished_scan_drops_the_oldest() {
    let rig = Rig::new().await;
    fill(&rig, 70).await;
    let mut scans = Vec::new();
    for at in 0..limits::MAX_SNAPSHOTS {
        scans.push(rig.begin(1).await);
        // Each epoch saves something, so that the chain is one.
        rig.put(&format!("k{:04}", at + 2), "new").await;
    }
    assert_eq!(shown(&page(&rig.store, next(&scans[0], 1_000)).await.unwrap()), expected(1..70), "all 64 live");
    // That one is finished now, and no longer counts.
    for at in 0..2 {
        scans.push(rig.begin(1).await);
        let expired = page(&rig.store, next(&scans[1], 1)).await.is_none();
        assert_eq!(expired, at == 1, "one place was free");
    }
    assert!(page(&rig.store, next(&scans[2], 1)).await.is_some());
}

#[tokio::test]
async fn a_finished_scan_stays_a_link_of_older_ones() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let older = rig.begin(50).await;
    let finished = rig.begin(50).await;
    // Saved in the epoch of the younger scan, which ends then.
    rig.put("k0070", "new").await;
    assert_eq!(rest(&rig.store, "", 50, &finished).await.unwrap(), expected(50..100));
    let entries = rig.entries().await;
    assert_eq!(entries.iter().map(|entry| entry.finished > 0).collect::<Vec<_>>(), [false, true]);
    // Long finished, and tidied up as often as may be.
    for _ in 0..3 {
        rig.edit_snapshots(|at, raw| {
            if at == 1 {
                raw[52..].copy_from_slice(&1_u64.to_be_bytes());
            }
        })
        .await;
        rig.put("other", "").await;
        page(&rig.store, ScanRequest::new("", 1_000)).await.unwrap();
    }
    let saved: Vec<_> = rest(&rig.store, "", 1_000, &older).await.unwrap();
    assert_eq!(saved, expected(50..100));
}

#[tokio::test]
async fn the_last_page_may_be_asked_for_again_for_a_moment() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let first = rig.begin(50).await;
    let last = page(&rig.store, next(&first, 50)).await.unwrap();
    rig.put("k0070", "new").await;
    let again = page(&rig.store, next(&first, 50)).await.unwrap();
    assert_eq!(shown(&again), shown(&last));
    assert_eq!(rig.raw::<Vec<String>>("KEYS {p}:[Suv]*").await.len(), 2);
    // Then nobody needs it, and whoever tidies up drops it with all that it saved.
    rig.edit_snapshots(|_, raw| raw[52..].copy_from_slice(&1_u64.to_be_bytes())).await;
    assert!(page(&rig.store, next(&first, 50)).await.is_none());
    page(&rig.store, ScanRequest::new("", 100)).await.unwrap();
    assert!(rig.raw::<Vec<String>>("KEYS {p}:[Suv]*").await.is_empty(), "with the next start");
}

#[tokio::test]
async fn marking_a_scan_finished_fails_no_page() {
    let rig = Rig::new().await;
    fill(&rig, 100).await;
    let (store, tap) = rig.tapped(true);
    let first = page(&store, ScanRequest::new("", 50)).await.unwrap();
    tap.once(runs(&TIDY), async |_| Err(lost()));
    let last = page(&store, next(&first, 50)).await.unwrap();
    assert_eq!(shown(&last), expected(50..100));
}
