//! What stores.md says of a Relocation Store.

use super::*;
use crate::contract::{BlobPutResult, BlobReadResult, BlobRenewResult, limits};
use crate::engine::redis::blob::manifest::SEGMENT;

#[test]
fn blobs_of_every_size_come_back_as_they_were() {
    let rig = Rig::start(&[]);
    let store = rig.store();
    run(async {
        for size in [0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 5 * SEGMENT + 7, limits::MAX_BLOB] {
            let name = reference(&format!("size {size}"));
            let payload = bytes(size);
            let put = store.put(name.clone(), payload.clone(), retention(60_000)).await.unwrap();
            let BlobPutResult::Stored { expires_at, store_now } = put else { panic!("{size}: {put:?}") };
            assert_eq!(expires_at, store_now.plus(retention(60_000)));
            let again = store.put(name.clone(), payload.clone(), retention(90_000)).await.unwrap();
            assert!(
                matches!(again, BlobPutResult::AlreadyStored { expires_at: stands, .. } if stands == expires_at),
                "{again:?}"
            );
            let mut other = payload.clone();
            match other.last_mut() {
                Some(last) => *last ^= 1,
                None => other.push(0),
            }
            let conflict = store.put(name.clone(), other, retention(90_000)).await.unwrap();
            assert!(matches!(conflict, BlobPutResult::Conflict { .. }), "{conflict:?}");
            let read = store.read(name.clone()).await.unwrap();
            let BlobReadResult::Found { bytes, expires_at: told, .. } = read else { panic!("{size}: {read:?}") };
            assert!(bytes == payload, "{size}: other bytes");
            assert_eq!(told, expires_at);
            assert!(bytes.is_unique() || bytes.is_empty());
            store.delete(name.clone()).await.unwrap();
            assert!(matches!(store.read(name.clone()).await.unwrap(), BlobReadResult::Missing { .. }));
            let missing = store.renew(name, retention(1)).await.unwrap();
            assert!(matches!(missing, BlobRenewResult::Missing { .. }));
        }
    });
}
