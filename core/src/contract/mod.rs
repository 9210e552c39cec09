//! The vocabulary: values, requests, results, limits and errors. No I/O, and nobody above is known here.

mod blob;
mod error;
mod json;
pub mod limits;
mod lock;
mod name;
mod read;
mod scan;
mod state;
mod text;
mod time;
mod write;

pub use blob::{BlobPutResult, BlobReadResult, BlobRenewResult, Payload, PayloadSource};
pub use error::{Code, Error, Outcome};
pub use json::JsonText;
pub use lock::{LockOptions, ReleaseResult, RenewResult};
pub use name::{Name, Namespace, ProjectId, ProjectName, Workspace};
pub use read::{ReadResult, StoredValue};
pub use scan::{ScanItem, ScanPage, ScanRequest, ScanResult};
pub use state::{StateDeleteResult, StateEntry, StateSetResult, StateWriteOptions};
pub use text::{BlobReference, Cursor, Key, KeyPrefix, Version};
pub use time::{Retention, StoreTime};
pub use write::{Condition, Mutation, PutVersion, WriteRequest, WriteResult};

pub(crate) use lock::{Grant, LeaseId, LockName, check_lease_ms};
pub(crate) use state::check_expected_version;
