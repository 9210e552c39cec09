import Dispatch
import Foundation
import ZlinkStore

/// A call whose arguments are worked out; it begins when it is awaited.
typealias Call = () async throws -> Fields

/// The result of a call, also if that is an error.
func resultOf(_ call: Call) async throws -> Fields {
    do {
        return try await call()
    } catch {
        return try failure(error)
    }
}

func failure(_ error: Error) throws -> Fields {
    if error is CancellationError { return ["error": "CANCELLED"] }
    if error is LockUnavailableError { return ["kind": "unavailable"] }
    if error is LockLostError { return ["kind": "lost"] }
    guard let error = error as? StoreError else { throw error }
    var fields: Fields = ["error": error.code(), "message": error.text()]
    fields["outcome"] = error.resultOutcome() == .unknown ? "unknown" : "notApplied"
    if case let .InvalidArgument(argument, _) = error { fields["argument"] = argument }
    return fields
}

/// The same fields without those that have no value.
private func present(_ fields: [String: Any?]) -> Fields {
    fields.compactMapValues { $0 }
}

/// The steps that call a store.
struct Calls {
    let step: Fields
    let values: Values

    func on(_ store: LocationStore) throws -> Call {
        if let key = step["read"] {
            let key = try values.text(key)
            return {
                switch try await store.read(key) {
                case let .missing(storeNowMs): return ["kind": "missing", "storeNow": storeNowMs]
                case let .found(value):
                    try live(value.expiresAtMs, value.storeNowMs)
                    return record(value).merging(["kind": "found", "storeNow": value.storeNowMs]) { one, _ in one }
                }
            }
        }
        if let scan = (step["scan"] ?? step["scanAll"]) as? Fields {
            let prefix = try scan["prefix"].map { try values.text($0) } ?? ""
            let cursor = try scan["cursor"].map { try values.text($0) }
            let limit = try scan["limit"].map { try values.number($0) } ?? 1_000
            let all = step["scanAll"] != nil
            return { all ? try await scanAll(store, prefix, limit) : try await page(store, prefix, cursor, limit) }
        }
        var conditions: [Condition] = []
        var mutations: [Mutation] = []
        if let write = step["write"] as? Fields {
            for element in try values.expand(write["conditions"] as? [Any] ?? []) {
                guard let form = element.form as? Fields else { continue }
                conditions.append(
                    form["missing"] != nil
                        ? .missing(key: try element.values.text(form["missing"]))
                        : .version(key: try element.values.text(form["version"]), expected: try element.values.text(form["expected"]))
                )
            }
            for element in try values.expand(write["mutations"] as? [Any] ?? []) {
                guard let form = element.form as? Fields else { continue }
                mutations.append(try mutation(form, element.values))
            }
        } else {
            mutations.append(try mutation(step, values))
        }
        let (checks, changes) = (conditions, mutations)
        return {
            switch try await store.write(conditions: checks, mutations: changes) {
            case let .conflict(storeNowMs): return ["kind": "conflict", "storeNow": storeNowMs]
            case let .applied(putVersions, storeNowMs):
                let keys = putVersions.map { $0.key }
                return ["kind": "applied", "storeNow": storeNowMs, "keys": keys, "versions": putVersions.map { $0.version }]
            }
        }
    }

    func on(_ store: RelocationStore) throws -> Call {
        if let reference = step["blobPut"] {
            let (reference, bytes) = (try values.text(reference), try values.bytes(step["bytes"]))
            let retentionMs = try values.number(step["retentionMs"])
            return {
                switch try await store.put(reference, bytes: bytes, retentionMs: retentionMs) {
                case let .stored(expiresAtMs, storeNowMs): return ["kind": "stored", "expiresAt": expiresAtMs, "storeNow": storeNowMs]
                case let .alreadyStored(expiresAtMs, storeNowMs):
                    return ["kind": "alreadyStored", "expiresAt": expiresAtMs, "storeNow": storeNowMs]
                case let .conflict(storeNowMs): return ["kind": "conflict", "storeNow": storeNowMs]
                }
            }
        }
        if let reference = step["blobRead"] {
            let reference = try values.text(reference)
            return {
                switch try await store.read(reference) {
                case let .missing(storeNowMs): return ["kind": "missing", "storeNow": storeNowMs]
                case let .found(bytes, expiresAtMs, storeNowMs):
                    try live(expiresAtMs, storeNowMs)
                    return ["kind": "found", "bytes": bytes, "expiresAt": expiresAtMs, "storeNow": storeNowMs]
                }
            }
        }
        if let reference = step["blobRenew"] {
            let (reference, retentionMs) = (try values.text(reference), try values.number(step["retentionMs"]))
            return {
                switch try await store.renew(reference, retentionMs: retentionMs) {
                case let .missing(storeNowMs): return ["kind": "missing", "storeNow": storeNowMs]
                case let .renewed(expiresAtMs, storeNowMs): return ["kind": "renewed", "expiresAt": expiresAtMs, "storeNow": storeNowMs]
                }
            }
        }
        let reference = try values.text(step["blobDelete"])
        return {
            try await store.delete(reference)
            return ["kind": "deleted"]
        }
    }

    func on(_ state: ProjectState) throws -> Call {
        if let name = step["stateNamespace"] {
            let name = try values.text(name)
            return { ["kind": "namespace", "name": try state.namespace(name).name] }
        }
        let name = try step["namespace"].map { try values.text($0) } ?? "ns"
        let expectedVersion = try step["expectedVersion"].map { try values.number($0) }
        if let key = step["stateGet"] {
            let key = try values.text(key)
            return { try await state.namespace(name).get(key).map { entry("entry", $0) } ?? ["kind": "missing"] }
        }
        if let key = step["stateSet"] {
            let (key, json) = (try values.text(key), try values.text(step["json"]))
            let ttlSeconds = try step["ttlSeconds"].map { try values.number($0) }
            return {
                let namespace = try state.namespace(name)
                switch try await namespace.set(key, json: json, expectedVersion: expectedVersion, ttlSeconds: ttlSeconds) {
                case let .stored(stored): return entry("stored", stored)
                case .conflict: return ["kind": "conflict"]
                case .limitReached: return ["kind": "limitReached"]
                }
            }
        }
        let key = try values.text(step["stateDelete"])
        return {
            switch try await state.namespace(name).delete(key, expectedVersion: expectedVersion) {
            case .deleted: return ["kind": "deleted"]
            case .missing: return ["kind": "missing"]
            case .conflict: return ["kind": "conflict"]
            }
        }
    }

    func on(_ locks: DistributedLocks) throws -> Call {
        if let key = step["lockAcquire"] {
            let (key, options) = (try values.text(key), try LockOptions(step, values))
            return {
                let began = DispatchTime.now().uptimeNanoseconds
                var result = try await resultOf {
                    try await locks.acquire(key, namespace: options.namespace, waitMs: options.waitMs, leaseMs: options.leaseMs)
                        .map(leaseFields) ?? ["kind": "unavailable"]
                }
                // Whole milliseconds, upwards: a timer counts no finer.
                result["tookMs"] = Int64((DispatchTime.now().uptimeNanoseconds - began + 999_999) / 1_000_000)
                return result
            }
        }
        if let id = step["lockAttach"] {
            let id = try values.text(id)
            return { try await locks.attach(id).map(leaseFields) ?? ["kind": "lost"] }
        }
        let name = try values.text(step["lockRenew"] ?? step["lockRelease"] ?? step["lease"])
        guard let lease = try values.named(name + ".object") as? LockLease else { throw Failed(description: "no lease \(name)") }
        if step["lockRenew"] != nil {
            let leaseMs = try step["leaseMs"].map { try values.number($0) }
            return {
                if case let .renewed(expiresAtMs) = try await lease.renew(leaseMs: leaseMs) {
                    try verify(expiresAtMs == lease.expiresAtMs, "the lease object does not say the new expiresAt")
                    return ["kind": "renewed", "expiresAt": expiresAtMs]
                }
                return ["kind": "lost"]
            }
        }
        if step["lockRelease"] != nil {
            return { ["kind": try await lease.release() == .released ? "released" : "lost"] }
        }
        return { leaseFields(lease) }
    }
}

/// What a step says of an acquire; what it leaves out is left out of the call.
struct LockOptions {
    let namespace: String?
    let waitMs: Int64?
    let leaseMs: Int64?

    init(_ step: Fields, _ values: Values) throws {
        namespace = try step["namespace"].map { try values.text($0) }
        waitMs = try step["waitMs"].map { try values.number($0) }
        leaseMs = try step["leaseMs"].map { try values.number($0) }
    }
}

func leaseFields(_ lease: LockLease) -> Fields {
    [
        "kind": "lease", "id": lease.id, "key": lease.key, "namespace": lease.namespace, "fencingToken": lease.fencingToken,
        "expiresAt": lease.expiresAtMs, "object": lease,
    ]
}

func verify(_ holds: Bool, _ otherwise: String) throws {
    if !holds { throw Failed(description: otherwise) }
}

private func mutation(_ form: Fields, _ values: Values) throws -> Mutation {
    if let key = form["delete"] { return .delete(key: try values.text(key)) }
    let retentionMs = try form["retentionMs"].map { try values.number($0) }
    return .put(key: try values.text(form["put"]), bytes: try values.bytes(form["bytes"]), retentionMs: retentionMs)
}

private func live(_ expiresAtMs: Int64?, _ storeNowMs: Int64) throws {
    try verify(expiresAtMs.map { $0 > storeNowMs } ?? true, "an expired record was given out")
}

private func record(_ value: StoredValue) -> Fields {
    present(["bytes": value.bytes, "version": value.version, "expiresAt": value.expiresAtMs])
}

private func entry(_ kind: String, _ entry: StateEntry) -> Fields {
    present([
        "kind": kind, "json": entry.json, "version": entry.version, "createdAt": entry.createdAtMs, "updatedAt": entry.updatedAtMs,
        "expiresAt": entry.expiresAtMs,
    ])
}

private func page(_ store: LocationStore, _ prefix: String, _ cursor: String?, _ limit: Int64) async throws -> Fields {
    guard case let .page(items, nextCursor, storeNowMs) = try await store.scan(prefix: prefix, cursor: cursor, limit: limit) else {
        return ["kind": "expired"]
    }
    try verify(items.count <= limit, "more items than the limit")
    try verify(!items.isEmpty || nextCursor == nil && cursor == nil, "an empty page in the middle of a scan")
    var size = 0
    for (index, item) in items.enumerated() {
        try verify(index == 0 || items[index - 1].key.utf8.lexicographicallyPrecedes(item.key.utf8), "a page out of order")
        try verify(item.key.utf8.starts(with: prefix.utf8), "a key without the prefix")
        try verify(item.value.storeNowMs == storeNowMs, "an item with another storeNow than its page")
        if cursor == nil { try live(item.value.expiresAtMs, storeNowMs) }
        size += item.key.utf8.count + item.value.bytes.count + item.value.version.utf8.count
    }
    try verify(size <= 4 * 1024 * 1024 || items.count == 1, "a page of \(size) bytes")
    let shown = items.map { item in record(item.value).merging(["key": item.key]) { one, _ in one } }
    return present(["kind": "page", "storeNow": storeNowMs, "items": shown, "nextCursor": nextCursor])
}

private func scanAll(_ store: LocationStore, _ prefix: String, _ limit: Int64) async throws -> Fields {
    var items: [Any] = []
    var pages: Int64 = 0
    var storeNow: Any?
    var cursor: String?
    repeat {
        let answer = try await page(store, prefix, cursor, limit)
        guard let more = answer["items"] as? [Any] else { return answer }
        items += more
        pages += 1
        storeNow = storeNow ?? answer["storeNow"]
        cursor = answer["nextCursor"] as? String
    } while cursor != nil
    return present(["kind": "all", "items": items, "pages": pages, "storeNow": storeNow])
}
