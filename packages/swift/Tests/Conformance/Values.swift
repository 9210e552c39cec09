import Foundation

/// A scenario that makes no sense, or a result that is not as expected.
struct Failed: Error, CustomStringConvertible {
    let description: String
}

typealias Fields = [String: Any]

/// The variables that a step sees, and what forms of values mean (README of the scenarios, Values). A value is an `Int64`, a `String`,
/// `Data`, a list, or fields.
struct Values {
    private var variables: Fields = [:]

    subscript(name: String) -> Any? {
        get { variables[name] }
        set { variables[name] = newValue }
    }

    func with(_ name: String, _ value: Any) -> Values {
        var more = self
        more[name] = value
        return more
    }

    func eval(_ form: Any) throws -> Any {
        switch form {
        case let text as String: return try template(text)
        case let bytes as Data: return bytes
        case let number as NSNumber: return number.int64Value
        case let fields as Fields: return try evalFields(fields)
        default: throw Failed(description: "\(form) is no value")
        }
    }

    func text(_ form: Any?) throws -> String {
        guard let form, let text = try eval(form) as? String else { throw Failed(description: "no text") }
        return text
    }

    func number(_ form: Any?) throws -> Int64 {
        guard let form, let number = try eval(form) as? Int64 else { throw Failed(description: "no number") }
        return number
    }

    func bytes(_ form: Any?) throws -> Data {
        guard let form else { throw Failed(description: "no bytes") }
        switch try eval(form) {
        case let text as String: return Data(text.utf8)
        case let bytes as Data: return bytes
        default: throw Failed(description: "no bytes")
        }
    }

    /// Elements with `times` become that many, each with its own `i`.
    func expand(_ list: [Any]) throws -> [(form: Any, values: Values)] {
        var elements: [(form: Any, values: Values)] = []
        for form in list {
            if let fields = form as? Fields, fields["times"] != nil, fields["repeat"] == nil {
                let from = try fields["from"].map { try number($0) } ?? 0
                for i in from..<(from + (try number(fields["times"]))) { elements.append((form, with("i", i))) }
            } else {
                elements.append((form, self))
            }
        }
        return elements
    }

    /// A saved result, or a field of one.
    func named(_ path: String) throws -> Any {
        let parts = path.split(separator: ".").map(String.init)
        var value: Any? = variables[parts[0]]
        for part in parts.dropFirst() {
            if let fields = value as? Fields {
                value = fields[part]
            } else if let list = value as? [Any], let index = Int(part), index < list.count {
                value = list[index]
            } else {
                value = nil
            }
        }
        guard let value else { throw Failed(description: "\(path) is not there") }
        if let form = value as? Fields, form["kind"] == nil, form["key"] == nil { return try eval(form) }
        if value is String || value is NSNumber, parts.count == 1 { return try eval(value) }
        return value
    }

    private func evalFields(_ form: Fields) throws -> Any {
        if let name = form["var"] { return try named(text(name)) }
        if let part = form["repeat"] { return String(repeating: try text(part), count: Int(try number(form["times"]))) }
        if let parts = form["join"] as? [Any] { return try parts.map { try text($0) }.joined() }
        if let bent = form["bend"] {
            var characters = Array(try text(bent))
            let at = try place(characters.count, number(form["at"]))
            characters[at] = characters[at] == "A" ? "B" : "A"
            return String(characters)
        }
        if let cut = form["cut"] {
            let whole = try text(cut)
            return String(whole.prefix(try place(whole.count, number(form["to"]))))
        }
        if let parts = form["sum"] as? [Any] { return try parts.map { try number($0) }.reduce(0, +) }
        if let parts = form["minus"] as? [Any] {
            let numbers = try parts.map { try number($0) }
            return numbers.dropFirst().reduce(numbers[0], -)
        }
        if let hex = form["hex"] as? String {
            let digits = Array(hex)
            return Data(stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! })
        }
        if let seed = form["fill"] {
            var bytes = fill(try number(seed), Int(try number(form["size"])))
            if let flip = form["flip"] { bytes[Int(try number(flip))] ^= 255 }
            return bytes
        }
        throw Failed(description: "\(form) is no value")
    }

    /// A place in a text of that length, counted from its end if it is negative.
    private func place(_ length: Int, _ at: Int64) -> Int {
        at < 0 ? max(0, length + Int(at)) : Int(at)
    }

    private func fill(_ seed: Int64, _ size: Int) -> Data {
        var x = seed
        let block = Data((0..<4_099).map { _ -> UInt8 in
            x = (x * 1_103_515_245 + 12_345) % (1 << 31)
            return UInt8(truncatingIfNeeded: x >> 16)
        })
        var bytes = Data(capacity: size)
        while bytes.count < size { bytes.append(block.prefix(size - bytes.count)) }
        return bytes
    }

    /// A text with its `${…}` filled in.
    private func template(_ text: String) throws -> String {
        var filled = ""
        var rest = Substring(text)
        while let start = rest.range(of: "${"), let end = rest[start.upperBound...].firstIndex(of: "}") {
            filled += rest[..<start.lowerBound]
            let parts = rest[start.upperBound..<end].split(separator: ":").map(String.init)
            let value = "\(try named(parts[0]))"
            let width = parts.count > 1 ? Int(parts[1])! : 0
            filled += String(repeating: "0", count: max(0, width - value.count)) + value
            rest = rest[rest.index(after: end)...]
        }
        return filled + rest
    }
}
