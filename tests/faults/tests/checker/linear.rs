use zlink_test_faults::linear::Guard::{Another, Any, Is, Not};
use zlink_test_faults::linear::{Failure, Guard, Op, State, check};

fn op(guard: Guard, set: Option<State>, begun: u64, ended: u64) -> Op {
    Op { client: 0, guard, set, begun, ended: Some(ended) }
}

fn put(id: u64, begun: u64, ended: u64) -> Op {
    op(Any, Some(Some(id)), begun, ended)
}

fn delete(begun: u64, ended: u64) -> Op {
    op(Any, Some(None), begun, ended)
}

fn swap(from: u64, to: u64, begun: u64, ended: u64) -> Op {
    op(Is(Some(from)), Some(Some(to)), begun, ended)
}

fn read(state: State, begun: u64, ended: u64) -> Op {
    op(Is(state), None, begun, ended)
}

fn unanswered(op: Op) -> Op {
    Op { ended: None, ..op }
}

fn holds(ops: &[Op]) {
    check(None, ops).expect("an order");
}

fn fails(ops: &[Op]) {
    assert!(matches!(check(None, ops), Err(Failure::Stuck { .. })), "{ops:?}");
}

#[test]
fn one_after_the_other() {
    holds(&[read(None, 1, 2), put(1, 3, 4), read(Some(1), 5, 6), delete(7, 8), read(None, 9, 10)]);
}

#[test]
fn a_lost_write_is_found() {
    fails(&[put(1, 1, 2), read(None, 3, 4)]);
    fails(&[put(1, 1, 2), put(2, 3, 4), read(Some(1), 5, 6)]);
    fails(&[put(1, 1, 2), swap(1, 2, 3, 4), swap(1, 3, 5, 6)]);
}

#[test]
fn what_overlaps_may_go_either_way() {
    holds(&[put(1, 1, 4), put(2, 2, 3), read(Some(1), 5, 6)]);
    holds(&[put(1, 1, 4), put(2, 2, 3), read(Some(2), 5, 6)]);
    holds(&[put(1, 1, 6), read(None, 2, 3), read(Some(1), 4, 5)]);
    fails(&[put(1, 1, 6), read(Some(1), 2, 3), read(None, 4, 5)]);
}

#[test]
fn values_do_not_come_back() {
    fails(&[put(1, 1, 2), put(2, 3, 4), read(Some(2), 5, 6), read(Some(1), 7, 8)]);
    fails(&[unanswered(put(1, 1, 2)), read(Some(1), 3, 4), put(2, 5, 6), read(Some(2), 7, 8), read(Some(1), 9, 10)]);
}

#[test]
fn what_was_not_answered_happened_once_at_any_time_or_never() {
    holds(&[unanswered(put(1, 1, 2)), read(None, 3, 4), put(2, 5, 6), read(Some(2), 7, 8), read(Some(1), 9, 10)]);
    holds(&[unanswered(put(1, 1, 2)), read(None, 3, 4)]);
    fails(&[read(Some(1), 1, 2), unanswered(put(1, 3, 4))]);
    holds(&[put(1, 1, 2), unanswered(delete(3, 4)), read(None, 5, 6), read(None, 7, 8)]);
    fails(&[put(1, 1, 2), unanswered(delete(3, 4)), read(None, 5, 6), put(2, 7, 8), read(None, 9, 10)]);
}

#[test]
fn several_without_an_answer_may_build_on_one_another() {
    let create = |id| op(Is(None), Some(Some(id)), 4, 5);
    holds(&[put(1, 1, 2), unanswered(delete(3, 6)), unanswered(create(2)), read(Some(2), 7, 8)]);
    fails(&[put(1, 1, 2), unanswered(create(2)), read(Some(2), 7, 8)]);
}

#[test]
fn a_conflict_needs_somebody_elses_write() {
    let conflict = |begun, ended| op(Not(Some(1)), None, begun, ended);
    fails(&[put(1, 1, 2), conflict(3, 4)]);
    holds(&[put(1, 1, 2), conflict(3, 6), put(2, 4, 5)]);
    // An unanswered write that nobody ever saw explains it, if what comes after does not speak against it.
    holds(&[put(1, 1, 2), unanswered(put(2, 3, 4)), conflict(5, 6)]);
    fails(&[put(1, 1, 2), unanswered(put(2, 3, 4)), conflict(5, 6), read(Some(1), 7, 8)]);
    fails(&[put(1, 1, 2), op(Another(1), None, 3, 4)]);
    fails(&[op(Another(1), None, 3, 4)]);
    holds(&[put(2, 1, 2), op(Another(1), None, 3, 4)]);
}

/// A store in memory, used by several at once, with some answers kept back: what it does is in order by construction, and one
/// answer changed to something that was not so is found.
#[test]
fn long_histories() {
    for seed in 0..20 {
        let (ops, lied) = history(seed, false);
        assert!(lied.is_none());
        check(None, &ops).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let (ops, lied) = history(seed, true);
        assert!(lied.is_some());
        assert!(matches!(check(None, &ops), Err(Failure::Stuck { .. })), "seed {seed}: nobody saw that {lied:?} is a lie");
    }
}

/// What a client has begun.
#[derive(Clone, Copy)]
struct Begun {
    at: u64,
    kind: u8,
    expected: State,
    /// What it will be told, once that has happened.
    done: Option<Op>,
}

fn history(seed: u64, lie: bool) -> (Vec<Op>, Option<Op>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut state, mut clock, mut ids, mut lied, mut stale) = (None, 0, 0, None, None);
    let mut ops = Vec::new();
    let mut clients: Vec<Option<Begun>> = vec![None; 8];
    for round in 0..4_000 {
        clock += 1;
        let client = random.usize(..clients.len());
        let tick = |op: Op| Op { client: u32::try_from(client).expect("a few clients"), ..op };
        match clients[client].take() {
            None => clients[client] = Some(Begun { at: clock, kind: random.u8(..10), expected: state, done: None }),
            Some(Begun { at: begun, kind, expected, done: None }) => {
                ids += 1;
                let done = match kind {
                    0 | 1 => put(ids, begun, 0),
                    2 => delete(begun, 0),
                    3..=5 if state == expected => op(Is(expected), Some(Some(ids)), begun, 0),
                    3..=5 => op(Not(expected), None, begun, 0),
                    _ => read(state, begun, 0),
                };
                state = done.set.unwrap_or(state);
                // Some never hear of it; of these some others did nothing at all.
                if done.set.is_some() && random.u8(..12) == 0 {
                    ops.push(tick(unanswered(done)));
                    if random.bool() {
                        ids += 1;
                        ops.push(tick(unanswered(put(ids, begun, 0))));
                    }
                } else {
                    clients[client] = Some(Begun { at: begun, kind, expected, done: Some(tick(done)) });
                }
            }
            Some(Begun { done: Some(done), .. }) => {
                let mut done = Op { ended: Some(clock), ..done };
                if done.set.is_none() && matches!(done.guard, Is(Some(_))) {
                    let stale = *stale.get_or_insert(done.guard);
                    if lie && lied.is_none() && round > 2_000 {
                        done.guard = stale;
                        lied = Some(done);
                    }
                }
                ops.push(done);
            }
        }
    }
    ops.extend(clients.into_iter().flatten().filter_map(|begun| begun.done).map(unanswered));
    (ops, lied)
}
