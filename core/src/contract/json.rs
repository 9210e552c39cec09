//! JSON text in the form of `JSON.stringify` (spec: project.md, State).

use std::fmt;

use bytes::Bytes;

use super::{Error, limits};

/// One JSON value as text, at most 32,768 bytes of UTF-8, without white space and with only those escapes that
/// `JSON.stringify` writes. Numbers, the order of members and repeated members stay as they were written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Bytes);

impl JsonText {
    /// Takes any JSON text: checks it, and rewrites white space and escapes to the form of `JSON.stringify`. Any depth is fine.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is no JSON value, or longer than 32,768 bytes in that form.
    pub fn new(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let text = std::str::from_utf8(text.as_ref()).map_err(|_| Error::argument("value", "must be valid UTF-8"))?;
        let mut scanner = Scanner { text: text.as_bytes(), at: 0, out: Vec::with_capacity(text.len().min(limits::MAX_JSON)) };
        scanner.document()?;
        scanner.fits()?;
        Ok(Self(scanner.out.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // It was made of text and can only come from here or, checked, from an engine.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The text's bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// What an engine kept.
    pub(crate) fn stored(text: Bytes) -> Result<Self, Error> {
        match std::str::from_utf8(&text) {
            Ok(_) => Ok(Self(text)),
            Err(_) => Err(Error::internal("a stored JSON text is damaged")),
        }
    }
}

/// A value is not for logs.
impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of the list that just began.
    ValueOrEnd,
    /// A member's name, or the end of the object that just began.
    NameOrEnd,
    Name,
    /// A comma or the end of what is open; nothing more, if nothing is.
    After,
}

impl Scanner<'_> {
    /// The open lists and objects lie in `open`, not on the stack, so that depth costs nothing.
    fn document(&mut self) -> Result<(), Error> {
        let mut open = Vec::new();
        let mut next = Next::Value;
        loop {
            self.fits()?;
            self.space();
            let Some(byte) = self.peek() else {
                let whole = next == Next::After && open.is_empty();
                return if whole { Ok(()) } else { Err(self.wrong("ends too early")) };
            };
            next = match (next, byte) {
                (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                    self.copy();
                    open.push(byte);
                    if byte == b'{' { Next::NameOrEnd } else { Next::ValueOrEnd }
                }
                (Next::ValueOrEnd | Next::After, b']') if open.last() == Some(&b'[') => self.close(&mut open),
                (Next::NameOrEnd | Next::After, b'}') if open.last() == Some(&b'{') => self.close(&mut open),
                (Next::After, b',') if !open.is_empty() => {
                    self.copy();
                    if open.last() == Some(&b'{') { Next::Name } else { Next::Value }
                }
                (Next::Name | Next::NameOrEnd, b'"') => {
                    self.string()?;
                    self.space();
                    if self.peek() != Some(b':') {
                        return Err(self.wrong("has no colon behind a member's name"));
                    }
                    self.copy();
                    Next::Value
                }
                (Next::Value | Next::ValueOrEnd, _) => {
                    self.scalar(byte)?;
                    Next::After
                }
                _ => return Err(self.wrong("has something unexpected")),
            };
        }
    }

    fn close(&mut self, open: &mut Vec<u8>) -> Next {
        self.copy();
        open.pop();
        Next::After
    }

    fn scalar(&mut self, first: u8) -> Result<(), Error> {
        match first {
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Error> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("has something unexpected"));
        }
        word.iter().for_each(|_| self.copy());
        Ok(())
    }

    fn number(&mut self) -> Result<(), Error> {
        if self.peek() == Some(b'-') {
            self.copy();
        }
        match self.peek() {
            Some(b'0') => self.copy(),
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.wrong("has something unexpected")),
        }
        if self.peek() == Some(b'.') {
            self.copy();
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.copy();
            if let Some(b'+' | b'-') = self.peek() {
                self.copy();
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Error> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong("has a number without a digit where one is due"));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.copy();
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Error> {
        self.copy();
        loop {
            self.fits()?;
            match self.peek() {
                None => return Err(self.wrong("ends within a string")),
                Some(b'"') => {
                    self.copy();
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) => return Err(self.wrong("has a bare control character in a string")),
                Some(_) => self.copy(),
            }
        }
    }

    /// An escape as `JSON.stringify` would write its character.
    fn escape(&mut self) -> Result<(), Error> {
        self.at += 1;
        let Some(kind) = self.peek() else { return Err(self.wrong("ends within a string")) };
        self.at += 1;
        let unit = match kind {
            b'"' | b'\\' | b'/' => u16::from(kind),
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => self.hex()?,
            _ => return Err(self.wrong("has an unknown escape")),
        };
        if (0xd800..0xdc00).contains(&unit) {
            let behind = self.at;
            if self.text[behind..].starts_with(b"\\u") {
                self.at += 2;
                let low = self.hex()?;
                if let Some(Ok(character)) = char::decode_utf16([unit, low]).next() {
                    self.character(character);
                    return Ok(());
                }
                self.at = behind;
            }
        }
        match char::from_u32(u32::from(unit)) {
            Some(character) => self.character(character),
            // A lone surrogate has no UTF-8: it stays an escape, in small letters.
            None => self.out.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
        }
        Ok(())
    }

    fn character(&mut self, character: char) {
        let short = match character {
            '"' => b'"',
            '\\' => b'\\',
            '\u{8}' => b'b',
            '\u{c}' => b'f',
            '\n' => b'n',
            '\r' => b'r',
            '\t' => b't',
            '\0'..='\u{1f}' => return self.out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes()),
            _ => return self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }

    fn hex(&mut self) -> Result<u16, Error> {
        let digits = self.text.get(self.at..self.at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|text| u16::from_str_radix(text, 16).ok());
        let Some(unit) = unit else { return Err(self.wrong("has an escape without four hexadecimal digits")) };
        self.at += 4;
        Ok(unit)
    }

    /// Asked often enough that nothing much larger is ever kept.
    fn fits(&self) -> Result<(), Error> {
        if self.out.len() <= limits::MAX_JSON {
            return Ok(());
        }
        Err(Error::argument("value", format!("must be at most {} bytes of JSON text, got more", limits::MAX_JSON)))
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn copy(&mut self) {
        self.out.push(self.text[self.at]);
        self.at += 1;
    }

    fn wrong(&self, what: &str) -> Error {
        Error::argument("value", format!("must be JSON text, but it {what} (byte {})", self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(text: &str, form: &str) {
        let made = JsonText::new(text).unwrap();
        assert_eq!(made.as_str(), form);
        assert_eq!(JsonText::new(form).unwrap(), made, "the form is its own form");
    }

    #[test]
    fn white_space_and_escapes_take_the_form_of_json_stringify() {
        becomes(" { \"a\" : [ 1 , 2 ] ,\t\"b\":\r\n{ } } ", "{\"a\":[1,2],\"b\":{}}");
        becomes(r#""\/\u0041\u00e9\ud83d\ude00\u000a\u001F\u007f""#, "\"/Aé😀\\n\\u001f\u{7f}\"");
        becomes(r#""\"\\\b\f\n\r\t""#, r#""\"\\\b\f\n\r\t""#);
        becomes(r#""\uD800x\uDC00\uD800\u0041\ud800\ud83d\ude00""#, r#""\ud800x\udc00\ud800A\ud800😀""#);
        becomes("\"\u{2028}\"", "\"\u{2028}\"");
        becomes(" null ", "null");
        becomes("[true,false,[],{}]", "[true,false,[],{}]");
    }

    #[test]
    fn numbers_and_members_stay_as_written() {
        for number in ["0", "-0", "1.50", "1E5", "1e+05", "123456789012345678901234567890", "-0.0e-0"] {
            becomes(number, number);
        }
        becomes(r#"{"b":1,"a":2,"b":3}"#, r#"{"b":1,"a":2,"b":3}"#);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let bad = [
            "",
            " ",
            "nul",
            "nulll",
            "undefined",
            "NaN",
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "--1",
            "-",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[",
            "]",
            "{",
            "}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "[1}",
            "{\"a\":1]",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\u+123\"",
            "\"\n\"",
            "1 1",
            "'a'",
            "\u{feff}1",
            "[]]",
            ",",
            ":",
            "\"a\":1",
            "/**/1",
            "\u{a0}1",
        ];
        for text in bad {
            assert_eq!(JsonText::new(text).unwrap_err().argument_name(), Some("value"), "{text:?}");
        }
        assert!(JsonText::new([b'"', 0xff, b'"']).is_err());
    }

    #[test]
    fn the_limit_counts_the_bytes_of_the_form() {
        let text = |length: usize| format!("\"{}\"", "é".repeat(length / 2 - 1));
        assert!(JsonText::new(text(limits::MAX_JSON)).is_ok());
        assert!(JsonText::new(format!("   {}   ", text(limits::MAX_JSON))).is_ok());
        assert!(JsonText::new(format!("\"{}\"", "a".repeat(limits::MAX_JSON - 1))).is_err());
        // What is an escape in the form counts as one; what need not be one does not.
        assert!(JsonText::new(format!("\"{}\"", "\\u0041".repeat(limits::MAX_JSON - 2))).is_ok());
        assert!(JsonText::new(format!("\"{}\"", "\\u0001".repeat(limits::MAX_JSON / 6))).is_ok());
        assert!(JsonText::new(format!("\"{}\"", "\\u0001".repeat(limits::MAX_JSON / 6 + 1))).is_err());
    }

    #[test]
    fn depth_costs_no_stack() {
        let half = limits::MAX_JSON / 2;
        let text = format!("{}{}", "[".repeat(half), "]".repeat(half));
        becomes(&text, &text);
        assert!(JsonText::new("[".repeat(10_000_000)).is_err());
    }
}
