//! Wrong inputs, wherever they stand in the scenarios: there are many, and none of them reaches a server.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::TcpListener;

use serde_json::{Map, Value};
use zlink_test_conformance::place::{Engine, Place};
use zlink_test_conformance::scenario::{Scenario, run, scenarios};

/// Not a lease too many, which is wrong only after others.
fn is_wrong(step: &Value) -> bool {
    let expected = &step["expect"];
    expected["error"] == "INVALID_ARGUMENT" && expected["argument"] != "leases" && step.get("cancelled").is_none()
}

/// Puts the inputs of wrong calls into `found`: those that every language makes, with the values of the loops around them.
fn collect(steps: &[Value], known: &BTreeMap<String, Value>, found: &mut BTreeSet<String>) {
    for step in steps.iter().filter(|step| step.get("if").is_none()) {
        if let (Some(name), Some(values)) = (step["for"].as_str(), step["in"].as_array()) {
            for value in values {
                let mut known = known.clone();
                known.insert(name.to_owned(), value.clone());
                collect(step["steps"].as_array().map_or(&[][..], Vec::as_slice), &known, found);
            }
        } else if is_wrong(step) {
            let mut input = step.clone();
            for field in ["expect", "on", "note"] {
                input.as_object_mut().and_then(|input| input.remove(field));
            }
            fill_in(&mut input, known);
            found.insert(input.to_string());
        }
    }
}

fn fill_in(form: &mut Value, known: &BTreeMap<String, Value>) {
    if let Some(value) = form.get("var").and_then(Value::as_str).and_then(|name| known.get(name)) {
        *form = value.clone();
    }
    match form {
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, known)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_in(field, known)),
        _ => {}
    }
}

#[test]
fn every_language_gives_hundreds_of_wrong_inputs() {
    let mut found = BTreeSet::new();
    for scenario in scenarios().unwrap() {
        collect(&scenario.steps, &BTreeMap::new(), &mut found);
    }
    let of = |verbs: &[&str]| {
        let given = |input: &&String| verbs.iter().any(|verb| input.contains(&format!("\"{verb}\":")));
        found.iter().filter(given).count()
    };
    assert!(found.len() >= 500, "{} wrong inputs", found.len());
    for (what, verbs, least) in [
        ("URLs", &["url"][..], 100),
        ("location stores", &["read", "write", "put", "delete", "scan"], 60),
        ("relocation stores", &["blobPut", "blobRead", "blobRenew", "blobDelete"], 15),
        ("state", &["stateGet", "stateSet", "stateDelete", "stateNamespace"], 100),
        ("locks", &["lockAcquire", "lockRenew", "withLock"], 60),
        ("options of stores", &["exactPrefix", "timeoutMs", "exactWorkspace"], 25),
    ] {
        let count = of(verbs);
        assert!(count >= least, "{count} of {what}, {least} at least");
    }
}

/// Only what is wrong, and the opening of the stores that it needs.
fn wrong_alone(steps: &[Value]) -> Vec<Value> {
    let mut kept = Vec::new();
    for step in steps {
        if let Some(inner) = step.get("steps").and_then(Value::as_array).filter(|_| step.get("in").is_some()) {
            let inner = wrong_alone(inner);
            if !inner.is_empty() {
                let mut step: Map<String, Value> = step.as_object().cloned().unwrap_or_default();
                step.insert("steps".to_owned(), Value::Array(inner));
                kept.push(Value::Object(step));
            }
        } else if step.get("open").is_some() || is_wrong(step) && step.get("lockRenew").is_none() {
            kept.push(step.clone());
        }
    }
    kept
}

#[tokio::test]
async fn no_server_hears_of_a_wrong_input() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", server.local_addr().unwrap());
    let mut ran = 0;
    for scenario in scenarios().unwrap() {
        let steps = wrong_alone(&scenario.steps);
        if steps.iter().any(|step| step.get("open").is_none()) {
            let scenario = Scenario { name: scenario.name, steps };
            let ended = run(&scenario, &Place::at(url.clone()), Engine::Redis.capabilities()).await;
            assert_eq!(ended, Ok(()), "{}", scenario.name);
            ran += 1;
            let heard = server.accept().err().map(|error| error.kind());
            assert_eq!(heard, Some(io::ErrorKind::WouldBlock), "{}: somebody connected", scenario.name);
        }
    }
    assert!(ran >= 40, "{ran} scenarios");
}
