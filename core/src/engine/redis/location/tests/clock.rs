//! The server's clock may step: no snapshot comes back that was over, and none is read that could be wrong.

use super::super::tidy::Finished;
use super::rig::*;
use crate::contract::*;

/// Everything that changes something.
const CHANGES: [&str; 6] = ["put", "several", "delete", "mixed", "scan", "tidy"];

async fn change(rig: &Rig, what: &str) {
    let store = rig.other();
    let put = |name: &str| Mutation::put(key(name), "new");
    let write = |mutations: Vec<Mutation>| store.write(WriteRequest { conditions: Vec::new(), mutations });
    match what {
        "put" => drop(applied(write(vec![put("new")]).await)),
        "several" => drop(applied(write(vec![put("new"), put("newer")]).await)),
        "delete" => drop(applied(write(vec![Mutation::delete(key("k50"))]).await)),
        "mixed" => drop(applied(write(vec![put("new"), Mutation::delete(key("k50"))]).await)),
        "scan" => assert!(page(&store, ScanRequest::new("", 1)).await.unwrap().next_cursor.is_some()),
        _ => {
            let (engine, client) = rig.engine();
            let deadline = crate::ambient::monotonic() + std::time::Duration::from_secs(5);
            engine.0.finish(&client, [7; 16], Finished::ForGood, deadline).await;
        }
    }
}

async fn with_scans(count: usize) -> Rig {
    let rig = Rig::new().await;
    for at in 0..100 {
        rig.put(&format!("k{at:02}"), "old").await;
    }
    for _ in 0..count {
        page(&rig.store, ScanRequest::new("", 1)).await.unwrap();
        rig.put("k10", "new").await;
    }
    rig
}

#[tokio::test]
async fn whatever_changes_something_first_takes_overdue_snapshots_away() {
    for what in CHANGES {
        let rig = with_scans(3).await;
        let before = rig.entries().await;
        // The first two are overdue by now.
        rig.edit_snapshots(|at, raw| {
            if at < 2 {
                set_start(raw, before[at].start.unix_ms() - limits::SNAPSHOT_LIFE_MS);
            }
        })
        .await;
        change(&rig, what).await;
        // The clock steps back: what has left cannot come back.
        let left = rig.entries().await;
        let ids: Vec<_> = left.iter().map(|entry| entry.id).collect();
        assert_eq!(ids[0], before[2].id, "{what}");
        assert_eq!(ids.len(), 1 + usize::from(what == "scan"), "{what}");
        let undo: Vec<String> = rig.raw("KEYS {p}:u:*").await;
        assert!(undo.len() == 1, "{what} {undo:?}");
    }
}

#[tokio::test]
async fn a_clock_before_the_newest_start_drops_all_snapshots() {
    for what in CHANGES {
        let rig = with_scans(3).await;
        let before = rig.entries().await;
        rig.edit_snapshots(|at, raw| {
            if at == 2 {
                set_start(raw, before[2].start.unix_ms() + 60_000);
            }
        })
        .await;
        change(&rig, what).await;
        let left = rig.entries().await;
        assert_eq!(left.len(), usize::from(what == "scan"), "{what}");
        assert!(left.iter().all(|entry| before.iter().all(|old| old.id != entry.id)), "{what}");
        assert!(rig.raw::<Vec<String>>("KEYS {p}:[uv]:*").await.is_empty(), "{what}");
    }
}
