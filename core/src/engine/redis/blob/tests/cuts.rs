//! Real connections that are cut before, in and after each kind of command, and answers that are cut or dropped.

use zlink_test_servers::{Action, Proxy, Way};

use super::*;
use crate::contract::{Outcome, limits};
use crate::{RelocationStore, StoreOptions};

const ACTIONS: [Action; 5] = [Action::CutBefore, Action::CutInside, Action::CutAfter, Action::DropReply, Action::CutReply];

fn store(proxy: &Proxy) -> RelocationStore {
    let options = StoreOptions { operation_timeout_ms: 20_000, ..StoreOptions::with_prefix("t").unwrap() };
    RelocationStore::open(&proxy.url(), options).unwrap()
}

async fn holds(store: &RelocationStore, name: &BlobReference, expected: &[u8]) -> bool {
    match store.read(name.clone()).await.unwrap() {
        BlobReadResult::Found { bytes, .. } => {
            assert!(bytes == expected, "other bytes came back");
            true
        }
        BlobReadResult::Missing { .. } => false,
    }
}

fn is_stored(put: &BlobPutResult) -> bool {
    matches!(put, BlobPutResult::Stored { .. } | BlobPutResult::AlreadyStored { .. })
}

#[test]
fn whatever_is_cut_is_done_once_or_said_to_be_unknown() {
    let rig = Rig::start(&[]);
    let proxy = Proxy::to(rig.server.port()).unwrap();
    let store = store(&proxy);
    run(async {
        for size in WAYS {
            let payload = bytes(size);
            // The scripts are known from here on.
            let warm = reference("warm");
            stored(&store.put(warm.clone(), payload.clone(), retention(MINUTE)).await.unwrap());
            store.renew(warm.clone(), retention(MINUTE)).await.unwrap();
            store.delete(warm).await.unwrap();
            for action in ACTIONS {
                for command in ["SET", "EVALSHA", "EXEC"] {
                    let name = reference(&format!("{size} {action:?} {command}"));
                    if size > AT_ONCE || command != "EXEC" {
                        proxy.once(command, 0, action.clone());
                    }
                    match store.put(name.clone(), payload.clone(), retention(MINUTE)).await {
                        Ok(put) => {
                            assert!(is_stored(&put), "{name}: {put:?}");
                            assert!(holds(&store, &name, &payload).await, "{name}: acknowledged and lost");
                        }
                        // What surely was not applied is done again, since there is time.
                        Err(error) => assert_eq!(error.outcome(), Outcome::Unknown, "{name}: {error:?}"),
                    }
                    // Never a conflict with what it may have stored itself.
                    let again = store.put(name.clone(), payload.clone(), retention(MINUTE)).await.unwrap();
                    assert!(is_stored(&again), "{name}: {again:?}");
                }
                let name = reference(&format!("{size} {action:?} EXEC"));
                for command in ["EXEC", "GET"] {
                    proxy.once(command, 0, action.clone());
                    assert!(holds(&store, &name, &payload).await, "{name}: a read is repeated");
                }
                for command in ["EXEC", "EVALSHA"] {
                    proxy.once(command, 0, action.clone());
                    let renewed = store.renew(name.clone(), retention(2 * MINUTE)).await.unwrap();
                    let BlobRenewResult::Renewed { expires_at, store_now } = renewed else { panic!("{name}: {renewed:?}") };
                    assert_eq!(expires_at, store_now.plus(retention(2 * MINUTE)));
                }
                for command in ["EXEC", "EVALSHA"] {
                    stored_or_there(&store, &name, &payload).await;
                    proxy.once(command, 0, action.clone());
                    store.delete(name.clone()).await.unwrap();
                    assert!(!holds(&store, &name, &payload).await, "{name}: deleted and there");
                }
            }
        }
    });
    // Some of them are being removed just now.
    for key in rig.keys() {
        rig.expiry(&key);
    }
}

async fn stored_or_there(store: &RelocationStore, name: &BlobReference, payload: &[u8]) {
    assert!(is_stored(&store.put(name.clone(), payload.to_vec(), retention(MINUTE)).await.unwrap()));
}

#[test]
fn the_largest_blob_is_stored_over_a_link_that_is_cut_half_way() {
    let rig = Rig::start(&[]);
    let proxy = Proxy::to(rig.server.port()).unwrap();
    let store = store(&proxy);
    let (name, payload) = (reference("x"), bytes(limits::MAX_BLOB));
    run(async {
        let half = u64::try_from(payload.len() / 2).unwrap();
        proxy.cut_after(Way::Requests, half);
        stored(&store.put(name.clone(), payload.clone(), retention(MINUTE)).await.unwrap());
        proxy.cut_after(Way::Replies, half);
        assert!(holds(&store, &name, &payload).await);
    });
    assert!(proxy.accepted() > 3, "nothing was cut");
}
