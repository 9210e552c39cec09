import Foundation
import ZlinkStore

let store = try LocationStore(url: "memory:") // "file:/data", or "redis://localhost" and a keyPrefix
let claimed = try await store.write(
    conditions: [.missing(key: "actor/7")], // all conditions hold, or nothing changes
    mutations: [.put(key: "actor/7", bytes: Data("node-1".utf8), retentionMs: 30_000)]
)
switch try await store.read("actor/7") { // bytes, version, expiry and clock of one instant
case let .found(value):
    print(String(decoding: value.bytes, as: UTF8.self), "until", value.expiresAtMs ?? 0)
case .missing:
    print("nobody has it:", claimed)
}
await store.shutdown()
