//! Whether a result is as expected (README, Expectations).

use serde_json::{Map, Value};

use super::value::{Fault, Val, Vars};

/// Why an expectation does not hold.
pub(crate) enum Miss {
    /// It is not as expected.
    Mismatch(String),
    /// The expectation itself makes no sense.
    Fault(Fault),
}

impl From<Fault> for Miss {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

type Matched = Result<(), Miss>;

fn mismatch(said: impl Into<String>) -> Matched {
    Err(Miss::Mismatch(said.into()))
}

/// Checks a result against a step's expectation.
pub(crate) fn expect(result: &Val, expectation: &Value, vars: &Vars) -> Matched {
    match expectation {
        Value::String(kind) => match result.get("kind").and_then(Val::as_text) {
            Some(actual) if actual == kind => Ok(()),
            _ => mismatch(format!("expected {kind}, got {}", show(result))),
        },
        Value::Object(fields) if fields.contains_key("oneOf") => one_of(&fields["oneOf"], |one| expect(result, one, vars)),
        Value::Object(fields) => {
            let vars = vars.with("it", result.clone());
            for (name, matcher) in fields {
                let held = match name.as_str() {
                    "argument" => contains(result.get("argument").or(result.get("message")), &vars.text(matcher)?),
                    "says" => contains(result.get("message"), &vars.text(matcher)?),
                    name => field(result.get(name), matcher, &vars),
                };
                held.map_err(|miss| match miss {
                    Miss::Mismatch(said) => Miss::Mismatch(format!("{name}: {said}; got {}", show(result))),
                    fault => fault,
                })?;
            }
            Ok(())
        }
        other => Err(Miss::Fault(format!("{other} is no expectation"))),
    }
}

fn contains(actual: Option<&Val>, part: &str) -> Matched {
    match actual.and_then(Val::as_text) {
        Some(text) if text.contains(part) => Ok(()),
        _ => mismatch(format!("expected it to name {part}")),
    }
}

const CONDITIONS: [&str; 8] = ["not", "atLeast", "atMost", "above", "below", "oneOf", "size", "present"];

/// `fill` has a `size` of its own.
fn is_condition(form: &Map<String, Value>) -> bool {
    !form.contains_key("fill") && form.keys().any(|key| CONDITIONS.contains(&key.as_str()))
}

const FIELDS: [&str; 4] = ["key", "bytes", "version", "expiresAt"];

/// Checks one field; `None` if it is not there.
pub(crate) fn field(actual: Option<&Val>, matcher: &Value, vars: &Vars) -> Matched {
    if matcher.is_null() {
        return if actual.is_none() { Ok(()) } else { mismatch("expected it to be absent") };
    }
    let Some(actual) = actual else { return mismatch("it is absent") };
    match matcher {
        Value::Array(elements) => list(actual, elements, vars),
        Value::Object(form) if is_condition(form) => conditions(actual, form, vars),
        form => {
            let expected = vars.eval(form)?;
            let equal = match (actual, &expected) {
                (Val::Bytes(actual), Val::Text(text)) => actual[..] == *text.as_bytes(),
                (actual, expected) => actual == expected,
            };
            if equal { Ok(()) } else { mismatch(format!("expected {}", show(&expected))) }
        }
    }
}

fn list(actual: &Val, elements: &[Value], vars: &Vars) -> Matched {
    let Val::List(actual) = actual else { return mismatch("expected a list") };
    let expected = vars.expand(elements)?;
    if expected.len() != actual.len() {
        return mismatch(format!("expected {} elements, got {}", expected.len(), actual.len()));
    }
    for (index, (actual, (element, vars))) in actual.iter().zip(&expected).enumerate() {
        let held = match element {
            Value::Object(fields) if fields.keys().any(|key| FIELDS.contains(&key.as_str())) => fields
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "times" | "from"))
                .try_for_each(|(name, matcher)| field(actual.get(name), matcher, vars)),
            matcher => field(Some(actual), matcher, vars),
        };
        held.map_err(|miss| match miss {
            Miss::Mismatch(said) => Miss::Mismatch(format!("element {index}: {said}, not {}", show(actual))),
            fault => fault,
        })?;
    }
    Ok(())
}

fn conditions(actual: &Val, form: &Map<String, Value>, vars: &Vars) -> Matched {
    for (name, argument) in form {
        let number = || match actual {
            Val::Number(number) => Ok(*number),
            _ => Err(Miss::Mismatch("expected a number".to_owned())),
        };
        let holds = match name.as_str() {
            "present" => true,
            "oneOf" => {
                one_of(argument, |one| field(Some(actual), one, vars))?;
                true
            }
            "not" => match field(Some(actual), argument, vars) {
                Err(Miss::Mismatch(_)) => true,
                Ok(()) => false,
                Err(fault) => return Err(fault),
            },
            "size" => {
                let size = match actual {
                    Val::List(list) => list.len(),
                    Val::Text(text) => text.len(),
                    Val::Bytes(bytes) => bytes.len(),
                    _ => return mismatch("it has no size"),
                };
                let size = Val::Number(i64::try_from(size).map_err(|error| Miss::Fault(error.to_string()))?);
                field(Some(&size), argument, vars)?;
                true
            }
            "atLeast" => number()? >= vars.number(argument)?,
            "atMost" => number()? <= vars.number(argument)?,
            "above" => number()? > vars.number(argument)?,
            "below" => number()? < vars.number(argument)?,
            other => return Err(Miss::Fault(format!("{other} is no matcher"))),
        };
        if !holds {
            let than = vars.eval(argument).map(|than| show(&than)).unwrap_or_default();
            return mismatch(format!("{} is not {name} {than}", show(actual)));
        }
    }
    Ok(())
}

fn one_of(alternatives: &Value, holds: impl Fn(&Value) -> Matched) -> Matched {
    let mut said = Vec::new();
    for alternative in alternatives.as_array().ok_or_else(|| "oneOf is no list".to_owned())? {
        match holds(alternative) {
            Err(Miss::Mismatch(one)) => said.push(one),
            decided => return decided,
        }
    }
    mismatch(format!("none of: {}", said.join(" | ")))
}

/// A value for a person, shortened.
pub(crate) fn show(value: &Val) -> String {
    match value {
        Val::Number(number) => number.to_string(),
        Val::Text(text) if text.len() <= 80 => format!("{text:?}"),
        Val::Text(text) => format!("a text of {} bytes", text.len()),
        Val::Bytes(bytes) if bytes.len() <= 32 => format!("{bytes:?}"),
        Val::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Val::List(list) if list.len() <= 5 => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(", ")),
        Val::List(list) => format!("[{}, … {} in all]", list[..3].iter().map(show).collect::<Vec<_>>().join(", "), list.len()),
        Val::Fields(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {}", show(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Val::Form(form) => form.to_string(),
    }
}
