import ZlinkStoreNative

/// A project's state and locks: one connection, one life.
public final class Project: Sendable {
    private let native: ZlinkStoreNative.Project

    /// Makes a project, without I/O. `url` as for a `LocationStore`; `workspace` and `project` are 1..255 characters of
    /// `A-Z a-z 0-9 . _ : / -`, the first a letter or digit.
    public init(url: String, workspace: String, project: String, operationTimeoutMs: Int64? = nil) throws {
        let options = ProjectOptions(operationTimeoutMs: operationTimeoutMs)
        native = try ZlinkStoreNative.Project.open(url: url, workspace: workspace, project: project, options: options)
    }

    /// The project's state.
    public var state: ProjectState {
        ProjectState(native: native.state())
    }

    /// The project's locks, for one invocation: it holds at most 16 leases at a time. With `withinMs` the invocation ends so many
    /// milliseconds from now, and no wait for a lock goes on past that.
    public func locks(withinMs: Int64? = nil) throws -> DistributedLocks {
        DistributedLocks(native: try native.locks(withinMs: withinMs))
    }

    /// As `LocationStore`'s.
    public func ping() async throws -> Int64 {
        try await run(native.ping()) { try $0.result() }
    }

    /// What was counted so far.
    public func stats() -> Stats {
        native.stats()
    }

    /// As `LocationStore`'s; who waits for a lock is told `StoreError.Closed` at once. Leases that are held stay until they expire.
    public func shutdown() async {
        await native.shutdown()
    }
}

/// The state of one project: durable JSON entries under namespaces and keys, at most 100,000 live ones.
public final class ProjectState: Sendable {
    private let native: ZlinkStoreNative.ProjectState

    init(native: ZlinkStoreNative.ProjectState) {
        self.native = native
    }

    /// The entries of one namespace (1..128 characters, as a project's name); no I/O.
    public func namespace(_ name: String) throws -> StateNamespace {
        StateNamespace(native: try native.namespace(name: name))
    }
}

/// The entries of one namespace. A key is 1..255 characters, as a project's name.
public final class StateNamespace: Sendable {
    private let native: ZlinkStoreNative.StateNamespace

    init(native: ZlinkStoreNative.StateNamespace) {
        self.native = native
    }

    /// Its name.
    public var name: String {
        native.name()
    }

    /// The live entry under `key`.
    public func get(_ key: String) async throws -> StateEntry? {
        try await run(native.get(key: key)) { try $0.result() }
    }

    /// Writes JSON text (at most 32,768 bytes in the form of `JSON.stringify`) as one atomic step. `expectedVersion` 0: only if there is
    /// no entry; n > 0: only version n; left out: in any case. `ttlSeconds` (1..31,536,000): how long it lives; left out: for ever.
    public func set(
        _ key: String, json: String, expectedVersion: Int64? = nil, ttlSeconds: Int64? = nil
    ) async throws -> StateSetResult {
        try await run(native.set(key: key, json: json, expectedVersion: expectedVersion, ttlSeconds: ttlSeconds)) { try $0.result() }
    }

    /// Deletes the live entry under `key`; with `expectedVersion` only that version.
    public func delete(_ key: String, expectedVersion: Int64? = nil) async throws -> StateDeleteResult {
        try await run(native.delete(key: key, expectedVersion: expectedVersion)) { try $0.result() }
    }
}
