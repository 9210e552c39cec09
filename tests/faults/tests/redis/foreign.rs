//! Somebody puts a value of a foreign type where a record of ours would lie.

use zlink_store::{Code, Key, Mutation, Outcome, ReadResult, ScanRequest, ScanResult, WriteRequest, WriteResult};
use zlink_test_faults::party::Party;
use zlink_test_faults::workload::{Load, Plan};

use crate::rig::{for_parties, long, server, turn_to_work};

async fn a_foreign_type_at_a_key_fails_nobody_else(party: Party) {
    let _turn = turn_to_work().await;
    let server = server();
    let mut load = Load::open(&server.url(), Plan::of(party)).await;
    load.start();
    load.goes_on(100).await;
    let key = |number: usize| Key::new(format!("foreign/{number:04}")).expect("a legal key");
    let physical = |number: usize| format!("{{load}}:r:foreign/{number:04}");
    let over = tokio::spawn(tokio::time::sleep(long(4)));
    let mut times = 0;
    while !over.is_finished() {
        server.say(&["HSET", &physical(3), "a", "b"]);
        server.say(&["LPUSH", &physical(1_500), "a"]);
        for store in load.locations() {
            // Alone, and so beside other callers' writes in one call.
            let error = store.write(WriteRequest::new().mutation(Mutation::put(key(3), "x"))).await.expect_err("a refusal");
            assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{error:?}");
            // In the midst of a large commit: nothing of it is there.
            let puts = (0..2_000).map(|number| Mutation::put(key(number), vec![1; 100]));
            let error =
                store.write(WriteRequest { mutations: puts.collect(), ..WriteRequest::default() }).await.expect_err("a refusal");
            assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{error:?}");
            let ScanResult::Page(page) = store.scan(ScanRequest::new("foreign/", 10)).await.expect("an answer") else {
                panic!("expired")
            };
            assert!(page.items.is_empty(), "part of a refused commit is there: {page:?}");
            let read = store.read(key(3)).await.expect("an answer");
            assert!(matches!(read, ReadResult::Missing { .. }), "{read:?}");
        }
        server.say(&["DEL", &physical(3), &physical(1_500)]);
        // Mended: the same commit works.
        let puts: Vec<_> = (0..2_000).map(|number| Mutation::put(key(number), vec![1; 100])).collect();
        let deletes = puts.iter().map(|put| Mutation::delete(put.key().clone())).collect();
        for mutations in [puts, deletes] {
            let applied =
                load.locations()[0].write(WriteRequest { mutations, ..WriteRequest::default() }).await.expect("an answer");
            assert!(matches!(applied, WriteResult::Applied { .. }), "{applied:?}");
        }
        times += 1;
        tokio::task::yield_now().await;
    }
    assert!(times > 0);
    load.finish("a foreign type at a key").await;
}

for_parties!([core Core, node Node] [a_foreign_type_at_a_key_fails_nobody_else]);
