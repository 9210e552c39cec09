// Conformance FOLDER ENGINE [URL]: runs the scenarios of the folder on `memory`, `file` or `redis` (whose URL comes last), and writes
// the names of those that ran to target/conformance/swift-ENGINE.txt beside it.
import Foundation

let arguments = CommandLine.arguments
guard arguments.count > 2 else { fatalError("Conformance FOLDER ENGINE [URL]") }
let folder = URL(fileURLWithPath: arguments[1])
let engine = arguments[2]

func newPlace() throws -> Place {
    let unique = UUID().uuidString
    switch engine {
    case "memory": return Place(url: "memory:" + unique, inFront: "", capabilities: [])
    case "file":
        let data = FileManager.default.temporaryDirectory.appendingPathComponent("zlink-store-" + unique)
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
        return Place(url: "file:" + data.path, inFront: "", capabilities: ["survives-reopen"])
    case "redis" where arguments.count > 3:
        return Place(url: arguments[3], inFront: unique + ".", capabilities: ["survives-reopen", "needs-key-prefix"])
    default: fatalError("no engine \(engine)")
    }
}

var names: [String] = []
var failures = 0
let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    .filter { $0.pathExtension == "json" && !$0.lastPathComponent.hasSuffix(".schema.json") }
    .sorted { $0.lastPathComponent < $1.lastPathComponent }
for file in files {
    guard let group = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? Fields,
        let scenarios = group["scenarios"] as? [Fields], let title = group["group"] as? String
    else { continue }
    for scenario in scenarios {
        let name = "\(title)/\(scenario["name"] ?? "")"
        let run = Run(place: try newPlace())
        do {
            try await run.steps(scenario["steps"] as? [Any] ?? [])
        } catch {
            failures += 1
            print("not ok \(engine)/\(name): \(error)")
        }
        await run.close()
        names.append(name)
    }
}
let lists = folder.appendingPathComponent("../../target/conformance")
try FileManager.default.createDirectory(at: lists, withIntermediateDirectories: true)
try (names.sorted().joined(separator: "\n") + "\n")
    .write(to: lists.appendingPathComponent("swift-\(engine).txt"), atomically: true, encoding: .utf8)
print("\(names.count - failures) passed, \(failures) failed")
exit(failures == 0 ? 0 : 1)
