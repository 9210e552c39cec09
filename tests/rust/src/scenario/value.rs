//! Values of a scenario: variables, texts, numbers, bytes (README, Values).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

/// What is wrong with a scenario, or with what a store answered.
pub(crate) type Fault = String;

/// A value of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    Number(i64),
    Text(String),
    Bytes(Bytes),
    List(Vec<Val>),
    Fields(BTreeMap<String, Val>),
    /// A form that is worked out where it is used.
    Form(Value),
}

impl Val {
    /// A result or an item: its fields.
    pub(crate) fn fields<const N: usize>(fields: [(&str, Val); N]) -> Self {
        Self::Fields(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A result's field.
    pub(crate) fn get(&self, field: &str) -> Option<&Val> {
        match self {
            Self::Fields(fields) => fields.get(field),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The variables that a step sees.
#[derive(Clone, Default)]
pub(crate) struct Vars(HashMap<String, Arc<Val>>);

impl Vars {
    pub(crate) fn set(&mut self, name: &str, value: Val) {
        self.0.insert(name.to_owned(), Arc::new(value));
    }

    /// The same variables and one more.
    pub(crate) fn with(&self, name: &str, value: Val) -> Self {
        let mut more = self.clone();
        more.set(name, value);
        more
    }

    pub(crate) fn look_up(&self, path: &str) -> Result<Val, Fault> {
        let mut parts = path.split('.');
        let name = parts.next().unwrap_or_default();
        let mut value: &Val = self.0.get(name).ok_or_else(|| format!("no variable {name}"))?;
        for part in parts {
            let inner = match value {
                Val::Fields(fields) => fields.get(part),
                Val::List(list) => part.parse::<usize>().ok().and_then(|at| list.get(at)),
                _ => None,
            };
            value = inner.ok_or_else(|| format!("{path} is not there"))?;
        }
        match value {
            Val::Form(form) => self.eval(form),
            value => Ok(value.clone()),
        }
    }

    /// Works a form out.
    pub(crate) fn eval(&self, form: &Value) -> Result<Val, Fault> {
        match form {
            Value::Number(number) => number.as_i64().map(Val::Number).ok_or_else(|| format!("{number} is no whole number")),
            Value::String(text) => self.template(text).map(Val::Text),
            Value::Object(form) => self.eval_object(form),
            other => Err(format!("{other} is no value")),
        }
    }

    fn eval_object(&self, form: &Map<String, Value>) -> Result<Val, Fault> {
        if let Some(path) = form.get("var") {
            return self.look_up(&self.text(path)?);
        }
        if let Some(text) = form.get("repeat") {
            return Ok(Val::Text(self.text(text)?.repeat(self.size(form, "times")?)));
        }
        if let Some(Value::Array(parts)) = form.get("join") {
            let parts: Result<Vec<String>, Fault> = parts.iter().map(|part| self.text(part)).collect();
            return Ok(Val::Text(parts?.concat()));
        }
        if let Some(text) = form.get("bend") {
            return bend(&self.text(text)?, self.number_of(form, "at")?);
        }
        if let Some(text) = form.get("cut") {
            let text = self.text(text)?;
            let to = place(text.len(), self.number_of(form, "to")?).min(text.len());
            return Ok(Val::text(text.get(..to).ok_or("a cut inside a character")?));
        }
        if let Some(Value::Array(numbers)) = form.get("sum") {
            return numbers.iter().try_fold(0, |sum, number| Ok(sum + self.number(number)?)).map(Val::Number);
        }
        if let Some(Value::Array(numbers)) = form.get("minus") {
            let first = self.number(numbers.first().ok_or("minus of nothing")?)?;
            let rest: i64 = numbers[1..].iter().try_fold(0, |sum, number| Ok::<_, Fault>(sum + self.number(number)?))?;
            return Ok(Val::Number(first - rest));
        }
        if let Some(hex) = form.get("hex").and_then(Value::as_str) {
            let byte = |at| u8::from_str_radix(hex.get(at..at + 2).unwrap_or_default(), 16).map_err(|error| error.to_string());
            let bytes: Result<Vec<u8>, Fault> = (0..hex.len()).step_by(2).map(byte).collect();
            return Ok(Val::Bytes(bytes?.into()));
        }
        if let Some(seed) = form.get("fill") {
            let mut bytes = fill(self.number(seed)?, self.size(form, "size")?);
            if form.contains_key("flip") {
                let at = self.size(form, "flip")?;
                *bytes.get_mut(at).ok_or("a flip outside the bytes")? ^= 0xff;
            }
            return Ok(Val::Bytes(bytes.freeze()));
        }
        // Rust's texts are valid Unicode, so the steps that need `utf16` are not for Rust.
        Err(format!("{form:?} is no value"))
    }

    /// A text with its `${…}` filled in.
    fn template(&self, text: &str) -> Result<String, Fault> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let end = rest[start..].find('}').ok_or("a ${ without its }")? + start;
            let (path, width) = rest[start + 2..end].split_once(':').unwrap_or((&rest[start + 2..end], "0"));
            let width: usize = width.parse().map_err(|_| format!("{width} is no width"))?;
            match self.look_up(path)? {
                Val::Number(number) => out.push_str(&format!("{number:0width$}")),
                Val::Text(text) => out.push_str(&text),
                other => return Err(format!("{other:?} in a text")),
            }
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    pub(crate) fn text(&self, form: &Value) -> Result<String, Fault> {
        match self.eval(form)? {
            Val::Text(text) => Ok(text),
            other => Err(format!("{other:?} is no text")),
        }
    }

    pub(crate) fn number(&self, form: &Value) -> Result<i64, Fault> {
        match self.eval(form)? {
            Val::Number(number) => Ok(number),
            other => Err(format!("{other:?} is no number")),
        }
    }

    pub(crate) fn bytes(&self, form: &Value) -> Result<Bytes, Fault> {
        match self.eval(form)? {
            Val::Text(text) => Ok(text.into()),
            Val::Bytes(bytes) => Ok(bytes),
            other => Err(format!("{other:?} are no bytes")),
        }
    }

    pub(crate) fn number_of(&self, form: &Map<String, Value>, field: &str) -> Result<i64, Fault> {
        self.number(form.get(field).ok_or_else(|| format!("{field} is missing"))?)
    }

    fn size(&self, form: &Map<String, Value>, field: &str) -> Result<usize, Fault> {
        usize::try_from(self.number_of(form, field)?).map_err(|error| error.to_string())
    }

    /// Elements with `times` become that many, each with its own `i`.
    pub(crate) fn expand<'a>(&self, list: &'a [Value]) -> Result<Vec<(&'a Value, Vars)>, Fault> {
        let mut out = Vec::with_capacity(list.len());
        for element in list {
            // `times` belongs to a text that stands alone, too.
            let repeated = element.as_object().filter(|element| element.contains_key("times") && !element.contains_key("repeat"));
            let Some(repeated) = repeated else {
                out.push((element, self.clone()));
                continue;
            };
            let from = repeated.get("from").map_or(Ok(0), |from| self.number(from))?;
            for i in from..from + self.number_of(repeated, "times")? {
                out.push((element, self.with("i", Val::Number(i))));
            }
        }
        Ok(out)
    }
}

/// A place in a text of `length` bytes, counted from its end if it is negative.
fn place(length: usize, at: i64) -> usize {
    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    if at < 0 { length.saturating_sub(distance) } else { distance }
}

fn bend(text: &str, at: i64) -> Result<Val, Fault> {
    let mut bytes = text.as_bytes().to_vec();
    let byte = bytes.get_mut(place(text.len(), at)).ok_or("a bend outside the text")?;
    *byte = if *byte == b'A' { b'B' } else { b'A' };
    String::from_utf8(bytes).map(Val::Text).map_err(|_| "a bend inside a character".to_owned())
}

const BLOCK: usize = 4_099;

fn fill(seed: i64, size: usize) -> BytesMut {
    let mut x = seed;
    let block: Vec<u8> = (0..BLOCK)
        .map(|_| {
            x = (x * 1_103_515_245 + 12_345) % (1 << 31);
            u8::try_from((x >> 16) & 0xff).unwrap_or_default()
        })
        .collect();
    let mut bytes = BytesMut::with_capacity(size);
    while bytes.len() < size {
        let left = size - bytes.len();
        bytes.extend_from_slice(&block[..left.min(BLOCK)]);
    }
    bytes
}
