//! The vocabulary: values, requests, results, limits and errors. No I/O, and nobody above is known here.

mod blob;
mod error;
pub mod limits;
mod read;
mod scan;
mod text;
mod time;
mod write;

pub use blob::{BlobPutResult, BlobReadResult, BlobRenewResult, Payload, PayloadSource};
pub use error::{Code, Error, Outcome};
pub use read::{ReadResult, StoredValue};
pub use scan::{ScanItem, ScanPage, ScanRequest, ScanResult};
pub use text::{BlobReference, Cursor, Key, KeyPrefix, Version};
pub use time::{Retention, StoreTime};
pub use write::{Condition, Mutation, PutVersion, WriteRequest, WriteResult};
