use super::*;

fn fill(store: &LocationStore, count: usize) {
    for index in 0..count {
        now(store.write(put(&format!("k{index:03}"), "old"))).unwrap();
    }
}

fn start(store: &LocationStore) -> Cursor {
    page(now(store.scan(ScanRequest::new("", 1))).unwrap()).next_cursor.expect("more follows")
}

fn after(store: &LocationStore, cursor: &Cursor, limit: u32) -> ScanResult {
    now(store.scan(ScanRequest::new("", limit).after(cursor.clone()))).unwrap()
}

#[test]
fn a_snapshot_shows_its_instant_until_its_time_is_over() {
    let clock = Set::at(1_000);
    let store = location(&in_memory(&clock), "p");
    fill(&store, 5);
    now(store.write(put_for("k005", "expiring", 10))).unwrap();
    let cursor = start(&store);
    now(store.write(put("k001", "new"))).unwrap();
    now(store.write(WriteRequest::new().mutation(Mutation::delete(key("k002"))))).unwrap();
    now(store.write(put("k0011", "new"))).unwrap();
    clock.set(1_000 + limits::SNAPSHOT_LIFE_MS - 1);
    let rest = page(after(&store, &cursor, 10));
    assert_eq!(names(&rest), ["k001", "k002", "k003", "k004", "k005"]);
    assert!(rest.items.iter().all(|item| &item.value.bytes[..] == b"old" || item.key.as_str() == "k005"));
    assert_eq!(rest.store_now.unix_ms(), 1_000 + limits::SNAPSHOT_LIFE_MS - 1);
    assert_eq!(page(after(&store, &cursor, 10)), rest, "the same cursor, the same page");
    clock.set(1_000 + limits::SNAPSHOT_LIFE_MS);
    assert_eq!(after(&store, &cursor, 10), ScanResult::Expired);
}

#[test]
fn the_65th_unfinished_snapshot_of_a_store_drops_its_oldest() {
    let core = in_memory(&Set::at(1_000));
    let (store, other) = (location(&core, "p"), location(&core, "q"));
    fill(&store, 3);
    fill(&other, 3);
    let others = start(&other);
    let cursors: Vec<_> = (0..limits::MAX_SNAPSHOTS).map(|_| start(&store)).collect();
    page(now(store.scan(ScanRequest::new("", 3))).unwrap());
    page(after(&store, &cursors[0], 1));
    // A finished one makes room for another.
    page(after(&store, &cursors[1], 3));
    start(&store);
    page(after(&store, &cursors[0], 1));
    start(&store);
    assert_eq!(after(&store, &cursors[0], 1), ScanResult::Expired);
    page(after(&store, &cursors[1], 3));
    page(after(&store, &cursors[2], 1));
    page(after(&other, &others, 1));
}

#[test]
fn over_the_bound_of_bytes_the_oldest_snapshots_are_dropped() {
    let core = in_memory(&Set::at(1_000));
    let store = location(&core, "");
    let big = |index: usize| {
        let value = vec![0; limits::MAX_VALUE];
        now(store.write(WriteRequest::new().mutation(Mutation::put(key(&format!("big{index:02}")), value)))).unwrap();
    };
    (0..32).for_each(big);
    let first = start(&store);
    (0..20).for_each(big);
    (0..20).for_each(big);
    let second = start(&store);
    page(after(&store, &first, 1));
    (0..32).for_each(big);
    page(after(&store, &first, 1));
    (0..12).for_each(big);
    page(after(&store, &second, 1));
    let third = start(&store);
    (0..12).for_each(big);
    assert_eq!(after(&store, &first, 1), ScanResult::Expired, "over 64 MiB");
    page(after(&store, &second, 1));
    page(after(&store, &third, 1));
}

#[test]
fn a_cursor_is_good_for_its_store_and_prefix_alone() {
    let clock = Set::at(1_000);
    let (one, two) = (in_memory(&clock), in_memory(&clock));
    let (store, other, elsewhere) = (location(&one, "p"), location(&one, "q"), location(&two, "p"));
    for store in [&store, &other, &elsewhere] {
        fill(store, 3);
    }
    let cursor = start(&store);
    assert_eq!(after(&other, &cursor, 1), ScanResult::Expired);
    assert_eq!(after(&elsewhere, &cursor, 1), ScanResult::Expired);
    let scan = ScanRequest::new("k", 1).after(cursor.clone());
    assert_eq!(now(store.scan(scan)).unwrap(), ScanResult::Expired);
    assert_eq!(names(&page(after(&store, &cursor, 1))), ["k001"]);
}

#[test]
fn a_scan_that_ends_on_its_first_page_leaves_nothing_behind() {
    let core = in_memory(&Set::at(1_000));
    let store = location(&core, "");
    fill(&store, 3);
    assert!(page(now(store.scan(ScanRequest::new("", 3))).unwrap()).next_cursor.is_none());
    assert!(core.snapshots().is_empty());
}

#[test]
fn a_page_stops_before_4_mib_and_holds_one_item_at_least() {
    let store = location(&in_memory(&Set::at(1_000)), "");
    for index in 0..9 {
        let value = vec![0; limits::MAX_VALUE];
        now(store.write(WriteRequest::new().mutation(Mutation::put(key(&format!("big{index}")), value)))).unwrap();
    }
    let mut scan = ScanRequest::new("", 1_000);
    let mut lengths = Vec::new();
    loop {
        let page = page(now(store.scan(scan)).unwrap());
        lengths.push(page.items.len());
        let Some(next) = page.next_cursor else { break };
        scan = ScanRequest::new("", 1_000).after(next);
    }
    assert_eq!(lengths, [3, 3, 3]);
}
