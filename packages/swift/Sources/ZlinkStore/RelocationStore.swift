import Foundation
import ZlinkStoreNative

/// Immutable blobs of up to 64 MiB + 23 bytes under references that the caller issues (1..4,096 bytes of UTF-8). It is made, used and
/// closed as a `LocationStore`.
public final class RelocationStore: Sendable {
    private let native: ZlinkStoreNative.RelocationStore

    /// As `LocationStore`'s.
    public init(url: String, keyPrefix: String = "", operationTimeoutMs: Int64? = nil) throws {
        let options = StoreOptions(keyPrefix: keyPrefix, operationTimeoutMs: operationTimeoutMs)
        native = try ZlinkStoreNative.RelocationStore.open(url: url, options: options)
    }

    /// Puts a blob for 1..2^53−1 ms from the commit on. It is there whole or not at all.
    public func put(_ reference: String, bytes: Data, retentionMs: Int64) async throws -> BlobPutResult {
        try await run(native.put(reference: reference, bytes: bytes, retentionMs: retentionMs)) { try $0.result() }
    }

    /// Reads a blob: exactly the bytes that were put, or missing.
    public func read(_ reference: String) async throws -> BlobReadResult {
        try await run(native.read(reference: reference)) { try $0.result() }
    }

    /// Sets the expiry to the engine's now + `retentionMs`, also when that is earlier.
    public func renew(_ reference: String, retentionMs: Int64) async throws -> BlobRenewResult {
        try await run(native.renew(reference: reference, retentionMs: retentionMs)) { try $0.result() }
    }

    /// Deletes a blob; a missing one is fine.
    public func delete(_ reference: String) async throws {
        try await run(native.delete(reference: reference)) { try $0.result() }
    }

    /// As `LocationStore`'s.
    public func ping() async throws -> Int64 {
        try await run(native.ping()) { try $0.result() }
    }

    /// What this store has counted so far.
    public func stats() -> Stats {
        native.stats()
    }

    /// As `LocationStore`'s.
    public func shutdown() async {
        await native.shutdown()
    }
}
