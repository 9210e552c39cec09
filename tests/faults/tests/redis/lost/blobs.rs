//! Operations of a Relocation Store.

use std::sync::atomic::Ordering;

use zlink_store::{BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Retention};
use zlink_test_faults::party::Party;

use super::{Done, Rig, retention, unknown};
use crate::left::nothing_stays;
use crate::rig::{for_parties, turn_to_work};

async fn blobs_take_effect_at_most_once(party: Party) {
    let _turn = turn_to_work().await;
    let rig = Rig::new(party).await;
    let rig = &rig;
    for (name, size) in [("small blob put", 1_000), ("blob put in one round trip", 900_000), ("blob put", 2_500_000)] {
        rig.sweep(name, |done| {
            Box::pin(async move {
                let reference = rig.fresh_blob();
                let put = rig.blobs.put(reference.clone(), vec![7; size], retention()).await;
                let seen = match rig.seen_blob(&reference).await {
                    BlobReadResult::Found { bytes, expires_at, .. } => {
                        assert!(bytes == vec![7; size], "torn");
                        Some(expires_at)
                    }
                    BlobReadResult::Missing { .. } => None,
                };
                match &put {
                    Ok(BlobPutResult::Stored { expires_at, .. } | BlobPutResult::AlreadyStored { expires_at, .. }) => {
                        assert_eq!(seen, Some(*expires_at), "what was acknowledged is not there");
                    }
                    Ok(BlobPutResult::Conflict { .. }) => panic!("a conflict with itself"),
                    // Segments and script go out together up to 2 MiB, and may be lost together: those that follow the one that was done too.
                    Err(error) => assert!(size < 10_000 && done != Done::Yes || size == 900_000, "{error:?}"),
                }
                let again = rig.blob_seer.put(reference, vec![7; size], retention()).await.expect("a put beside the fault");
                let stored = matches!(again, BlobPutResult::Stored { .. });
                assert!(stored == seen.is_none() && !matches!(again, BlobPutResult::Conflict { .. }), "{again:?} after {put:?}");
                unknown(&put)
            })
        })
        .await;
    }
    rig.sweep("blob read", |_| {
        Box::pin(async move {
            let reference = rig.fresh_blob();
            rig.blob_seer.put(reference.clone(), vec![7; 900_000], retention()).await.expect("a put beside the fault");
            let read = rig.blobs.read(reference).await;
            assert!(matches!(&read, Ok(BlobReadResult::Found { bytes, .. }) if *bytes == vec![7; 900_000]), "{read:?}");
            false
        })
    })
    .await;
    rig.sweep("blob renewal", |_| {
        Box::pin(async move {
            let reference = rig.fresh_blob();
            rig.blob_seer.put(reference.clone(), vec![7; 300_000], retention()).await.expect("a put beside the fault");
            let shorter = Retention::from_ms(1_000_000).expect("a legal retention");
            let renewed = rig.blobs.renew(reference.clone(), shorter).await;
            let Ok(BlobRenewResult::Renewed { expires_at, .. }) = renewed else { panic!("{renewed:?}") };
            let seen = rig.seen_blob(&reference).await;
            assert!(matches!(seen, BlobReadResult::Found { expires_at: seen, .. } if seen == expires_at), "{expires_at:?}");
            false
        })
    })
    .await;
    rig.sweep("blob delete", |_| {
        Box::pin(async move {
            let reference = rig.fresh_blob();
            rig.blob_seer.put(reference.clone(), vec![7; 300_000], retention()).await.expect("a put beside the fault");
            rig.blobs.delete(reference.clone()).await.expect("a delete");
            let seen = rig.seen_blob(&reference).await;
            assert!(matches!(seen, BlobReadResult::Missing { .. }), "a deleted blob is there");
            false
        })
    })
    .await;
    for number in 0..rig.made.load(Ordering::Relaxed) {
        rig.blob_seer.delete(BlobReference::new(format!("k{number}")).expect("a legal reference")).await.expect("a delete");
    }
    nothing_stays(&rig.server, "p");
    rig.finish("an answer or the line lost at each command of a blob").await;
}

for_parties!([core Core, node Node, java Java] [blobs_take_effect_at_most_once]);
