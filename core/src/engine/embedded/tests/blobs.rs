//! Blobs in a folder: the files beside the tables.

use std::fs;
use std::ops::Range;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tempfile::TempDir;

use super::*;

const LARGE: usize = 9 * 1_024 * 1_024 + 17;

fn pattern(size: usize) -> Bytes {
    (0..=250).cycle().take(size).collect::<Vec<u8>>().into()
}

fn files(folder: &TempDir) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder.path().join("blobs")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn open(folder: &TempDir) -> RelocationStore {
    relocation(&in_folder(folder.path(), &Set::at(1_000)).unwrap(), "p")
}

#[tokio::test]
async fn a_blob_comes_back_as_it_was_put_whatever_its_size() {
    let folder = TempDir::new().unwrap();
    let sizes = [0, 1, 256 * 1_024, 256 * 1_024 + 1, 1_024 * 1_024, LARGE];
    let store = open(&folder);
    for size in sizes {
        let reference = reference(&format!("r{size}"));
        let stored = store.put(reference.clone(), pattern(size), ms(1_000)).await.unwrap();
        assert!(matches!(stored, BlobPutResult::Stored { .. }));
        let again = store.put(reference.clone(), pattern(size), ms(5_000)).await.unwrap();
        let (expires_at, store_now) = (StoreTime::from_unix_ms(2_000), StoreTime::from_unix_ms(1_000));
        assert_eq!(again, BlobPutResult::AlreadyStored { expires_at, store_now }, "{size} bytes");
        let mut other = pattern(size).to_vec();
        match other.last_mut() {
            Some(last) => *last ^= 1,
            None => other.push(0),
        }
        let conflict = store.put(reference, other, ms(1_000)).await.unwrap();
        assert_eq!(conflict, BlobPutResult::Conflict { store_now }, "{size} bytes");
    }
    assert_eq!(files(&folder).len(), 3, "an upload that lost leaves nothing");
    store.close().await;
    let store = open(&folder);
    for size in sizes {
        let found = store.read(reference(&format!("r{size}"))).await.unwrap();
        let BlobReadResult::Found { bytes, .. } = found else { panic!("missing") };
        assert_eq!(bytes, pattern(size), "{size} bytes");
        store.delete(reference(&format!("r{size}"))).await.unwrap();
        assert!(matches!(store.read(reference(&format!("r{size}"))).await.unwrap(), BlobReadResult::Missing { .. }));
    }
    eventually(|| files(&folder).is_empty()).await;
}

/// Hands over some bytes, then keeps its caller waiting for ever.
struct Stuck;

impl PayloadSource for Stuck {
    fn size(&self) -> usize {
        LARGE
    }

    fn range(&self, range: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            if range.start > 0 {
                std::future::pending::<()>().await;
            }
            Ok(vec![0; range.len()].into())
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_put_that_was_cut_off_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    store.put(reference("whole"), pattern(LARGE), ms(1_000)).await.unwrap();
    let payload = Payload::Source(Arc::new(Stuck));
    let put = tokio::spawn(store.put(reference("cut off"), payload, ms(1_000)));
    eventually(|| files(&folder).len() == 2).await;
    put.abort();
    eventually(|| files(&folder).len() == 1).await;
    assert!(matches!(store.read(reference("cut off")).await.unwrap(), BlobReadResult::Missing { .. }));
}

#[tokio::test]
async fn what_a_crash_left_goes_at_the_next_opening() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    store.put(reference("whole"), pattern(LARGE), ms(1_000)).await.unwrap();
    store.close().await;
    let left = folder.path().join("blobs/00112233445566778899aabbccddeeff");
    fs::write(&left, "left by an upload").unwrap();
    let store = open(&folder);
    eventually(|| !left.exists()).await;
    let found = store.read(reference("whole")).await.unwrap();
    assert!(matches!(found, BlobReadResult::Found { bytes, .. } if bytes == pattern(LARGE)));
}

#[tokio::test]
async fn a_damaged_blob_is_an_error() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    store.put(reference("r"), pattern(LARGE), ms(1_000)).await.unwrap();
    let file = files(&folder).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    bytes[LARGE / 2] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(store.read(reference("r")).await.unwrap_err().code(), Code::Internal);
    fs::write(&file, &bytes[..LARGE - 1]).unwrap();
    assert_eq!(store.read(reference("r")).await.unwrap_err().code(), Code::Internal);
    fs::remove_file(&file).unwrap();
    assert_eq!(store.read(reference("r")).await.unwrap_err().code(), Code::Internal);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_puts_at_once_one_stores() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for round in 0..5 {
        let reference = reference(&format!("r{round}"));
        let mut other = pattern(LARGE).to_vec();
        other[0] ^= 1;
        let puts = [pattern(LARGE), pattern(LARGE), other.into()];
        let puts = puts.map(|payload| tokio::spawn(store.put(reference.clone(), payload, ms(1_000))));
        let mut stored = 0;
        for put in puts {
            stored += usize::from(matches!(put.await.unwrap().unwrap(), BlobPutResult::Stored { .. }));
        }
        assert_eq!(stored, 1);
        eventually(|| files(&folder).len() == round + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_beside_deletes_and_puts_is_whole_or_missing() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..20 {
                store.put(reference("r"), pattern(LARGE), ms(1_000)).await.unwrap();
                store.delete(reference("r")).await.unwrap();
            }
        })
    };
    let mut seen = 0;
    while !writer.is_finished() {
        if let BlobReadResult::Found { bytes, .. } = store.read(reference("r")).await.unwrap() {
            assert!(bytes == pattern(LARGE));
            seen += 1;
        }
    }
    writer.await.unwrap();
    assert!(seen > 0);
}
