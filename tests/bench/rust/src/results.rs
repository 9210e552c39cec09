//! What was measured, as `tests/bench/report.mjs` reads it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value, json};

use crate::median;
use crate::rounds::Side;

/// The rows of `tests/bench/goals.json` that were measured.
#[derive(Debug)]
pub struct Results {
    about: Vec<String>,
    rows: Map<String, Value>,
    plots: Map<String, Value>,
    failed: Vec<String>,
}

impl Results {
    /// Of a run with this configuration.
    pub fn new(about: Vec<String>) -> Self {
        Self { about, rows: Map::new(), plots: Map::new(), failed: Vec::new() }
    }

    /// Operations per second of two sides.
    pub fn speed(&mut self, id: &str, ours: &Side, rival: &Side) {
        let cpu = |side: &Side| json!({ "server": median(side.server_us.clone()), "client": median(side.client_us.clone()) });
        let row =
            json!({ "ours": ours.per_second, "rival": rival.per_second, "cpu": { "ours": cpu(ours), "rival": cpu(rival) } });
        self.rows.insert(id.to_owned(), row);
    }

    /// Figures of the rounds in the unit of the goal.
    pub fn figures(&mut self, id: &str, ours: &[f64], rival: &[f64], remarks: &str) {
        self.rows.insert(id.to_owned(), json!({ "ours": ours, "rival": rival, "remarks": remarks }));
    }

    /// What one of the plots is drawn from.
    pub fn plot(&mut self, name: &str, data: Value) {
        self.plots.insert(name.to_owned(), data);
    }

    /// A row that could not be measured.
    pub fn failed(&mut self, row: &str, error: &dyn std::fmt::Display) {
        self.failed.push(format!("{row}: {error}"));
    }

    /// Writes `target/bench/core.json`; whether all rows could be measured.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(self) -> io::Result<bool> {
        let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench");
        fs::create_dir_all(&folder)?;
        let all_went_well = self.failed.is_empty();
        let Self { about, rows, plots, failed } = self;
        let result = json!({ "part": "core", "about": about, "rows": rows, "plots": plots, "failed": failed });
        fs::write(folder.join("core.json"), format!("{result:#}\n"))?;
        Ok(all_went_well)
    }
}
