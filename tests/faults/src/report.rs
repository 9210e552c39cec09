//! The rows of the table that `make test-faults` ends with, one for each fault that was survived.

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::verdict::Counts;

/// One fault, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The fault.
    pub fault: String,
    /// Whose stores met it.
    pub party: String,
    /// What was acknowledged.
    pub acknowledged: u64,
    /// Failures of which nobody knows.
    pub unknown: u64,
    /// What was acknowledged, and is not there.
    pub lost: u64,
    /// Whether such a fault may lose something.
    pub lossy: bool,
    /// What was applied twice.
    pub twice: u64,
    /// Commits of which only a part was seen.
    pub torn: u64,
    /// Versions and tokens that came twice.
    pub reused: u64,
    /// Operations that did not end in their time.
    pub hung: u64,
    /// Whatever else was wrong.
    pub wrong: u64,
}

/// A row of the file engine, which was checked on the spot.
pub fn file_row(fault: &str, acknowledged: u64) -> Row {
    Row { fault: fault.to_owned(), party: "core".to_owned(), acknowledged, ..Row::default() }
}

impl Row {
    /// A row of something that was checked on the spot, by assertions: all that must be zero is.
    pub fn passed(fault: &str, party: impl ToString, counts: &Counts) -> Self {
        Self {
            fault: fault.to_owned(),
            party: party.to_string(),
            acknowledged: counts.acknowledged,
            unknown: counts.unknown,
            ..Self::default()
        }
    }

    /// Adds it to the table.
    ///
    /// # Panics
    /// If it cannot be written, or if nothing was acknowledged: then there was no load, and no fault was survived.
    pub fn write(&self) {
        assert!(self.acknowledged > 0, "{}: nothing was acknowledged", self.fault);
        let file = file();
        create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("a file");
        // One call: other tests write too.
        file.write_all(format!("{}\n", self.form()).as_bytes()).expect("a row");
    }

    fn form(&self) -> Json {
        json!({
            "fault": self.fault, "party": self.party, "acknowledged": self.acknowledged, "unknown": self.unknown,
            "lost": self.lost, "lossy": self.lossy, "twice": self.twice, "torn": self.torn, "reused": self.reused,
            "hung": self.hung, "wrong": self.wrong,
        })
    }

    fn parse(line: &str) -> Self {
        let form: Json = line.parse().expect("a row");
        let number = |name: &str| form[name].as_u64().expect("a number");
        let text = |name: &str| form[name].as_str().expect("a text").to_owned();
        Self {
            fault: text("fault"),
            party: text("party"),
            acknowledged: number("acknowledged"),
            unknown: number("unknown"),
            lost: number("lost"),
            lossy: form["lossy"] == true,
            twice: number("twice"),
            torn: number("torn"),
            reused: number("reused"),
            hung: number("hung"),
            wrong: number("wrong"),
        }
    }

    fn is_sound(&self) -> bool {
        (self.lossy || self.lost == 0) && [self.twice, self.torn, self.reused, self.hung, self.wrong] == [0; 5]
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/faults")
}

fn file() -> PathBuf {
    folder().join("rows.jsonl")
}

/// Keeps a text that is too long for an error message, and says where.
pub fn kept(name: &str, text: &str) -> String {
    let name: String = name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
    match create_dir_all(folder()).and_then(|()| std::fs::write(folder().join(format!("{name}.txt")), text)) {
        Ok(()) => format!("all of it is in target/faults/{name}.txt"),
        Err(error) => format!("it could not be kept: {error}"),
    }
}

/// The table of all rows that were written, and whether every zero is one.
///
/// # Errors
/// If there are no rows.
pub fn table() -> std::io::Result<(String, bool)> {
    let mut rows: Vec<Row> = std::fs::read_to_string(file())?.lines().map(Row::parse).collect();
    rows.sort_by(|one, other| (&one.fault, &one.party).cmp(&(&other.fault, &other.party)));
    let heads = ["fault", "", "acknowledged", "unknown", "lost", "applied twice", "torn", "reused", "hung", "otherwise wrong"];
    let mut lines: Vec<Vec<String>> = vec![heads.map(str::to_owned).to_vec()];
    for row in &rows {
        let lost = if row.lossy { format!("{} in the window", row.lost) } else { row.lost.to_string() };
        let numbers = [row.twice, row.torn, row.reused, row.hung, row.wrong].map(|number| number.to_string());
        let mut line = vec![row.fault.clone(), row.party.clone(), row.acknowledged.to_string(), row.unknown.to_string(), lost];
        line.extend(numbers);
        lines.push(line);
    }
    let all = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>().to_string();
    let mut last = vec![format!("all {}", rows.len()), String::new(), all(|row| row.acknowledged), all(|row| row.unknown)];
    last.push(all(|row| if row.lossy { 0 } else { row.lost }));
    last.extend([all(|row| row.twice), all(|row| row.torn), all(|row| row.reused), all(|row| row.hung), all(|row| row.wrong)]);
    lines.push(last);
    let widths: Vec<usize> = (0..heads.len()).map(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or(0)).collect();
    let mut table = String::new();
    for line in lines {
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            table += &if at < 2 { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") };
        }
        table.truncate(table.trim_end().len());
        table.push('\n');
    }
    Ok((table, rows.iter().all(Row::is_sound)))
}
