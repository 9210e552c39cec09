//! The runner of the conformance scenarios: files, values, calls, expectations, steps.

mod calls;
mod expect;
mod project;
mod results;
mod run;
mod started;
mod value;

use std::path::PathBuf;
use std::{fs, io};

use serde_json::Value;

pub use run::run;

/// One scenario of the data files.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// `group/name`.
    pub name: String,
    /// Its steps.
    pub steps: Vec<Value>,
}

/// The folder of the data files.
pub fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "conformance"].iter().collect()
}

/// The data files, in the order of their names.
///
/// # Errors
/// If a file cannot be read or is no JSON.
pub fn files() -> io::Result<Vec<(String, Value)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".json") && !name.ends_with(".schema.json") {
            let parsed = serde_json::from_str(&fs::read_to_string(&path)?)?;
            files.push((name, parsed));
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(files)
}

/// All scenarios.
///
/// # Errors
/// As [`files`]; or if a file lacks what a scenario must have.
pub fn scenarios() -> io::Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    for (name, file) in files()? {
        let wrong = || io::Error::other(format!("{name} is no file of scenarios"));
        let group = file["group"].as_str().ok_or_else(wrong)?;
        for scenario in file["scenarios"].as_array().ok_or_else(wrong)? {
            scenarios.push(Scenario {
                name: format!("{group}/{}", scenario["name"].as_str().ok_or_else(wrong)?),
                steps: scenario["steps"].as_array().ok_or_else(wrong)?.clone(),
            });
        }
    }
    Ok(scenarios)
}
