use zlink_test_faults::linear::{Guard, Op, State};
use zlink_test_faults::window::check_across;

fn put(id: u64, begun: u64, ended: u64) -> Op {
    Op { client: 0, guard: Guard::Any, set: Some(Some(id)), begun, ended: Some(ended) }
}

fn read(state: State, begun: u64, ended: u64) -> Op {
    Op { client: 1, guard: Guard::Is(state), set: None, begun, ended: Some(ended) }
}

#[test]
fn what_was_acknowledged_in_the_window_may_be_lost_and_is_counted() {
    let ops = [put(1, 0, 1), put(2, 12, 13), put(3, 14, 15), read(Some(1), 30, 31)];
    assert_eq!(check_across(&ops, &(10..=20)).unwrap(), 2);
    let ops = [put(1, 0, 1), put(2, 12, 13), put(3, 14, 15), read(Some(2), 30, 31)];
    assert_eq!(check_across(&ops, &(10..=20)).unwrap(), 1);
    let ops = [put(1, 0, 1), put(2, 12, 13), read(Some(2), 30, 31)];
    assert_eq!(check_across(&ops, &(10..=20)).unwrap(), 0);
}

#[test]
fn what_was_acknowledged_before_the_window_may_not() {
    let ops = [put(1, 0, 1), put(2, 2, 3), put(3, 12, 13), read(Some(1), 30, 31)];
    check_across(&ops, &(10..=20)).unwrap_err();
    let ops = [put(1, 0, 1), put(3, 12, 13), read(None, 30, 31)];
    check_across(&ops, &(10..=20)).unwrap_err();
}

#[test]
fn what_was_lost_does_not_come_back() {
    let ops = [put(1, 0, 1), put(2, 12, 13), read(Some(1), 30, 31), read(Some(2), 32, 33)];
    check_across(&ops, &(10..=20)).unwrap_err();
}

#[test]
fn what_came_after_the_window_is_not_lost() {
    let ops = [put(1, 0, 1), put(2, 22, 23), read(Some(1), 30, 31)];
    check_across(&ops, &(10..=20)).unwrap_err();
}

#[test]
fn what_was_under_way_may_be_on_either_side() {
    for seen in [1, 2] {
        let ops = [put(1, 0, 1), put(2, 12, 25), read(Some(seen), 30, 31)];
        assert_eq!(check_across(&ops, &(10..=20)).unwrap(), 0, "{seen}");
    }
    let ops = [put(1, 0, 1), put(2, 12, 25), read(Some(2), 14, 15), read(Some(1), 30, 31), read(Some(2), 32, 33)];
    assert_eq!(check_across(&ops, &(10..=20)).unwrap(), 0, "seen on both sides, as if it had come twice");
}

#[test]
fn what_was_under_way_may_put_what_was_there_before() {
    let delete = Op { client: 2, guard: Guard::Any, set: Some(None), begun: 22, ended: Some(23) };
    let store = Op { client: 3, guard: Guard::Is(None), set: Some(Some(1)), begun: 12, ended: Some(40) };
    let ops = [put(1, 0, 1), read(Some(1), 10, 11), store, delete, read(None, 24, 25), read(Some(1), 30, 31)];
    check_across(&ops, &(10..=20)).unwrap();
    let ops = [put(1, 0, 1), read(Some(1), 10, 11), delete, read(None, 24, 25), read(Some(1), 30, 31)];
    check_across(&ops, &(10..=20)).unwrap_err();
}

/// Who puts it again later has nothing to do with what was left.
#[test]
fn what_was_left_does_not_come_again_by_itself() {
    let under_way = Op { client: 2, guard: Guard::Any, set: Some(Some(7)), begun: 12, ended: None };
    let ops = [under_way, read(Some(7), 30, 31), put(8, 32, 33), read(Some(7), 34, 35), put(7, 40, 41)];
    check_across(&ops, &(10..=20)).unwrap_err();
}
