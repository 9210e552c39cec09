//! Small, exact, shared memory for server frameworks and serverless runtimes.
//!
//! A [`LocationStore`] keeps small records under opaque keys: conditional atomic batches, snapshot scans and the
//! provider's own clock. A [`RelocationStore`] keeps immutable blobs under references that the caller issues. A [`Project`]
//! has state (JSON with compare-and-set) and locks (leases with fencing tokens). All run on an embedded engine (in memory, or
//! in a folder on disk) and on Redis; the engine is chosen by URL.
//!
//! ```
//! use zlink_store::{Key, LocationStore, Mutation, ReadResult, WriteRequest};
//!
//! # async fn example() -> Result<(), zlink_store::Error> {
//! let store = LocationStore::open("memory:", Default::default())?;
//! let key = Key::new("actor/7")?;
//! store.write(WriteRequest::new().mutation(Mutation::put(key.clone(), "node-1"))).await?;
//! if let ReadResult::Found(value) = store.read(key).await? {
//!     assert_eq!(&value.bytes[..], b"node-1");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Every future may be polled from any executor: sockets, timers and disks live on threads of our own.

mod ambient;
mod background;
mod call;
mod contract;
mod engine;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod location;
pub mod packed;
mod project;
mod relocation;
pub mod runtime;

pub use background::spawn;
pub use call::{Cancellation, Operation, StoreStats, UnderWay};
pub use contract::*;
pub use engine::{Address, Endpoint, Pem, RedisConfig, Secret, Server, StoreOptions, Tls, host};
pub use location::LocationStore;
pub use project::{DistributedLocks, LockLease, Project, ProjectOptions, ProjectState, StateNamespace, WithLockError};
pub use relocation::RelocationStore;
