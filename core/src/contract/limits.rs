//! The limits of the contract (spec: stores.md, Limits). All sizes are bytes of UTF-8 or of the value.

/// Largest key.
pub const MAX_KEY: usize = 1_024;
/// Largest version or cursor.
pub const MAX_VERSION: usize = 4_096;
/// Largest value.
pub const MAX_VALUE: usize = 1_048_576;
/// Largest retention in milliseconds: 2^53 − 1, the largest safe integer of JavaScript.
pub const MAX_RETENTION_MS: u64 = (1 << 53) - 1;
/// The last instant of a JavaScript `Date` in Unix milliseconds; every expiry saturates here.
pub const MAX_TIME_MS: u64 = 8_640_000_000_000_000;
/// Most unique keys of one write, conditions and mutations together.
pub const MAX_WRITE_KEYS: usize = 2_048;
/// Largest encoded size of one write and of one scan page.
pub const MAX_ENCODED: usize = 4 * 1_048_576;
/// Largest scan prefix.
pub const MAX_PREFIX: usize = 1_024;
/// Largest number of items in a scan page.
pub const MAX_SCAN_LIMIT: u32 = 1_000;
/// Largest blob reference.
pub const MAX_REFERENCE: usize = 4_096;
/// Largest blob: 64 MiB and the framework's 23-byte envelope.
pub const MAX_BLOB: usize = 64 * 1_048_576 + 23;
/// Largest key prefix of a store.
pub const MAX_KEY_PREFIX: usize = 256;
/// How long a snapshot lives from its first page, in milliseconds.
pub const SNAPSHOT_LIFE_MS: u64 = 5 * 60 * 1_000;
/// Most unfinished snapshots of one store.
pub const MAX_SNAPSHOTS: usize = 64;
/// Bytes of replaced values that the snapshots of one store may hold.
pub const SNAPSHOT_BYTES: usize = 64 * 1_048_576;
/// Default operation timeout in milliseconds.
pub const DEFAULT_OPERATION_TIMEOUT_MS: u64 = 5_000;
/// Largest operation timeout in milliseconds: what a 32-bit timer holds.
pub const MAX_OPERATION_TIMEOUT_MS: u64 = (1 << 31) - 1;
/// Largest workspace, project or namespace, in characters (they are ASCII).
pub const MAX_NAMESPACE: usize = 128;
/// Largest key of project state or of a lock, in characters (they are ASCII).
pub const MAX_NAME: usize = 255;
/// Largest JSON text of a state entry.
pub const MAX_JSON: usize = 32_768;
/// Largest time to live of a state entry in seconds: 365 days.
pub const MAX_TTL_SECONDS: u64 = 31_536_000;
/// Largest whole number of options, versions and fencing tokens: 2^53 − 1, the largest safe integer of JavaScript.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// Most live state entries of one project.
pub const MAX_ENTRIES: u64 = 100_000;
/// Longest wait for a lock in milliseconds.
pub const MAX_LOCK_WAIT_MS: u64 = 10_000;
/// Shortest lease in milliseconds.
pub const MIN_LEASE_MS: u64 = 5_000;
/// Longest lease in milliseconds.
pub const MAX_LEASE_MS: u64 = 60_000;
/// A lease's length in milliseconds, if nothing is said.
pub const DEFAULT_LEASE_MS: u64 = 30_000;
/// Most leases that one invocation holds at a time, pending acquires counted.
pub const MAX_LEASES: usize = 16;
