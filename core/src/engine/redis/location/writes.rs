//! Writes: whatever waits when the line is free goes out as groups of one call, if the groups touch no key in common.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Inner;
use super::answer::foreign;
use super::commit::{Answer, Committed, Status, commit};
use super::group::Group;
use super::lane::{Lane, Waiting};
use super::queue::{Job, take};
use super::record::{HEADER, Record};
use super::snapshots::Known;
use crate::ambient::random;
use crate::background;
use crate::call::Call;
use crate::contract::{Error, Outcome, WriteRequest, WriteResult};
use crate::engine::redis::client::Client;
use crate::engine::redis::transport::{Failure, Line, Reply};

/// Calls under way at once.
pub(super) const WIDTH: usize = 2;

pub(super) struct Writes {
    lane: Lane<Job>,
    pub(super) known: Mutex<Known>,
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
        let (mut round, mut drop, mut nobody) = (self.writes.lane.round(), 0, false);
        loop {
            let make = || {
                let taken = round.take(|waiting, share| take(waiting, jobs, share));
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
        let error = error.with_outcome(Outcome::Unknown);
        let (marked, unmarked): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.group.marked().is_some());
        unmarked.into_iter().for_each(|job| job.fail(&error));
        let at_once = if client.transactions() { marked.len().max(1) } else { 1 };
        let mut marked = marked.into_iter().peekable();
        while marked.peek().is_some() {
            let jobs: Vec<Job> = marked.by_ref().take(at_once).filter(|job| !job.answer.is_closed()).collect();
            let headers = self.headers(&client, &jobs).await.unwrap_or_default();
            for (job, header) in jobs.into_iter().zip(headers.into_iter().chain(std::iter::repeat(None))) {
                match header.filter(|record| record.stamp.nonce == job.group.nonce) {
                    Some(record) => {
                        let _ = job.answer.send(Ok(job.group.applied(record.stamp.sequence, record.committed)));
                    }
                    None => job.fail(&error),
                }
            }
        }
    }

    /// The records that bear the marks of `jobs`, without their values; where replicas must acknowledge, they have
    /// acknowledged them.
    async fn headers(&self, client: &Client, jobs: &[Job]) -> Result<Vec<Option<Record>>, Failure> {
        let Some(deadline) = jobs.iter().map(|job| job.call.deadline).max() else { return Ok(Vec::new()) };
        let word = Bytes::from_static;
        let last = Bytes::from((HEADER - 1).to_string());
        let keys = jobs.iter().filter_map(|job| job.group.marked());
        let commands = keys.map(|key| vec![word(b"GETRANGE"), self.layout.record(key.as_bytes()), word(b"0"), last.clone()]);
        let replies = client.look(commands.collect(), &self.layout.witness, &Call::reading(deadline)).await?;
        let decoded = replies.into_iter().map(|reply| match reply {
            Reply::Bytes(raw) => Record::decode(raw),
            _ => None,
        });
        Ok(decoded.collect())
    }
}
