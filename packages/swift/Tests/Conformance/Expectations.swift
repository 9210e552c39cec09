import Foundation

private let conditions: Set = ["not", "atLeast", "atMost", "above", "below", "oneOf", "size", "present"]

/// Whether a result is as expected (README of the scenarios, Expectations).
func expect(_ result: Fields, _ expectation: Any, _ values: Values) throws {
    if let kind = expectation as? String {
        if result["kind"] as? String != kind { throw Failed(description: "expected \(kind), got \(shown(result))") }
        return
    }
    guard let fields = expectation as? Fields else { throw Failed(description: "no expectation") }
    if let alternatives = fields["oneOf"] as? [Any] {
        return try oneOf(alternatives) { try expect(result, $0, values) }
    }
    let inside = values.with("it", result)
    for (name, matcher) in fields {
        switch name {
        case "argument", "says":
            let said = (name == "argument" ? result["argument"] : nil) ?? result["message"]
            let part = try inside.text(matcher)
            guard let said = said as? String, said.contains(part) else {
                throw Failed(description: "expected it to name \(part), got \(shown(result))")
            }
        case "outcome" where result["outcome"] == nil:
            break // A cancellation carries none.
        default:
            do { try field(result[name], matcher, inside) } catch { throw Failed(description: "\(name): \(error); got \(shown(result))") }
        }
    }
}

/// Checks one field; `nil` if it is not there.
func field(_ actual: Any?, _ matcher: Any, _ values: Values) throws {
    if matcher is NSNull {
        if actual != nil { throw Failed(description: "expected it to be absent") }
        return
    }
    guard let actual else { throw Failed(description: "it is absent") }
    if let elements = matcher as? [Any] { return try list(actual, elements, values) }
    if let form = matcher as? Fields, form["fill"] == nil, !conditions.isDisjoint(with: form.keys) {
        for (name, argument) in form { try condition(actual, name, argument, values) }
        return
    }
    var expected = try values.eval(matcher)
    if actual is Data, let text = expected as? String { expected = Data(text.utf8) }
    if !same(actual, expected) { throw Failed(description: "expected \(shown(expected)), got \(shown(actual))") }
}

private func condition(_ actual: Any, _ name: String, _ argument: Any, _ values: Values) throws {
    let holds: Bool
    switch name {
    case "present": holds = true
    case "oneOf":
        try oneOf(argument as? [Any] ?? []) { try field(actual, $0, values) }
        holds = true
    case "not": holds = (try? field(actual, argument, values)) == nil
    case "size":
        let size = (actual as? [Any])?.count ?? (actual as? String)?.utf8.count ?? (actual as? Data)?.count ?? -1
        try field(Int64(size), argument, values)
        holds = true
    case "atLeast": holds = try (actual as? Int64 ?? .min) >= values.number(argument)
    case "atMost": holds = try (actual as? Int64 ?? .max) <= values.number(argument)
    case "above": holds = try (actual as? Int64 ?? .min) > values.number(argument)
    case "below": holds = try (actual as? Int64 ?? .max) < values.number(argument)
    default: throw Failed(description: "\(name) is no matcher")
    }
    if !holds { throw Failed(description: "\(shown(actual)) is not \(name) \(argument)") }
}

private func list(_ actual: Any, _ elements: [Any], _ values: Values) throws {
    guard let list = actual as? [Any] else { throw Failed(description: "expected a list") }
    let expected = try values.expand(elements)
    if expected.count != list.count { throw Failed(description: "expected \(expected.count) elements, got \(list.count)") }
    for (item, element) in zip(list, expected) {
        if let fields = element.form as? Fields, !Set(["key", "bytes", "version", "expiresAt"]).isDisjoint(with: fields.keys) {
            for (name, matcher) in fields where name != "times" && name != "from" {
                try field((item as? Fields)?[name], matcher, element.values)
            }
        } else {
            try field(item, element.form, element.values)
        }
    }
}

private func oneOf(_ alternatives: [Any], _ holds: (Any) throws -> Void) throws {
    var said: [String] = []
    for alternative in alternatives {
        do { return try holds(alternative) } catch { said.append("\(error)") }
    }
    throw Failed(description: "none of: \(said.joined(separator: " | "))")
}

func same(_ one: Any, _ other: Any) -> Bool {
    switch (one, other) {
    case let (one as String, other as String): return Array(one.utf8) == Array(other.utf8)
    case let (one as Data, other as Data): return one == other
    case let (one as Int64, other as Int64): return one == other
    case let (one as [Any], other as [Any]): return one.count == other.count && zip(one, other).allSatisfy { same($0, $1) }
    case let (one as Fields, other as Fields):
        return one.count == other.count && one.allSatisfy { name, value in other[name].map { same(value, $0) } ?? false }
    default: return (one as AnyObject) === (other as AnyObject)
    }
}

/// A value for a person, shortened.
func shown(_ value: Any) -> String {
    String("\(value)".prefix(300))
}
