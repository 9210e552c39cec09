import Foundation
import ZlinkStore

/// Where a scenario's stores are; `inFront` is put in front of key prefixes.
struct Place {
    let url: String
    let inFront: String
    let capabilities: Set<String>
}

/// Lets what is not `Sendable` into a task: scenarios use it from one task at a time, or only read it.
struct Handed<T>: @unchecked Sendable {
    let value: T
}

private enum Opened {
    case location(LocationStore)
    case relocation(RelocationStore)
    case project(Project, DistributedLocks)

    func close() async {
        switch self {
        case let .location(store): await store.shutdown()
        case let .relocation(store): await store.shutdown()
        case let .project(project, _): await project.shutdown()
        }
    }

    /// How many operations its store has begun.
    var begun: UInt64 {
        switch self {
        case let .location(store): return store.stats().operations.values.reduce(0, +)
        case let .relocation(store): return store.stats().operations.values.reduce(0, +)
        case let .project(project, _): return project.stats().operations.values.reduce(0, +)
        }
    }
}

/// A call that goes on.
private final class Started: @unchecked Sendable {
    private let lock = NSLock()
    private var over = false
    var task: Task<Handed<Fields>, Error>!

    var isOver: Bool {
        lock.lock()
        defer { lock.unlock() }
        return over
    }

    func end() {
        lock.lock()
        defer { lock.unlock() }
        over = true
    }
}

/// What a body of `withLock` throws.
private struct Own: Error {
    let message: String
}

/// Runs the steps of one scenario at a place of its own (README of the scenarios, Steps around them).
final class Run: @unchecked Sendable {
    private let place: Place
    private var named: [String: Opened] = [:]
    private var opened: [Opened] = []
    private var values = Values()
    private var invocations: [String: DistributedLocks] = [:]
    private var started: [String: Started] = [:]
    /// Every version that a put got, and every id that a grant got.
    private var unique: Set<String> = []

    init(place: Place) {
        self.place = place
    }

    func close() async {
        for store in opened { await store.close() }
    }

    /// Runs steps one after the other; `at` says where they stand.
    func steps(_ steps: [Any], _ at: String = "") async throws {
        for (index, step) in steps.enumerated() {
            guard let step = step as? Fields, isMeant(step) else { continue }
            do {
                try await self.step(step, "\(at)\(index)")
            } catch {
                let said = "\(error)"
                throw Failed(description: said.hasPrefix("step ") ? said : "step \(at)\(index): \(said)")
            }
        }
    }

    private func isMeant(_ step: Fields) -> Bool {
        let all = step["if"] as? [String] ?? (step["if"] as? String).map { [$0] } ?? []
        return all.allSatisfy { name in
            let capability = name.hasPrefix("!") ? String(name.dropFirst()) : name
            let there = place.capabilities.contains(capability) || ["signed-numbers", "json-text"].contains(capability)
            return there == (name == capability)
        }
    }

    private func step(_ step: Fields, _ at: String) async throws {
        if let name = step["for"] as? String {
            try await repeated(step, name, at)
        } else if let inner = step["until"] as? Fields {
            try await until(step, inner)
        } else if let calls = step["together"] as? [Any] {
            try await together(step, calls)
        } else if let check = step["check"] {
            try field(values.eval(check), step["expect"]!, values)
        } else if let name = step["start"], let call = step["call"] as? Fields {
            started[try values.text(name)] = try await start(call)
        } else if step["cancel"] != nil {
            try started(step, "cancel").task.cancel()
        } else if step["pending"] != nil {
            try verify(!started(step, "pending").isOver, "it is done already")
        } else if let name = step["locks"] {
            guard case let .project(project, _) = try store(step, values, "project") else { throw Failed(description: "no project") }
            let within = try step["deadlineMs"].map { try values.number($0) }
            invocations[try values.text(name)] = try project.locks(withinMs: within)
        } else {
            let result = try await self.result(step, at)
            try judge(step, result, values)
            try save(step, result)
        }
    }

    private func result(_ step: Fields, _ at: String) async throws -> Fields {
        if let name = step["open"] {
            do {
                keep(try values.text(name), try make(step, step["store"] as? String ?? "location"))
                return ["kind": "opened"]
            } catch {
                return try failure(error)
            }
        }
        if let name = step["close"] {
            await named[try values.text(name)]?.close()
            return ["kind": "closed"]
        }
        if let name = step["stats"] {
            guard let store = named[try values.text(name)] else { throw Failed(description: "no such store") }
            return ["kind": "stats", "operations": Int64(store.begun)]
        }
        if step["await"] != nil { return try await started(step, "await").task.value.value }
        if step["withLock"] != nil { return try await withLock(step, at) }
        let call = try calling(step, values)
        if step["cancelled"] == nil { return try await resultOf(call) }
        let handed = Handed(value: call)
        let task = Task { () async throws -> Handed<Fields> in
            withUnsafeCurrentTask { $0?.cancel() }
            return Handed(value: try await resultOf(handed.value))
        }
        return try await task.value.value
    }

    private func save(_ step: Fields, _ result: Fields) throws {
        if let name = step["save"] as? String { values[try values.text(name)] = result }
    }

    /// Compares a call's result with what its step expects, and looks for what must be unique.
    private func judge(_ step: Fields, _ result: Fields, _ values: Values) throws {
        for version in result["versions"] as? [String] ?? [] {
            try verify(unique.insert("version " + version).inserted, "a version was given out twice")
        }
        if step["lockAcquire"] != nil, let id = result["id"] as? String {
            try verify(unique.insert("lease " + id).inserted, "two grants have the same id")
        }
        if let expectation = step["expect"] {
            try expect(result, expectation, values)
        } else if step["put"] != nil || step["delete"] != nil {
            try verify(result["kind"] as? String == "applied", "expected applied, got \(shown(result))")
        } else {
            try verify(result["error"] == nil, "it failed: \(shown(result))")
        }
    }

    /// Starts a call and waits until its operation has begun, so that calls reach the engine in their order.
    private func start(_ step: Fields) async throws -> Started {
        let store = try self.store(step, values, kind(step))
        let before = store.begun
        let call = Handed(value: try calling(step, values))
        let started = Started()
        started.task = Task {
            defer { started.end() }
            return Handed(value: try await resultOf(call.value))
        }
        while store.begun == before && !started.isOver { try await Task.sleep(nanoseconds: 1_000_000) }
        return started
    }

    private func started(_ step: Fields, _ verb: String) throws -> Started {
        guard let found = started[try values.text(step[verb])] else { throw Failed(description: "nothing was started as that") }
        return found
    }

    private func kind(_ step: Fields) -> String {
        if step.keys.contains(where: { $0.hasPrefix("state") || $0.hasPrefix("lock") || $0 == "lease" || $0 == "withLock" }) {
            return "project"
        }
        return step.keys.contains { $0.hasPrefix("blob") } ? "relocation" : "location"
    }

    private func calling(_ step: Fields, _ values: Values) throws -> Call {
        let calls = Calls(step: step, values: values)
        switch try store(step, values, kind(step)) {
        case let .location(store): return try calls.on(store)
        case let .relocation(store): return try calls.on(store)
        case let .project(project, own):
            if step.keys.contains(where: { $0.hasPrefix("state") }) { return try calls.on(project.state) }
            return try calls.on(locks(step, values, own))
        }
    }

    private func locks(_ step: Fields, _ values: Values, _ own: DistributedLocks) throws -> DistributedLocks {
        guard let name = step["invocation"] else { return own }
        guard let locks = invocations[try values.text(name)] else { throw Failed(description: "no such invocation") }
        return locks
    }

    /// The store that a step uses; `wanted` is the kind, and the name of that which needs no opening.
    private func store(_ step: Fields, _ values: Values, _ wanted: String) throws -> Opened {
        let name = try step["on"].map { try values.text($0) } ?? wanted
        if named[name] == nil, ["location", "relocation", "project"].contains(name) { keep(name, try make([:], name)) }
        guard let store = named[name] else { throw Failed(description: "no store \(name)") }
        return store
    }

    private func keep(_ name: String, _ store: Opened) {
        opened.append(store)
        named[name] = store
    }

    private func make(_ step: Fields, _ kind: String) throws -> Opened {
        let timeout = try step["timeoutMs"].map { try values.number($0) } ?? 30_000
        func text(_ name: String, _ otherwise: String) throws -> String { try step[name].map { try values.text($0) } ?? otherwise }
        if kind == "project" {
            let workspace = try text("exactWorkspace", place.inFront + text("workspace", "w"))
            let name = try text("project", "p")
            let project = try Project(url: try text("url", place.url), workspace: workspace, project: name, operationTimeoutMs: timeout)
            return .project(project, try project.locks())
        }
        let prefix = try text("exactPrefix", place.inFront + text("prefix", String(kind.prefix(1))))
        return kind == "relocation"
            ? .relocation(try RelocationStore(url: place.url, keyPrefix: prefix, operationTimeoutMs: timeout))
            : .location(try LocationStore(url: place.url, keyPrefix: prefix, operationTimeoutMs: timeout))
    }

    private func withLock(_ step: Fields, _ at: String) async throws -> Fields {
        guard case let .project(_, own) = try store(step, values, "project") else { throw Failed(description: "no project") }
        let locks = try self.locks(step, values, own)
        let (key, options) = (try values.text(step["withLock"]), try LockOptions(step, values))
        let returns = try step["returns"].map { try values.text($0) }
        let thrown = try step["throws"].map { try values.text($0) }
        let steps = Handed(value: step["steps"] as? [Any] ?? [])
        do {
            return try await resultOf {
                let value = try await locks.withLock(
                    key, namespace: options.namespace, waitMs: options.waitMs, leaseMs: options.leaseMs
                ) { lease -> String? in
                    self.values["lease"] = leaseFields(lease)
                    try await self.steps(steps.value, "\(at).")
                    if let thrown { throw Own(message: thrown) }
                    return returns
                }
                return value.map { ["kind": "done", "value": $0] } ?? ["kind": "done"]
            }
        } catch let own as Own {
            return ["kind": "failed", "value": own.message]
        }
    }

    private func repeated(_ step: Fields, _ name: String, _ at: String) async throws {
        var all = step["in"] as? [Any] ?? []
        if step["in"] == nil {
            let from = try step["from"].map { try values.number($0) } ?? 0
            all = (from..<(from + (try values.number(step["times"])))).map { $0 }
        }
        for (index, value) in all.enumerated() {
            values[name] = value
            try await steps(step["steps"] as? [Any] ?? [], "\(at)[\(name) #\(index)].")
        }
    }

    private func until(_ step: Fields, _ inner: Fields) async throws {
        let within = try step["withinMs"].map { try values.number($0) } ?? 20_000
        let end = Date().addingTimeInterval(Double(within) / 1_000)
        while true {
            let result = try await self.result(inner, "")
            do {
                try judge(inner, result, values)
                return try save(inner, result)
            } catch {
                if let meanwhile = step["meanwhile"] { try expect(result, meanwhile, values) }
                try verify(Date() < end, "not within \(within) ms: \(error)")
            }
            try await Task.sleep(nanoseconds: 3_000_000)
        }
    }

    private func together(_ step: Fields, _ calls: [Any]) async throws {
        let elements = try values.expand(calls).filter { ($0.form as? Fields).map(isMeant) ?? false }
        let prepared = try elements.map { element in Handed(value: try calling(element.form as! Fields, element.values)) }
        let tasks = zip(elements, prepared).map { element, call in
            let cancelled = (element.form as! Fields)["cancelled"] != nil
            return Task { () async throws -> Handed<Fields> in
                if cancelled { withUnsafeCurrentTask { $0?.cancel() } }
                return Handed(value: try await resultOf(call.value))
            }
        }
        var counts: [String: Int64] = [:]
        for (element, task) in zip(elements, tasks) {
            let form = element.form as! Fields
            let result = try await task.value.value
            if form["expect"] != nil { try judge(form, result, element.values) }
            try save(form, result)
            let kind = (result["kind"] ?? result["error"]) as? String ?? ""
            counts[kind, default: 0] += 1
            if let names = step["save"] as? Fields, let name = names[kind] as? String { values[name] = result }
        }
        if let expected = step["expect"] as? Fields {
            for (kind, matcher) in expected { try field(counts[kind] ?? Int64(0), matcher, values) }
            try verify(counts.keys.allSatisfy { expected[$0] != nil }, "unexpected results: \(counts)")
        }
    }
}
