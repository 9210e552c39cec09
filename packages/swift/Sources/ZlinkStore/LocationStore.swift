import Foundation
import ZlinkStoreNative

/// Small records under opaque keys: conditional atomic batches, exact snapshot scans, expiry by the engine's own clock.
///
/// A wrong argument throws `StoreError.InvalidArgument` before anything else happens. Any number of tasks may use one store.
public final class LocationStore: Sendable {
    private let native: ZlinkStoreNative.LocationStore

    /// Makes a store, without I/O: the first operation connects. `url` is `memory:`, `memory:name`, `file:/path`, `redis://…` or its
    /// kin; `keyPrefix` (at most 256 bytes of UTF-8 without braces) is needed on Redis; the timeout is 1..2^31−1 ms, 5 s if left out.
    public init(url: String, keyPrefix: String = "", operationTimeoutMs: Int64? = nil) throws {
        let options = StoreOptions(keyPrefix: keyPrefix, operationTimeoutMs: operationTimeoutMs)
        native = try ZlinkStoreNative.LocationStore.open(url: url, options: options)
    }

    /// Reads one key (1..1,024 bytes of UTF-8): one observation of value, version, expiry and clock.
    public func read(_ key: String) async throws -> ReadResult {
        try await run(native.read(key: key)) { try $0.result() }
    }

    /// Checks all conditions and, if all hold, applies all mutations as one atomic commit: at most 2,048 keys and 4 MiB.
    public func write(conditions: [Condition] = [], mutations: [Mutation] = []) async throws -> WriteResult {
        try await run(native.write(conditions: conditions, mutations: mutations)) { try $0.result() }
    }

    /// Reads one page of a snapshot scan. Without a cursor it is the first page, which fixes the snapshot (it lives 5 minutes); then
    /// the cursor is the page before's `nextCursor`. The limit is 1..1,000.
    public func scan(prefix: String = "", cursor: String? = nil, limit: Int64 = 1_000) async throws -> ScanResult {
        try await run(native.scan(prefix: prefix, cursor: cursor, limit: limit)) { try $0.result() }
    }

    /// All records whose keys start with `prefix`, as they stood at one instant. Each iteration is a scan of its own; it throws
    /// `ScanExpiredError` if the snapshot is gone before the end.
    public func items(prefix: String = "", pageSize: Int64 = 1_000) -> Items {
        Items(store: self, prefix: prefix, pageSize: pageSize)
    }

    /// Asks the engine for its clock, in Unix milliseconds: shows that it answers.
    public func ping() async throws -> Int64 {
        try await run(native.ping()) { try $0.result() }
    }

    /// What this store has counted so far.
    public func stats() -> Stats {
        native.stats()
    }

    /// Fails new operations with `StoreError.Closed`, waits for those under way (at most the operation timeout) and gives up the
    /// connection. Doing it again does nothing more.
    public func shutdown() async {
        await native.shutdown()
    }
}

/// The records of a scan, page by page.
public struct Items: AsyncSequence, Sendable {
    public typealias Element = ScanItem

    let store: LocationStore
    let prefix: String
    let pageSize: Int64

    public func makeAsyncIterator() -> Iterator {
        Iterator(scan: self)
    }

    public struct Iterator: AsyncIteratorProtocol {
        private let scan: Items
        private var page: [ScanItem] = []
        private var at = 0
        private var cursor: String?
        private var over = false

        init(scan: Items) {
            self.scan = scan
        }

        public mutating func next() async throws -> ScanItem? {
            while at == page.count {
                if over {
                    return nil
                }
                switch try await scan.store.scan(prefix: scan.prefix, cursor: cursor, limit: scan.pageSize) {
                case .expired:
                    throw ScanExpiredError()
                case let .page(items, nextCursor, _):
                    page = items
                    at = 0
                    cursor = nextCursor
                    over = nextCursor == nil
                }
            }
            defer { at += 1 }
            return page[at]
        }
    }
}
