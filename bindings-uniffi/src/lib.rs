//! zlink-store for Kotlin, Swift and Python: objects, enums with data and typed errors, through uniffi.
//!
//! Everything is as the core has it; nothing is decided here. A store is made by `open`, without I/O. What a method of a store
//! gives is an **operation**: its arguments are right (wrong ones are thrown by that call) and nothing has been sent. `wait` starts
//! it and is awaited, `result` then takes what came of it, `cancel` ends it at once, and so does freeing the object. `start` starts
//! it without waiting: it says whether the answer is there already.
//!
//! ```text
//! val operation = store.read("actor/7")     // a wrong key throws here
//! operation.wait()                          // suspends; may be cancelled (then: operation.cancel())
//! val result = operation.result()           // ReadResult.Found or .Missing, or a StoreError is thrown
//! ```
//!
//! Why not async methods that give their result? uniffi 0.32 loses a result that is ready but not yet fetched when the task is
//! cancelled at that moment: its buffer, a whole blob, is never freed, and a lease would stay held though nobody knows it. And
//! Swift does not cancel Rust futures at all. With an operation both are right in every language. Each language has a thin layer
//! that makes one `suspend`, `async` or `await` call of the three steps.
//!
//! # Threads
//! Operations run on the core's own threads; `wait` needs no runtime. Stores in memory answer within `start`; no other
//! call blocks. Nothing of the caller's runs on the core's threads but the wake-up that uniffi's generated code makes of the end of
//! a `wait`; with `start_into` not even that, which is Python's way: a thread that calls Python waits for whoever runs there.
//!
//! # Large values
//! Bytes are `ByteArray`, `Data` and `bytes` in any position. uniffi converts them one by one, which takes 0.3 to 0.4 s for 64 MiB; a
//! conversion of our own (`bytes.rs`) copies them once into a buffer of the library, and once out of it, so no special objects
//! are needed for large ones. An argument's bytes are read within the call: the caller may change them as soon as it returns.

mod bytes;
mod drive;
mod ended;
mod error;
mod lease;
mod location;
mod locks;
mod log;
mod operation;
mod options;
mod project;
mod relocation;
mod state;
mod stats;
mod store;
mod time;

pub use ended::EndedOperations;
pub use error::{Outcome, StoreError};
pub use lease::{LeaseReleaseOperation, LeaseReleaseResult, LeaseRenewOperation, LeaseRenewResult, LockLease};
pub use location::{
    Condition, LocationStore, Mutation, PingOperation, PutVersion, ReadOperation, ReadResult, ScanItem, ScanOperation,
    ScanResult, StoredValue, WriteOperation, WriteResult,
};
pub use locks::{AcquireOperation, AttachOperation, DistributedLocks};
pub use log::{LogEvent, LogEvents};
pub use options::{ProjectOptions, StoreOptions};
pub use project::Project;
pub use relocation::{
    BlobDeleteOperation, BlobPutOperation, BlobPutResult, BlobReadOperation, BlobReadResult, BlobRenewOperation, BlobRenewResult,
    RelocationStore,
};
pub use state::{
    ProjectState, StateDeleteOperation, StateDeleteResult, StateEntry, StateGetOperation, StateNamespace, StateSetOperation,
    StateSetResult,
};
pub use stats::Stats;
pub use store::ShutdownOperation;

uniffi::setup_scaffolding!();

/// The version of this library.
#[uniffi::export]
pub fn library_version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
