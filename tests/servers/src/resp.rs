//! As much of RESP as a proxy and a fake server need: where a message ends, and what is in it.

use std::fmt;

/// A message of RESP2 or RESP3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Nil,
    /// An integer.
    Int(i64),
    /// Text of any kind.
    Bytes(Vec<u8>),
    /// An error, with its code.
    Error(String),
    /// A list of any kind.
    Array(Vec<Value>),
}

impl Value {
    /// The text, `""` if it is none.
    pub fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(number) => number.to_string(),
            Self::Error(text) => text.clone(),
            Self::Nil | Self::Array(_) => String::new(),
        }
    }

    /// The number, also if it comes as text.
    ///
    /// # Panics
    /// If it is none.
    pub fn number(&self) -> i64 {
        self.text().parse().unwrap_or_else(|_| panic!("{self:?} is no number"))
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => out.extend_from_slice(b"$-1\r\n"),
            Self::Int(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
            Self::Error(text) => out.extend_from_slice(format!("-{text}\r\n").as_bytes()),
            Self::Bytes(bytes) => {
                out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Array(items) => {
                out.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
                items.iter().for_each(|item| item.encode(out));
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Something that is not RESP.
#[derive(Debug)]
pub(crate) struct NotResp;

/// Parses the message at the start of `bytes`: what it says and its length. `None` if it is not whole yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, NotResp> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if bytes.first().is_none_or(|mark| b"+-:$*%~_,#!=(>|".contains(mark)) { Ok(None) } else { Err(NotResp) };
    };
    let Some((mark, text)) = bytes[..end].strip_suffix(b"\r").and_then(<[u8]>::split_first) else { return Err(NotResp) };
    let start = end + 1;
    let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()).ok_or(NotResp);
    let value = match mark {
        b'+' | b',' | b'(' => Value::Bytes(text.to_vec()),
        b'-' => Value::Error(String::from_utf8_lossy(text).into_owned()),
        b':' => Value::Int(number()?),
        b'#' => Value::Int(i64::from(text == b"t")),
        b'_' => Value::Nil,
        b'$' | b'=' | b'!' => {
            let Ok(size) = usize::try_from(number()?) else { return Ok(Some((Value::Nil, start))) };
            let Some(body) = bytes.get(start..start + size + 2) else { return Ok(None) };
            return Ok(Some((Value::Bytes(body[..size].to_vec()), start + size + 2)));
        }
        b'*' | b'~' | b'>' | b'%' | b'|' => {
            let Ok(count) = usize::try_from(number()?) else { return Ok(Some((Value::Nil, start))) };
            let count = match mark {
                b'%' => 2 * count,
                // What it describes belongs to it.
                b'|' => 2 * count + 1,
                _ => count,
            };
            let mut items = Vec::new();
            let mut at = start;
            for _ in 0..count {
                let Some((item, length)) = parse(&bytes[at..])? else { return Ok(None) };
                items.push(item);
                at += length;
            }
            return Ok(Some((Value::Array(items), at)));
        }
        _ => return Err(NotResp),
    };
    Ok(Some((value, start)))
}
