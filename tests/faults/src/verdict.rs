//! What is made of a history: a small table, and a panic if anything is wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use crate::history::{History, Log};
use crate::linear::check_all;
use crate::party::Party;
use crate::report::{Row, kept};
use crate::window::check_across;

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
    /// A lock was held by two at once.
    Shared,
    /// A scan expired.
    Expired,
    /// An operation did not end in its time.
    Hung,
    /// An error that the fault does not explain.
    Error,
}

const PROBLEMS: [(Problem, &str); 11] = [
    (Problem::Lost, "lost"),
    (Problem::Twice, "applied twice"),
    (Problem::Refused, "refused, yet applied"),
    (Problem::Torn, "torn"),
    (Problem::Reused, "reused"),
    (Problem::Disordered, "out of order"),
    (Problem::Wrong, "wrong value"),
    (Problem::Shared, "lock shared"),
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
    /// Acknowledged changes that a failover lost, where it may.
    pub lost: u64,
    /// Failures by code.
    pub errors: BTreeMap<&'static str, u64>,
    /// Those of which nobody knows, by code.
    pub unknown_errors: BTreeMap<&'static str, u64>,
}

/// Judges what happened, prints the counts, adds them to the table of the run, and gives them back.
///
/// # Panics
/// If anything was wrong.
pub fn judge(name: &str, party: Party, history: &History) -> Counts {
    let (counts, problems, lossy) = history.with(|log| {
        let refused: Vec<_> = log.refused.iter().filter(|(id, _)| log.seen.contains(id)).collect();
        let said: Vec<_> = refused.into_iter().map(|(id, said)| (Problem::Refused, format!("write {id}: {said}"))).collect();
        log.problems.extend(said);
        order(name, party, log);
        locks(log);
        (log.counts.clone(), log.problems.clone(), log.window.is_some())
    });
    let count = |wanted: Problem| problems.iter().filter(|(problem, _)| *problem == wanted).count() as u64;
    let table = table(&format!("{name}, {party}"), &counts, &problems);
    // Not `print!`, which the test harness keeps to itself.
    let _ = std::io::stdout().lock().write_all(table.as_bytes());
    let mut row = Row {
        lost: count(Problem::Lost) + counts.lost,
        lossy,
        twice: count(Problem::Twice),
        torn: count(Problem::Torn),
        reused: count(Problem::Reused),
        hung: count(Problem::Hung),
        ..Row::passed(name, party, &counts)
    };
    let named = [Problem::Lost, Problem::Twice, Problem::Torn, Problem::Reused, Problem::Hung];
    row.wrong = problems.iter().filter(|(problem, _)| !named.contains(problem)).count() as u64;
    row.write();
    if !problems.is_empty() {
        let shown: Vec<_> = problems.iter().take(12).map(|(problem, said)| format!("{problem:?}: {said}")).collect();
        panic!("{name}, {party}: {} problems\n{}", problems.len(), shown.join("\n"));
    }
    counts
}

/// Finds an order for the operations of each register.
fn order(name: &str, party: Party, log: &mut Log) {
    for (register, failure) in match &log.window {
        None => check_all(&log.registers),
        Some(window) => {
            let mut failures = Vec::new();
            for (register, ops) in &log.registers {
                match check_across(ops, window) {
                    Ok(lost) => log.counts.lost += lost,
                    Err(failure) => failures.push((register.clone(), failure)),
                }
            }
            failures
        }
    } {
        let ops: Vec<String> = log.registers[&register].iter().map(|op| format!("{op}\n")).collect();
        let said = format!("{register}: {failure}\n  {}", kept(&format!("{name}, {party}, {register}"), &ops.concat()));
        log.problem(Problem::Disordered, said);
    }
}

/// A lock is held by one at a time, with a larger token each time.
fn locks(log: &mut Log) {
    let mut problems = Vec::new();
    for (place, one) in log.grants.iter().enumerate() {
        for other in log.grants[..place].iter().filter(|other| other.lock == one.lock) {
            let (first, second) = if one.granted < other.granted { (one, other) } else { (other, one) };
            if first.token == second.token {
                problems.push((Problem::Reused, format!("token {} of {}", one.token, one.lock)));
            } else if first.granted < second.begun && first.token > second.token {
                problems.push((Problem::Reused, format!("a token of {} after {}: {}", one.lock, first.token, second.token)));
            }
            // A lease that was lost in a failover is no longer held, whatever its holder believes.
            let lost = log.window.as_ref().is_some_and(|window| first.granted <= *window.end() && second.granted > *window.end());
            if second.granted < first.over && !lost {
                problems.push((Problem::Shared, format!("{}: {first:?} and {second:?}", one.lock)));
            }
        }
    }
    log.problems.extend(problems);
}

fn table(name: &str, counts: &Counts, problems: &[(Problem, String)]) -> String {
    let mut columns: Vec<(&str, u64)> = vec![
        ("acknowledged", counts.acknowledged),
        ("read", counts.read),
        ("conflicts", counts.conflicts),
        ("not applied", counts.not_applied),
        ("unknown", counts.unknown),
        ("lost in the window", counts.lost),
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
