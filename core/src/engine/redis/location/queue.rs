//! Which of the writes that wait go out together: groups of one call that touch no key in common.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use tokio::sync::oneshot;

use super::group::{Change, Group};
use super::lane::Waiting;
use crate::call::Call;
use crate::contract::{Error, Key, WriteResult};

/// Most groups of one call.
const GROUPS: usize = 64;
/// Most keys and bytes of a group that shares a call, so that one call never blocks the server for long.
const SMALL_KEYS: usize = 16;
const SMALL_BYTES: usize = 65_536;
/// Most bytes of a call of several groups.
const CALL_BYTES: usize = 1_048_576;
/// How far behind the first group one that may join it is looked for.
const LOOKED_AT: usize = 256;
/// A write that waits for its call, or for the answer to it.
pub(super) struct Job {
    pub(super) group: Group,
    pub(super) call: Call,
    pub(super) answer: oneshot::Sender<Result<WriteResult, Error>>,
}

impl Waiting for Job {
    fn deadline(&self) -> Instant {
        self.call.deadline
    }

    fn fail(self, error: &Error) {
        let _ = self.answer.send(Err(error.clone()));
    }
}

/// Makes `jobs` what goes out now: those taken before whose caller still waits, or, if there are none, those that wait and may
/// share a call, at most `most`. Each is marked as sent before the last look at whether its caller is there.
pub(super) fn take(waiting: &mut VecDeque<Job>, jobs: &mut Vec<Job>, most: usize) -> bool {
    loop {
        if jobs.is_empty() {
            join(waiting, jobs, most);
            if jobs.is_empty() {
                return false;
            }
        }
        jobs.iter().for_each(|job| job.call.mark_sent());
        jobs.retain(|job| !job.answer.is_closed());
        if !jobs.is_empty() {
            return true;
        }
    }
}

/// Takes the first job, and those behind it that may share its call: none touches a key that another changes. What has to wait
/// holds back whoever comes later with one of its keys, so that writes of one key keep their order.
fn join(waiting: &mut VecDeque<Job>, jobs: &mut Vec<Job>, most: usize) {
    waiting.retain(|job| !job.answer.is_closed());
    let Some(first) = waiting.pop_front() else { return };
    if !first.group.is_small() || waiting.is_empty() {
        jobs.push(first);
        return;
    }
    let putting = first.group.puts_something();
    let mut size = first.group.size;
    let mut keys = Keys::default();
    keys.add(&first.group);
    jobs.push(first);
    let mut at = 0;
    while at < waiting.len().min(LOOKED_AT) && jobs.len() < GROUPS.min(most) {
        let group = &waiting[at].group;
        let joins = group.is_small()
            && group.puts_something() == putting
            && size + group.size <= CALL_BYTES
            && !keys.conflict_with(group);
        keys.add(group);
        if joins {
            size += group.size;
            jobs.extend(waiting.remove(at));
        } else {
            at += 1;
        }
    }
}

/// The keys of several groups.
#[derive(Default)]
struct Keys {
    changed: HashSet<Key>,
    looked_at: HashSet<Key>,
}

impl Keys {
    fn add(&mut self, group: &Group) {
        for touched in &group.keys {
            let set = if touched.change == Change::Nothing { &mut self.looked_at } else { &mut self.changed };
            set.insert(touched.key.clone());
        }
    }

    fn conflict_with(&self, group: &Group) -> bool {
        group.keys.iter().any(|touched| {
            self.changed.contains(&touched.key) || (touched.change != Change::Nothing && self.looked_at.contains(&touched.key))
        })
    }
}

impl Group {
    fn is_small(&self) -> bool {
        self.keys.len() <= SMALL_KEYS && self.size <= SMALL_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient;
    use crate::contract::{Condition, Mutation, WriteRequest};

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    /// Words: `=k` looks at k, `+k` puts it, `-k` deletes it.
    fn group(words: &str) -> Group {
        let mut request = WriteRequest::new();
        for word in words.split(' ') {
            let (what, name) = (&word[..1], key(&word[1..]));
            request = match what {
                "=" => request.condition(Condition::Missing { key: name }),
                "+" => request.mutation(Mutation::put(name, "")),
                _ => request.mutation(Mutation::delete(name)),
            };
        }
        Group::new(request, [0; 8])
    }

    fn queue(groups: Vec<Group>) -> (VecDeque<Job>, Vec<oneshot::Receiver<Result<WriteResult, Error>>>) {
        let jobs = groups.into_iter().map(|group| {
            let (answer, answered) = oneshot::channel();
            (Job { group, call: Call::writing(ambient::monotonic()), answer }, answered)
        });
        jobs.unzip()
    }

    /// The first keys of those that go out, call by call.
    fn calls(groups: &[&str]) -> Vec<Vec<String>> {
        let (mut waiting, _answers) = queue(groups.iter().map(|words| group(words)).collect());
        let mut calls = Vec::new();
        while !waiting.is_empty() {
            let mut jobs = Vec::new();
            assert!(take(&mut waiting, &mut jobs, GROUPS));
            calls.push(jobs.iter().map(|job| job.group.keys[0].key.to_string()).collect());
        }
        calls
    }

    #[test]
    fn what_another_group_writes_or_reads_does_not_join_its_call() {
        assert_eq!(calls(&["+a", "+b", "+c"]), [["a", "b", "c"]]);
        assert_eq!(calls(&["+a", "+a"]), [["a"], ["a"]], "both write");
        assert_eq!(calls(&["+x +a", "=a +b"]), [["x"], ["a"]], "the later one reads what the earlier one writes");
        assert_eq!(calls(&["=a +b", "+a"]), [["a"], ["a"]], "the later one writes what the earlier one reads");
        assert_eq!(calls(&["=a +b", "=a +c"]), [["a", "a"]], "both only read");
    }

    #[test]
    fn writes_of_one_key_keep_their_order() {
        // The third may not overtake the second, which waits for the first.
        assert_eq!(calls(&["+a", "+a +b", "+b", "+c"]), [vec!["a", "c"], vec!["a"], vec!["b"]]);
        assert_eq!(calls(&["+a", "=a +b", "+b"]), [vec!["a"], vec!["a"], vec!["b"]]);
    }

    #[test]
    fn deletes_go_apart_from_puts_which_lack_of_memory_refuses() {
        assert_eq!(calls(&["+a", "-b", "+c", "=d", "-e +f"]), [vec!["a", "c", "e"], vec!["b", "d"]]);
    }

    #[test]
    fn calls_are_bounded() {
        let many: Vec<String> = (0..GROUPS * 2).map(|at| format!("+{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(calls(&many).iter().map(Vec::len).collect::<Vec<_>>(), [GROUPS, GROUPS]);
        let wide: Vec<String> = (0..=SMALL_KEYS).map(|at| format!("+w{at}")).collect();
        assert_eq!(calls(&["+a", &wide.join(" "), "+b"]), [vec!["a", "b"], vec!["w0"]], "a large group goes alone");
    }

    #[test]
    fn whoever_has_left_is_not_sent_and_the_others_are_marked() {
        let (mut waiting, mut answers) = queue(vec![group("+a"), group("+b"), group("+c")]);
        answers.remove(1);
        let mut jobs = Vec::new();
        assert!(take(&mut waiting, &mut jobs, GROUPS));
        assert_eq!(jobs.len(), 2);
        assert!(jobs.iter().all(|job| job.call.outcome() == crate::contract::Outcome::Unknown));
        answers.remove(0);
        assert!(take(&mut waiting, &mut jobs, GROUPS), "an attempt that did nothing is made again for those who are left");
        assert_eq!(jobs.len(), 1);
        answers.clear();
        assert!(!take(&mut waiting, &mut jobs, GROUPS), "nobody is left");
    }
}
