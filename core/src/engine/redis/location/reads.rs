//! Reads: whatever waits when the line is free goes out as one transaction, and is judged by the time that it read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;

use super::Inner;
use super::answer::Fields;
use super::asks::{Ask, ask, ask_of};
use super::lane::{Lane, Waiting};
use super::record::Record;
use crate::call::Call;
use crate::contract::{Error, Key, ReadResult, StoreTime};
use crate::engine::redis::client::Client;
use crate::engine::redis::transport::Reply;

/// Most reads of one batch.
const MOST: usize = 256;
/// About how many bytes of values one batch asks for.
const BYTES: usize = 4 * 1_048_576;
/// Keys that are asked for at once if each is asked for by itself.
const APART: usize = 32;
/// Batches under way at once.
const WIDTH: usize = 2;

pub(super) struct Reads {
    lane: Lane<Job>,
    /// What a value takes, about.
    typical: AtomicUsize,
}

struct Job {
    record: Bytes,
    deadline: Instant,
    answer: oneshot::Sender<Result<ReadResult, Error>>,
}

impl Reads {
    pub(super) fn new() -> Self {
        Self { lane: Lane::new(WIDTH), typical: AtomicUsize::new(256) }
    }
}

impl Inner {
    pub(super) async fn read(self: Arc<Self>, key: Key, call: Call) -> Result<ReadResult, Error> {
        let (answer, answered) = oneshot::channel();
        let job = Job { record: self.layout.record(key.as_bytes()), deadline: call.deadline, answer };
        self.reads.lane.push(job, || Arc::clone(&self).read_rounds());
        drop(self);
        answered.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    async fn read_rounds(self: Arc<Self>) {
        loop {
            self.read_round().await;
            if !self.reads.lane.goes_on() {
                return;
            }
        }
    }

    async fn read_round(self: &Arc<Self>) {
        let lane = &self.reads.lane;
        let Some(deadline) = lane.latest() else { return };
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => return lane.fail_those(deadline, &error),
        };
        let most = (BYTES / self.reads.typical.load(Ordering::Relaxed).max(1)).clamp(8, MOST);
        let (mut round, mut jobs, mut nobody) = (lane.round(), Vec::<Job>::new(), false);
        // A batch is made when the line is free, from who still waits then.
        let make = || {
            jobs.retain(|job| !job.answer.is_closed());
            round.take(|waiting, share| {
                let most = most.min(jobs.len() + share);
                while jobs.len() < most {
                    match waiting.pop_front() {
                        Some(job) if job.answer.is_closed() => {}
                        Some(job) => jobs.push(job),
                        None => break,
                    }
                }
            });
            nobody = jobs.is_empty();
            let latest = jobs.iter().map(|job| job.deadline).max()?;
            let records = jobs.iter().map(|job| job.record.clone()).collect();
            Some((vec![Ask::time(), Ask::get(&self.layout.format), Ask::strings(records)], Call::reading(latest)))
        };
        let answer = ask_of(&client, deadline, make).await;
        match answer.and_then(|answer| answer.map(observation).transpose()) {
            Ok(Some((now, values))) => self.reads.hand_out(jobs, now, values),
            Ok(None) => self.read_apart(&client, jobs).await,
            Err(_) if nobody => {}
            Err(error) if jobs.is_empty() => lane.fail_those(deadline, &error),
            Err(error) => jobs.into_iter().for_each(|job| job.fail(&error)),
        }
    }
}

impl Inner {
    /// Each key by itself, as an observation of its own.
    async fn read_apart(&self, client: &Client, jobs: Vec<Job>) {
        let Some(deadline) = jobs.iter().map(|job| job.deadline).max() else { return };
        let format = async {
            let mut fields = ask(client, vec![Ask::time(), Ask::get(&self.layout.format)], &Call::reading(deadline)).await?;
            fields.time()?;
            fields.format()
        };
        if let Err(error) = format.await {
            return jobs.into_iter().for_each(|job| job.fail(&error));
        }
        let each = stream::iter(jobs).for_each_concurrent(APART, async |job| {
            let asks = vec![Ask::time(), Ask::strings(vec![job.record.clone()])];
            let answer = ask(client, asks, &Call::reading(job.deadline)).await;
            match answer.and_then(|mut fields| Ok((fields.time()?, fields.array()?))) {
                Ok((now, value)) => self.reads.hand_out(vec![job], now, value),
                Err(error) => job.fail(&error),
            }
        });
        each.await;
    }
}

impl Reads {
    fn hand_out(&self, jobs: Vec<Job>, now: StoreTime, values: Fields) {
        let (count, mut size) = (jobs.len(), 0);
        for (job, value) in jobs.into_iter().zip(values.replies()) {
            let record = match value {
                Reply::Bytes(raw) => {
                    size += raw.len();
                    Record::decode(raw).filter(|record| record.is_live(now))
                }
                // Nothing, or something that is no record.
                _ => None,
            };
            let result = match record {
                Some(record) => ReadResult::Found(record.observed(now)),
                None => ReadResult::Missing { store_now: now },
            };
            // Whoever is gone by now does not need it.
            let _ = job.answer.send(Ok(result));
        }
        let typical = self.typical.load(Ordering::Relaxed);
        self.typical.store((3 * typical + size / count.max(1)) / 4, Ordering::Relaxed);
    }
}

impl Waiting for Job {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn fail(self, error: &Error) {
        let _ = self.answer.send(Err(error.clone()));
    }
}

/// Time and values of one batch.
fn observation(mut answer: Fields) -> Result<(StoreTime, Fields), Error> {
    let now = answer.time()?;
    answer.format()?;
    Ok((now, answer.array()?))
}
