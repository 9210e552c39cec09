//! The server's memory is full, and then not.

use zlink_store::{
    BlobReference, Code, Condition, Key, Mutation, Outcome, Retention, ScanRequest, ScanResult, WriteRequest, WriteResult,
};
use zlink_test_faults::party::Party;
use zlink_test_faults::rounds;
use zlink_test_faults::workload::{Load, Plan};

use crate::rig::{for_parties, long, server, turn_to_work};

fn key(number: usize) -> Key {
    Key::new(format!("full/{number}")).expect("a legal key")
}

async fn memory_is_full_and_then_not(party: Party) {
    let _turn = turn_to_work().await;
    let server = server();
    let mut load = Load::open(&server.url(), Plan { allowed: &[Code::OutOfMemory], ..Plan::of(party) }).await;
    let retention = Retention::from_ms(600_000).expect("a legal retention");
    for round in 0..2 * rounds() {
        let puts = (0..60).map(|number| Mutation::put(key(number), vec![7; 30_000]));
        let filled = load.locations()[0].write(WriteRequest { mutations: puts.collect(), ..WriteRequest::default() }).await;
        assert!(matches!(filled, Ok(WriteResult::Applied { .. })), "{filled:?}");
        if round == 0 {
            load.start();
        }
        load.goes_on(200).await;
        // Just full: whoever deletes makes room for whoever puts.
        let used = used_memory(&server);
        server.say(&["CONFIG", "SET", "maxmemory", &(used - 100_000).to_string()]);
        tokio::time::sleep(long(2)).await;
        // Full beyond hope.
        server.say(&["CONFIG", "SET", "maxmemory", "1mb"]);
        for (number, store) in load.locations().iter().enumerate() {
            // A put is refused as a whole, also beside deletes and behind a condition.
            let refused = WriteRequest::new()
                .condition(Condition::Missing { key: Key::new("full/new").expect("a legal key") })
                .mutation(Mutation::delete(key(50)))
                .mutation(Mutation::put(Key::new("full/new").expect("a legal key"), "x"));
            let error = store.write(refused).await.expect_err("a refusal");
            assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied), "{error:?}");
            // A snapshot over many pages starts and goes on, and shows that nothing of the refused commit was done.
            let mut request = ScanRequest::new("full/", 9);
            let mut shown = Vec::new();
            loop {
                let ScanResult::Page(page) = store.scan(request).await.expect("an answer") else { panic!("a scan expired") };
                shown.extend(page.items.into_iter().map(|item| item.key));
                let Some(cursor) = page.next_cursor else { break };
                request = ScanRequest::new("full/", 9).after(cursor);
            }
            assert_eq!(shown.len(), 60 - number, "{shown:?}");
            assert!(shown.contains(&key(50)) && !shown.contains(&Key::new("full/new").expect("a legal key")));
            // A commit that only deletes works.
            let deleted = store.write(WriteRequest::new().mutation(Mutation::delete(key(number)))).await;
            assert!(matches!(deleted, Ok(WriteResult::Applied { .. })), "{deleted:?}");
        }
        for store in load.relocations() {
            let reference = || BlobReference::new("full/blob").expect("a legal reference");
            let error = store.put(reference(), vec![1; 400_000], retention).await.expect_err("a refusal");
            assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied), "{error:?}");
            store.read(reference()).await.expect("an answer");
            store.delete(reference()).await.expect("an answer");
        }
        server.say(&["CONFIG", "SET", "maxmemory", "0"]);
        load.works().await;
    }
    load.goes_on(200).await;
    let counts = load.finish("maxmemory reached").await;
    assert!(counts.not_applied > 50, "{counts:?}");
    assert_eq!(counts.unknown, 0, "a refusal is no lost answer");
}

fn used_memory(server: &zlink_test_servers::RedisServer) -> u64 {
    let info = server.say(&["INFO", "memory"]).text();
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("a line in INFO memory");
    used.trim().parse().expect("a number of bytes")
}

for_parties!([core Core, node Node] [memory_is_full_and_then_not]);
