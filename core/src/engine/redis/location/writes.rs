//! Writes: whatever waits when the line is free goes out as groups of one call, if the groups touch no key in common.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Inner;
use super::answer::foreign;
use super::commit::{Answer, Committed, Status, commit};
use super::group::{Change, Group};
use super::lane::{Lane, Waiting};
use super::record::{HEADER, Record};
use super::snapshots::Known;
use crate::ambient::random;
use crate::background;
use crate::call::Call;
use crate::contract::{Error, Key, Outcome, WriteRequest, WriteResult};
use crate::engine::redis::client::Client;
use crate::engine::redis::transport::{Failure, Line, Reply};

/// Most groups of one call.
const GROUPS: usize = 64;
/// Most keys and bytes of a group that shares a call, so that one call never blocks the server for long.
const SMALL_KEYS: usize = 16;
const SMALL_BYTES: usize = 65_536;
/// Most bytes of a call of several groups.
const CALL_BYTES: usize = 1_048_576;
/// How far behind the first group one that may join it is looked for.
const LOOKED_AT: usize = 256;
/// Calls under way at once.
const WIDTH: usize = 2;

pub(super) struct Writes {
    lane: Lane<Job>,
    pub(super) known: Mutex<Known>,
}

struct Job {
    group: Group,
    call: Call,
    answer: oneshot::Sender<Result<WriteResult, Error>>,
}

impl Writes {
    pub(super) fn new() -> Self {
        Self { lane: Lane::new(WIDTH), known: Mutex::default() }
    }
}

impl Inner {
    pub(super) async fn write(self: Arc<Self>, request: WriteRequest, call: Call) -> Result<WriteResult, Error> {
        let (answer, answered) = oneshot::channel();
        let group = Group::new(request, random(&*self.ambient));
        self.writes.lane.push(Job { group, call, answer }, || Arc::clone(&self).write_rounds());
        drop(self);
        answered.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    async fn write_rounds(self: Arc<Self>) {
        loop {
            self.write_round().await;
            if !self.writes.lane.goes_on() {
                return;
            }
        }
    }

    async fn write_round(self: &Arc<Self>) {
        let lane = &self.writes.lane;
        let Some(deadline) = lane.latest() else { return };
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => return lane.fail_those(deadline, &error),
        };
        let mut jobs = Vec::new();
        match self.commit(&client, deadline, &mut jobs).await {
            Ok(Some(committed)) => self.hand_out(jobs, committed),
            Ok(None) => {}
            Err(Failure::NotSent(error)) if jobs.is_empty() => lane.fail_those(deadline, &error),
            Err(Failure::NotSent(error)) => jobs.into_iter().for_each(|job| job.fail(&error)),
            Err(Failure::Lost(error)) => {
                background::handle().spawn(Arc::clone(self).look(client, jobs, error));
            }
        }
    }

    /// Takes jobs and commits them in one call, which is made again as long as its answer says that it did nothing. `None`:
    /// nobody waits.
    async fn commit(
        self: &Arc<Self>,
        client: &Client,
        deadline: Instant,
        jobs: &mut Vec<Job>,
    ) -> Result<Option<Committed>, Failure> {
        let (mut drop, mut nobody) = (0, false);
        loop {
            let make = || {
                let taken = self.writes.lane.with_waiting(|waiting| take(waiting, jobs));
                nobody = !taken;
                taken.then(|| {
                    let groups = jobs.iter().map(|job| &job.group);
                    let prepared = commit(&self.layout, groups, &self.writes.known.lock(), drop);
                    (prepared, Call::joint(jobs.iter().map(|job| job.call.clone()).collect(), deadline))
                })
            };
            let reply = match client.script_of(Line::Small, false, deadline, make).await {
                Err(_) if nobody => return Ok(None),
                reply => reply?,
            };
            match Answer::of(reply).map_err(Failure::NotSent)? {
                Answer::Done(fields) => return Committed::of(fields).map(Some).map_err(Failure::Lost),
                Answer::Again { drop: more, entries } => {
                    jobs.iter().for_each(|job| job.call.unmark_sent());
                    drop = more;
                    self.writes.known.lock().learn(entries);
                    self.read_moved_names(client, drop, deadline).await.map_err(Failure::NotSent)?;
                }
            }
        }
    }

    fn hand_out(&self, jobs: Vec<Job>, committed: Committed) {
        let Committed { now, mut sequence, snapshots, due, statuses } = committed;
        if !snapshots {
            self.writes.known.lock().learn(Vec::new());
        }
        if due {
            self.reaper.owe(jobs.len());
        }
        let mut statuses = statuses.into_iter();
        for job in jobs {
            // A group without keys asks for nothing but the time.
            let status = if job.group.keys.is_empty() { Some(Status::Applied) } else { statuses.next() };
            let Some(status) = status else { return };
            let result = match status {
                Status::Applied => {
                    let putting = job.group.puts_something();
                    let applied = job.group.applied(sequence, now);
                    sequence += u64::from(putting);
                    Ok(applied)
                }
                Status::Conflict => Ok(WriteResult::Conflict { store_now: now }),
                Status::Foreign => Err(foreign()),
            };
            // Whoever is gone by now was told that the outcome is unknown.
            let _ = job.answer.send(result);
        }
    }

    /// After a lost answer: a first record that bears the commit's mark proves that the commit was applied.
    async fn look(self: Arc<Self>, client: Client, jobs: Vec<Job>, error: Error) {
        let (marked, unmarked): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.group.marked().is_some());
        let error = error.with_outcome(Outcome::Unknown);
        unmarked.into_iter().for_each(|job| job.fail(&error));
        for job in marked {
            let Some(key) = job.group.marked() else { continue };
            let found = self.header(&client, key, job.call.deadline).await.ok().flatten();
            match found.filter(|record| record.stamp.nonce == job.group.nonce) {
                Some(record) => {
                    let _ = job.answer.send(Ok(job.group.applied(record.stamp.sequence, record.committed)));
                }
                None => job.fail(&error),
            }
        }
    }

    /// A record without its value; where replicas must acknowledge, they have acknowledged it.
    async fn header(&self, client: &Client, key: &Key, deadline: Instant) -> Result<Option<Record>, Failure> {
        let word = Bytes::from_static;
        let last = Bytes::from((HEADER - 1).to_string());
        let command = vec![word(b"GETRANGE"), self.layout.record(key.as_bytes()), word(b"0"), last];
        let replies = client.look(vec![command], &self.layout.witness, &Call::reading(deadline)).await?;
        Ok(replies.into_iter().next().and_then(|reply| match reply {
            Reply::Bytes(raw) => Record::decode(raw),
            _ => None,
        }))
    }
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
/// share a call. Each is marked as sent before the last look at whether its caller is there.
fn take(waiting: &mut VecDeque<Job>, jobs: &mut Vec<Job>) -> bool {
    loop {
        if jobs.is_empty() {
            join(waiting, jobs);
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
fn join(waiting: &mut VecDeque<Job>, jobs: &mut Vec<Job>) {
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
    while at < waiting.len().min(LOOKED_AT) && jobs.len() < GROUPS {
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
