//! Where replicas must acknowledge.

use zlink_test_servers::{Action, Proxy, Settings};

use super::*;
use crate::contract::{Code, Outcome};
use crate::engine::redis::blob::wire::{DELETE, FINISH, RENEW};
use crate::engine::redis::tests::tap::{lost, runs};
use crate::{RelocationStore, StoreOptions};

const TIMEOUT_MS: u64 = 1_500;

fn store(port: u16) -> RelocationStore {
    let options = StoreOptions { operation_timeout_ms: TIMEOUT_MS, ..StoreOptions::with_prefix("t").unwrap() };
    RelocationStore::open(&format!("redis://127.0.0.1:{port}?min_acked_replicas=1"), options).unwrap()
}

fn replica_of(primary: &RedisServer) -> RedisServer {
    let replica = RedisServer::with(Settings { replica_of: Some(primary.port()), ..Settings::default() }).unwrap();
    until("the replica is in step", || primary.say(&["INFO", "replication"]).text().contains("state=online"));
    replica
}

fn is_unknown<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error:?}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error:?}");
}

#[test]
fn what_too_few_replicas_have_is_unknown() {
    let primary = RedisServer::start(&[]).unwrap();
    let store = store(primary.port());
    run(async {
        for size in WAYS {
            let name = || reference(&format!("b{size}"));
            is_unknown(store.put(name(), bytes(size), retention(MINUTE)).await);
            // It is there, and still nobody else has it: not even "already stored" is said.
            assert!(matches!(store.read(name()).await.unwrap(), BlobReadResult::Found { .. }));
            is_unknown(store.put(name(), bytes(size), retention(MINUTE)).await);
            is_unknown(store.renew(name(), retention(2 * MINUTE)).await);
            is_unknown(store.delete(name()).await);
            is_unknown(store.delete(name()).await);
        }
    });
}

#[test]
fn with_enough_replicas_all_is_as_without() {
    let primary = RedisServer::start(&[]).unwrap();
    let replica = replica_of(&primary);
    let store = store(primary.port());
    run(async {
        for size in WAYS {
            let name = || reference(&format!("b{size}"));
            stored(&store.put(name(), bytes(size), retention(MINUTE)).await.unwrap());
            assert_ne!(replica.say(&["DBSIZE"]).number(), 0, "acknowledged before the replica had it");
            let again = store.put(name(), bytes(size), retention(MINUTE)).await.unwrap();
            assert!(matches!(again, BlobPutResult::AlreadyStored { .. }));
            assert!(matches!(store.renew(name(), retention(MINUTE)).await.unwrap(), BlobRenewResult::Renewed { .. }));
            store.delete(name()).await.unwrap();
            store.delete(name()).await.unwrap();
        }
    });
}

#[test]
fn own_work_that_is_found_after_a_lost_answer_counts_once_replicas_have_it() {
    let primary = RedisServer::start(&[]).unwrap();
    let replica = replica_of(&primary);
    let proxy = Proxy::to(primary.port()).unwrap();
    let store = store(proxy.port());
    let name = || reference("b");
    run(async {
        // The scripts are known, so that what is cut is a call that does its work.
        for size in WAYS {
            stored(&store.put(name(), bytes(size), retention(MINUTE)).await.unwrap());
            store.renew(name(), retention(MINUTE)).await.unwrap();
            store.delete(name()).await.unwrap();
        }
        for paused in [true, false] {
            for size in WAYS {
                for operation in ["put", "renew", "delete"] {
                    if operation != "put" {
                        stored(&store.put(name(), bytes(size), retention(MINUTE)).await.unwrap());
                    }
                    if paused {
                        replica.pause().unwrap();
                    }
                    proxy.once("EVALSHA", 0, Action::DropReply);
                    let result = match operation {
                        "put" => store.put(name(), bytes(size), retention(MINUTE)).await.map(|put| _ = stored(&put)),
                        "renew" => store.renew(name(), retention(MINUTE)).await.map(drop),
                        _ => store.delete(name()).await,
                    };
                    if paused {
                        // The connection is a new one, on which WAIT alone would not wait.
                        is_unknown(result);
                        replica.resume().unwrap();
                    } else {
                        result.unwrap();
                    }
                    store.delete(name()).await.unwrap();
                }
            }
        }
    });
}

#[test]
fn what_finds_its_own_work_writes_something_and_waits_for_that() {
    let primary = RedisServer::start(&[]).unwrap();
    let _replica = replica_of(&primary);
    let mut config = RedisConfig::single(Address::Tcp("127.0.0.1".to_owned(), primary.port()));
    config.min_acked_replicas = 1;
    let store = Store::new(config, true);
    run(async {
        for script in [&FINISH, &RENEW, &DELETE] {
            store.tap.once(runs(script), |send| async move {
                send.await.unwrap();
                Err(lost())
            });
        }
        stored(&store.put("b", "b", MINUTE).await.unwrap());
        store.renew("b", MINUTE).await.unwrap();
        store.delete("b").await.unwrap();
    });
    let seen = store.tap.seen();
    for script in [&FINISH, &RENEW, &DELETE] {
        let again = seen.iter().filter(|batch| runs(script)(batch)).nth(1).unwrap();
        let names: Vec<&[u8]> = again.commands.iter().map(|command| &command[0][..]).collect();
        assert_eq!(names[1..], [&b"SET"[..], b"WAIT"], "WAIT waits for what its connection wrote");
    }
}
