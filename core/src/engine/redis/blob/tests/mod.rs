//! The blob engine against a real server.

mod contract;

use zlink_test_servers::RedisServer;

use crate::contract::{BlobReference, Retention};
use crate::{RelocationStore, StoreOptions};

/// A server of the test's own.
struct Rig {
    server: RedisServer,
}

impl Rig {
    fn start(extra: &[&str]) -> Self {
        Self { server: RedisServer::start(extra).unwrap() }
    }

    fn store(&self) -> RelocationStore {
        RelocationStore::open(&self.server.url(), StoreOptions::with_prefix("t").unwrap()).unwrap()
    }
}

fn reference(text: &str) -> BlobReference {
    BlobReference::new(text).unwrap()
}

fn retention(ms: u64) -> Retention {
    Retention::from_ms(ms).unwrap()
}

/// Bytes that differ at every place and in every segment.
fn bytes(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    (0..size)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect()
}

/// Runs a test's future to its end.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
