import ZlinkStoreNative

/// The locks of one project, for one invocation: at most 16 leases at a time, pending acquires counted.
public final class DistributedLocks: Sendable {
    private let native: ZlinkStoreNative.DistributedLocks

    init(native: ZlinkStoreNative.DistributedLocks) {
        self.native = native
    }

    /// Takes the lock, or gives `nil` if it could not be had within `waitMs` (0..10,000; 0 if left out). The lease lasts `leaseMs`
    /// (5,000..60,000; 30,000 if left out). A cancelled or failed acquire leaves no lease behind.
    public func acquire(
        _ key: String, namespace: String? = nil, waitMs: Int64? = nil, leaseMs: Int64? = nil
    ) async throws -> LockLease? {
        let operation = try native.acquire(key: key, namespace: namespace, waitMs: waitMs, leaseMs: leaseMs)
        return try await run(operation) { try $0.result() }.map { LockLease(native: $0) }
    }

    /// The live lease of this id, whoever acquired it in this project; `nil` if there is none.
    public func attach(_ id: String) async throws -> LockLease? {
        try await run(native.attach(id: id)) { try $0.result() }.map { LockLease(native: $0) }
    }

    /// Takes the lock for the run of `body` and releases it at its end, also when the task is cancelled meanwhile. Nothing is renewed by
    /// itself. What `body` throws goes before an error of the release. Throws `LockUnavailableError` if the lock could not be had in
    /// time, and `LockLostError` if the lease had ended before `body` did.
    public func withLock<T: Sendable>(
        _ key: String, namespace: String? = nil, waitMs: Int64? = nil, leaseMs: Int64? = nil,
        _ body: @Sendable (LockLease) async throws -> T
    ) async throws -> T {
        guard let lease = try await acquire(key, namespace: namespace, waitMs: waitMs, leaseMs: leaseMs) else {
            throw LockUnavailableError()
        }
        let result: T
        do {
            result = try await body(lease)
        } catch {
            // The lease ends by expiry if this fails; what the body threw is what its caller is to know.
            _ = try? await lease.releaseWhateverComes()
            throw error
        }
        if try await lease.releaseWhateverComes() == .lost {
            throw LockLostError()
        }
        return result
    }
}

/// A lease: the lock is ours until it is released or expires. An object that is dropped releases nothing.
public final class LockLease: Sendable {
    private let native: ZlinkStoreNative.LockLease

    init(native: ZlinkStoreNative.LockLease) {
        self.native = native
    }

    /// Whoever knows it may renew and release the lease, from any process of the same project: keep it to yourself.
    public var id: String { native.id() }

    /// The lock's key.
    public var key: String { native.key() }

    /// The lock's namespace.
    public var namespace: String { native.namespace() }

    /// Larger than that of every earlier lease of this lock: have what the lock guards refuse a smaller one than it has seen.
    public var fencingToken: Int64 { native.fencingToken() }

    /// When the lease expires, as last renewed through this object, in Unix milliseconds of the engine's clock.
    public var expiresAtMs: Int64 { native.expiresAtMs() }

    /// From the engine's now on the lease lasts `leaseMs` (5,000..60,000; if left out, as long as it was acquired for).
    public func renew(leaseMs: Int64? = nil) async throws -> LeaseRenewResult {
        try await run(native.renew(leaseMs: leaseMs)) { try $0.result() }
    }

    /// Frees the lock. After a release that succeeded, doing it again through this object does nothing.
    public func release() async throws -> LeaseReleaseResult {
        try await run(native.release()) { try $0.result() }
    }

    /// Releases in a task of its own, which the cancellation of the caller's does not reach.
    func releaseWhateverComes() async throws -> LeaseReleaseResult {
        try await Task { try await self.release() }.value
    }
}
