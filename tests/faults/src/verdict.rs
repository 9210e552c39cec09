//! What is made of a history: a small table, and a panic if anything is wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use crate::history::History;
use crate::linear::check_all;

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Something acknowledged is not there.
    Lost,
    /// Something was applied twice.
    Twice,
    /// What was refused was applied.
    Refused,
    /// Part of a commit was seen without the rest.
    Torn,
    /// A version belongs to two values.
    Reused,
    /// The answers about a register fit no order.
    Disordered,
    /// A value, or what belongs to it, is not what was written.
    Wrong,
    /// A scan expired.
    Expired,
    /// An operation did not end in its time.
    Hung,
    /// An error that the fault does not explain.
    Error,
}

const PROBLEMS: [(Problem, &str); 10] = [
    (Problem::Lost, "lost"),
    (Problem::Twice, "applied twice"),
    (Problem::Refused, "refused, yet applied"),
    (Problem::Torn, "torn"),
    (Problem::Reused, "version reused"),
    (Problem::Disordered, "out of order"),
    (Problem::Wrong, "wrong value"),
    (Problem::Expired, "scan expired"),
    (Problem::Hung, "hung"),
    (Problem::Error, "wrong error"),
];

/// How much happened.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Writes, blob puts, renewals and deletes that were acknowledged.
    pub acknowledged: u64,
    /// Reads and pages that were answered.
    pub read: u64,
    /// Writes and blob puts that met a conflict.
    pub conflicts: u64,
    /// Failures that surely did nothing (those of reads too).
    pub not_applied: u64,
    /// Failures of which nobody knows.
    pub unknown: u64,
    /// Failures by code.
    pub errors: BTreeMap<&'static str, u64>,
}

/// Judges what happened, prints the counts, and gives them back.
///
/// # Panics
/// If anything was wrong.
pub fn judge(name: &str, history: &History) -> Counts {
    let (counts, problems) = history.with(|log| {
        let applied_though_refused: Vec<_> = log.refused.iter().filter(|(id, _)| log.seen.contains(id)).collect();
        let said = applied_though_refused.into_iter().map(|(id, said)| (Problem::Refused, format!("write {id}: {said}")));
        let said: Vec<_> = said.collect();
        log.problems.extend(said);
        for (register, failure) in check_all(&log.registers) {
            log.problem(Problem::Disordered, format!("{register}: {failure}"));
        }
        (log.counts.clone(), log.problems.clone())
    });
    let table = table(name, &counts, &problems);
    // Not `print!`, which the test harness keeps to itself.
    let _ = std::io::stdout().lock().write_all(table.as_bytes());
    if !problems.is_empty() {
        let shown: Vec<_> = problems.iter().take(12).map(|(problem, said)| format!("{problem:?}: {said}")).collect();
        panic!("{name}: {} problems\n{}", problems.len(), shown.join("\n"));
    }
    counts
}

fn table(name: &str, counts: &Counts, problems: &[(Problem, String)]) -> String {
    let mut columns: Vec<(&str, u64)> = vec![
        ("acknowledged", counts.acknowledged),
        ("read", counts.read),
        ("conflicts", counts.conflicts),
        ("not applied", counts.not_applied),
        ("unknown", counts.unknown),
    ];
    columns.extend(
        PROBLEMS.map(|(problem, column)| (column, problems.iter().filter(|(other, _)| *other == problem).count() as u64)),
    );
    let (mut heads, mut cells) = (String::new(), String::new());
    for (column, count) in columns {
        let width = column.len().max(6) + 2;
        let _ = write!(heads, "{column:>width$}");
        let _ = write!(cells, "{count:>width$}");
    }
    let errors: Vec<_> = counts.errors.iter().map(|(code, count)| format!("{code} {count}")).collect();
    let errors = if errors.is_empty() { "no errors".to_owned() } else { errors.join(", ") };
    format!("\n{name} ({errors})\n{heads}\n{cells}\n")
}
