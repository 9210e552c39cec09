//! The data files keep to their grammar, and each name stands once.

use std::collections::HashSet;
use std::fs;

use zlink_test_conformance::model::{Choices, Driver};
use zlink_test_conformance::place::Place;
use zlink_test_conformance::scenario::{files, folder, scenarios};

#[test]
fn files_keep_to_the_schema() {
    let schema = fs::read_to_string(folder().join("scenario.schema.json")).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, file) in files().unwrap() {
        let wrong: Vec<String> = validator.iter_errors(&file).map(|error| error.instance_path().to_string()).collect();
        assert!(wrong.is_empty(), "{name} is wrong at {wrong:?}");
        assert_eq!(file["group"], name.trim_end_matches(".json"), "a group has its file's name");
    }
}

#[test]
fn each_name_stands_once() {
    let mut seen = HashSet::new();
    for scenario in scenarios().unwrap() {
        assert!(seen.insert(scenario.name.clone()), "{} stands twice", scenario.name);
    }
    assert!(seen.len() >= 400, "only {} scenarios", seen.len());
}

#[test]
fn the_schema_refuses_what_the_runners_do_not_know() {
    let schema = fs::read_to_string(folder().join("scenario.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    for step in [
        r#"{ "read": "k", "expects": "missing" }"#,
        r#"{ "read": "k", "write": {} }"#,
        r#"{ "put": "k" }"#,
        r#"{ "read": "k", "if": "some-day" }"#,
        r#"{ "read": "k", "expect": { "verson": "v" } }"#,
        r#"{ "write": { "mutations": [{ "put": "k", "bytes": "v", "retention": 1 }] } }"#,
        r#"{ "until": { "read": "k" } }"#,
        r#"{ "together": [{ "times": 2, "open": "s" }] }"#,
        r#"{ "stateSet": "k" }"#,
        r#"{ "stateSet": "k", "json": "1", "noJson": "cycle" }"#,
        r#"{ "lockAcquire": "k", "ttlSeconds": 1 }"#,
        r#"{ "start": "s", "call": { "lockAcquire": "k", "expect": "lease" } }"#,
        r#"{ "together": [{ "withLock": "k" }] }"#,
    ] {
        let step: serde_json::Value = serde_json::from_str(step).unwrap();
        let file = serde_json::json!({
            "group": "g",
            "scenarios": [{ "name": "n", "clause": "a sentence of the contract", "steps": [step] }],
        });
        assert!(!validator.is_valid(&file), "{file} is taken");
    }
}

/// What fuzzing kept: choices of steps on stores in memory, whose answers are compared with the model.
#[tokio::test]
async fn the_kept_steps_find_nothing() {
    let kept: Vec<_> = fs::read_dir(folder().join("../fuzz/corpus/steps")).unwrap().collect();
    assert!(kept.len() >= 100, "only {} inputs", kept.len());
    for input in kept {
        let path = input.unwrap().path();
        let ended = Driver::run(&Place::in_memory(), Choices::Given(&fs::read(&path).unwrap()), usize::MAX).await;
        assert_eq!(ended, Ok(()), "{}", path.display());
    }
}
