//! 100,000 live entries, exactly.

use futures_util::future::join_all;
use tempfile::TempDir;

use super::*;
use crate::StateNamespace;

const TTL: StateWriteOptions = StateWriteOptions { expected_version: None, ttl_seconds: Some(10) };

async fn set(entries: &StateNamespace, key: &str, options: StateWriteOptions) -> StateSetResult {
    entries.set(key, "1", options).await.unwrap()
}

fn stored(result: &StateSetResult) -> bool {
    matches!(result, StateSetResult::Stored(_))
}

async fn create(entries: &StateNamespace, key: &str) -> bool {
    match set(entries, key, StateWriteOptions { expected_version: Some(0), ttl_seconds: None }).await {
        StateSetResult::Stored(entry) => entry.version == 1,
        StateSetResult::LimitReached => false,
        StateSetResult::Conflict => panic!("{key} was there"),
    }
}

/// Fills a project up: the last ten entries expire at `clock` + 10 s, one second later than the rest of those below.
async fn the_limit<S: Storage>(core: &Arc<Core<S>>, clock: &Set) {
    let project = project(core, "full");
    let entries = project.state().namespace("n").unwrap();
    let other = project.state().namespace("m").unwrap();
    for thousand in 0..100 {
        let sets = (0..1_000).map(|index| {
            let options = if thousand == 99 && index >= 900 { TTL } else { StateWriteOptions::default() };
            entries.set(format!("k{}", thousand * 1_000 + index), "1", options)
        });
        assert!(join_all(sets).await.into_iter().all(|result| stored(&result.unwrap())));
    }

    assert_eq!(set(&entries, "new", StateWriteOptions::default()).await, StateSetResult::LimitReached);
    assert_eq!(set(&other, "k1", StateWriteOptions::default()).await, StateSetResult::LimitReached, "it is the project's limit");
    assert_eq!(entries.get("new").await.unwrap(), None);
    let expecting = StateWriteOptions { expected_version: Some(1), ttl_seconds: None };
    assert_eq!(set(&entries, "new", expecting).await, StateSetResult::Conflict, "a conflict is found first");
    let StateSetResult::Stored(updated) = set(&entries, "k5", StateWriteOptions::default()).await else { panic!("an update") };
    assert_eq!(updated.version, 2);

    // A deletion makes room for one, at once; a deletion of nothing for none.
    assert_eq!(entries.delete("k6", None).await.unwrap(), StateDeleteResult::Deleted);
    assert_eq!(entries.delete("k6", None).await.unwrap(), StateDeleteResult::Missing);
    assert!(create(&other, "one").await);
    assert!(!create(&other, "two").await);

    // Racers for the last place.
    for round in 0..3 {
        assert_eq!(entries.delete(format!("k{}", 10 + round), None).await.unwrap(), StateDeleteResult::Deleted);
        let racers = (0..50).map(|racer| tokio::spawn(other.set(format!("r{round}-{racer}"), "1", StateWriteOptions::default())));
        let results: Vec<_> = join_all(racers).await.into_iter().map(|joined| joined.unwrap().unwrap()).collect();
        assert_eq!(results.iter().filter(|result| stored(result)).count(), 1);
        assert_eq!(results.iter().filter(|result| **result == StateSetResult::LimitReached).count(), 49);
    }

    // An expiry makes room for one, at the instant.
    let StateSetResult::Stored(short) =
        set(&entries, "k0", StateWriteOptions { expected_version: None, ttl_seconds: Some(9) }).await
    else {
        panic!("an update")
    };
    let expiry = short.expires_at.unwrap().unix_ms();
    clock.set(expiry - 1);
    assert!(!create(&other, "three").await);
    clock.set(expiry);
    assert!(create(&other, "three").await);
    assert!(!create(&other, "four").await);
    assert!(!create(&entries, "k0").await, "what has expired needs a place like any other");

    // A hundred at once, and again exactly a hundred places.
    clock.set(expiry + 1_000);
    let creations = join_all((0..150).map(|index| other.set(format!("c{index}"), "1", StateWriteOptions::default()))).await;
    assert_eq!(creations.iter().filter(|result| stored(result.as_ref().unwrap())).count(), 100);
    assert!(!create(&other, "five").await);
    project.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_entries_in_memory_and_not_one_more() {
    let clock = Set::at(1_000_000);
    let core = in_memory(&clock);
    the_limit(&core, &clock).await;
    // The limit is one project's.
    let other = project(&core, "other").state().namespace("n").unwrap();
    assert!(create(&other, "k").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_entries_in_a_folder_and_not_one_more() {
    let folder = TempDir::new().unwrap();
    let clock = Set::at(1_000_000);
    the_limit(&in_folder(folder.path(), &clock).unwrap(), &clock).await;

    // The count is kept with the data, and what expires while nobody has the folder open does not count either.
    let reopened = || project(&in_folder(folder.path(), &clock).unwrap(), "full");
    let full = reopened();
    let entries = full.state().namespace("n").unwrap();
    assert!(!create(&entries, "again").await);
    assert_eq!(entries.delete("k20", None).await.unwrap(), StateDeleteResult::Deleted);
    assert_eq!(entries.delete("k21", None).await.unwrap(), StateDeleteResult::Deleted);
    assert!(create(&entries, "durable").await);
    let StateSetResult::Stored(short) = set(&entries, "short", TTL).await else { panic!("there was a place") };
    assert!(!create(&entries, "again").await);
    full.close().await;
    clock.set(short.expires_at.unwrap().unix_ms());
    let full = reopened();
    let entries = full.state().namespace("n").unwrap();
    assert!(create(&entries, "again").await);
    assert!(!create(&entries, "and-again").await);
    full.close().await;
}

#[tokio::test]
async fn what_has_expired_or_is_deleted_leaves_nothing_behind() {
    let clock = Set::at(1_000);
    let core = in_memory(&clock);
    let project = project(&core, "p");
    let entries = project.state().namespace("n").unwrap();
    for index in 0..300 {
        assert!(stored(&set(&entries, &format!("k{index}"), TTL).await));
        take(&project.locks(), &format!("k{index}")).await;
    }
    assert!(stored(&set(&entries, "k0", StateWriteOptions::default()).await));
    clock.set(11_000);
    core.upkeep().await.unwrap();
    let lengths = core.storage.lengths();
    assert_eq!(lengths[Table::Entries as usize], 1, "the one without an expiry");
    assert_eq!(entries.delete("k0", None).await.unwrap(), StateDeleteResult::Deleted);
    clock.set(1_000 + limits::MAX_LEASE_MS);
    core.upkeep().await.unwrap();
    let lengths = core.storage.lengths();
    assert_eq!(lengths.iter().sum::<usize>(), lengths[Table::Projects as usize], "{lengths:?}");
}
