import Foundation
import ZlinkStoreNative

// Values as the native library has them. Every `…Ms` is whole milliseconds: an instant in Unix milliseconds of the engine's clock, or
// a length. Bytes are `Data`.

/// A live record: `bytes`, `version`, `expiresAtMs?`, `storeNowMs`, all of one instant.
public typealias StoredValue = ZlinkStoreNative.StoredValue
/// `.missing(storeNowMs:)` or `.found(value:)`.
public typealias ReadResult = ZlinkStoreNative.ReadResult
/// What must hold before a write applies: `.missing(key:)` or `.version(key:expected:)`.
public typealias Condition = ZlinkStoreNative.Condition
/// What a write changes: `.put(key:bytes:retentionMs:)` or `.delete(key:)`.
public typealias Mutation = ZlinkStoreNative.Mutation
/// `.applied(putVersions:storeNowMs:)`, in the order of the puts, or `.conflict(storeNowMs:)`.
public typealias WriteResult = ZlinkStoreNative.WriteResult
/// The version that one put got.
public typealias PutVersion = ZlinkStoreNative.PutVersion
/// `.page(items:nextCursor:storeNowMs:)` or `.expired`.
public typealias ScanResult = ZlinkStoreNative.ScanResult
/// One record of a scan.
public typealias ScanItem = ZlinkStoreNative.ScanItem
/// `.stored`, `.alreadyStored` (both `expiresAtMs:storeNowMs:`) or `.conflict(storeNowMs:)`.
public typealias BlobPutResult = ZlinkStoreNative.BlobPutResult
/// `.missing(storeNowMs:)` or `.found(bytes:expiresAtMs:storeNowMs:)`.
public typealias BlobReadResult = ZlinkStoreNative.BlobReadResult
/// `.missing(storeNowMs:)` or `.renewed(expiresAtMs:storeNowMs:)`.
public typealias BlobRenewResult = ZlinkStoreNative.BlobRenewResult
/// A live entry of a project's state: `json`, `version`, `createdAtMs`, `updatedAtMs`, `expiresAtMs?`.
public typealias StateEntry = ZlinkStoreNative.StateEntry
/// `.stored(entry:)`, `.conflict` or `.limitReached`.
public typealias StateSetResult = ZlinkStoreNative.StateSetResult
/// `.deleted`, `.missing` or `.conflict`.
public typealias StateDeleteResult = ZlinkStoreNative.StateDeleteResult
/// `.renewed(expiresAtMs:)` or `.lost`.
public typealias LeaseRenewResult = ZlinkStoreNative.LeaseRenewResult
/// `.released` or `.lost`.
public typealias LeaseReleaseResult = ZlinkStoreNative.LeaseReleaseResult
/// Counters of one store since it was made.
public typealias Stats = ZlinkStoreNative.Stats
/// Why a call gave no result: a case for each code, `InvalidArgument` among them; `code()`, `resultOutcome()` and `retryable()` say the
/// same in every language. A cancelled task gets `CancellationError` instead.
public typealias StoreError = ZlinkStoreNative.StoreError
/// What became of an operation that failed: `.notApplied` or `.unknown`.
public typealias Outcome = ZlinkStoreNative.Outcome

/// The lock could not be had in time; what it was to guard was not begun.
public struct LockUnavailableError: Error {}

/// The lease was lost or had expired.
public struct LockLostError: Error {}

/// The snapshot of a scan was gone before its end: drop what was read and start again.
public struct ScanExpiredError: Error {}
