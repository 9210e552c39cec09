use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::ambient;

#[test]
fn an_upload_that_is_dropped_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Arc::new(Blobs::new(folder.path().to_owned()));
    let until = |over: &dyn Fn() -> bool| {
        let deadline = ambient::monotonic() + Duration::from_secs(30);
        while !over() {
            assert!(ambient::monotonic() < deadline, "files of uploads that were dropped stay");
            std::thread::yield_now();
        }
    };
    for round in 0..3_000_u32 {
        let mut receiving = blobs.receive(u128::from(round).to_be_bytes(), vec![7; 100].into()).boxed();
        // The file is being made from here on: it is dropped while that goes on, sooner or later.
        assert!(receiving.as_mut().now_or_never().is_none());
        let end = ambient::monotonic() + Duration::from_micros(u64::from(round % 60));
        until(&|| ambient::monotonic() >= end);
    }
    until(&|| fs::read_dir(folder.path()).unwrap().count() == 0 && blobs.active.lock().is_empty());
}
