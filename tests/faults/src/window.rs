//! Histories across a failover that may lose what was acknowledged shortly before it.
//!
//! The window begins at an instant from which on nothing more reached the replica that was promoted, and ends when the old primary
//! was dead. What came before the end of the window is one history, and what came after it another one, which begins with
//! something that the register held within the window. Whatever else changed is a fault like any other.

use std::ops::RangeInclusive;

use crate::linear::{Failure, Op, State, check};

/// How many acknowledged changes of one register were lost.
///
/// # Errors
/// If the history is out of order, whatever was lost.
pub fn check_across(ops: &[Op], window: &RangeInclusive<u64>) -> Result<u64, Failure> {
    let dead = *window.end();
    let (before, after): (Vec<Op>, Vec<Op>) = ops.iter().partition(|op| op.begun < dead);
    // What was under way at the end took effect on either side, or on none.
    let open = |op: &Op| op.ended.is_none_or(|ended| ended > dead);
    let first: Vec<Op> = before.iter().map(|op| if open(op) { Op { ended: None, ..*op } } else { *op }).collect();
    check(None, &first)?;
    let under_way: Vec<Op> = first.iter().filter(|op| op.ended.is_none() && op.set.is_some()).copied().collect();
    let mut failure = None;
    for state in held_within(&first, window) {
        // What left that state has happened; unless others put the same value.
        let may_come = state.is_none() || put_often(&first, state);
        let again = under_way.iter().filter(|op| may_come || op.set != Some(state));
        let second: Vec<Op> = again.chain(&after).copied().collect();
        match check(state, &second) {
            Ok(()) => return Ok(newer(&first, state)),
            Err(other) => failure = failure.or(Some(other)),
        }
    }
    Err(failure.unwrap_or(Failure::GaveUp))
}

fn put_often(ops: &[Op], state: State) -> bool {
    ops.iter().filter(|op| op.set == Some(state)).count() > 1
}

/// What the register may have held at some instant of the window, the newest first.
fn held_within(ops: &[Op], window: &RangeInclusive<u64>) -> Vec<State> {
    let sets: Vec<(State, &Op)> = ops.iter().filter_map(|op| Some((op.set?, op))).collect();
    // Surely replaced before the window.
    let replaced = |ended: u64| {
        sets.iter().any(|(_, other)| other.begun > ended && other.ended.is_some_and(|other| other < *window.start()))
    };
    let mut held: Vec<(u64, State)> = Vec::new();
    for (state, op) in &sets {
        match op.ended {
            Some(ended) if replaced(ended) => {}
            Some(ended) => held.push((ended, *state)),
            None => held.push((op.begun, *state)),
        }
    }
    // The beginning, when it held nothing.
    if !sets.iter().any(|(_, op)| op.ended.is_some_and(|ended| ended < *window.start())) {
        held.push((0, None));
    }
    held.sort_by_key(|(when, _)| std::cmp::Reverse(*when));
    let mut states: Vec<State> = Vec::new();
    for (_, state) in held {
        if !states.contains(&state) {
            states.push(state);
        }
    }
    states
}

/// How many changes were acknowledged after the one that left `state`.
fn newer(ops: &[Op], state: State) -> u64 {
    let sets = || ops.iter().filter(|op| op.set.is_some());
    let then = sets().filter(|op| op.set == Some(state)).map(|op| op.ended.unwrap_or(op.begun)).max().unwrap_or(0);
    sets().filter(|op| op.begun > then && op.ended.is_some()).count() as u64
}
