//! The one thread that writes. It takes what waits, evaluates it in order, writes one batch with one sync, and only then
//! shows the new state and gives the answers out.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::blobs::Upload;
use super::crowd::Crowd;
use super::database::{Meta, Tables};
use super::disk;
use super::draft::Round;
use super::journal;
use super::place::{self, Place};
use super::reclaim::Reclaim;
use super::shared::{BEHIND, Open, Shared, snapshot_bound, sweep};
use crate::ambient;
use crate::contract::{Code, Error, Outcome};

/// A round stops taking commits at this many bytes, so that nobody waits long for its sync.
const ROUND: usize = 4 * 1_024 * 1_024;
/// How often the thread looks around when nothing waits.
const LOOK_AROUND: Duration = Duration::from_secs(10);
/// A time that was told is kept with the data after this many milliseconds at the latest, as long as the process lives.
const KEEP_TIME_AFTER_MS: u64 = 10_000;
/// How long readers may take to let go of a database that is to be opened again.
const LET_GO: Duration = Duration::from_secs(5);
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);

enum State {
    Open(Open),
    /// A write failed. Reads go on with what there was; writes fail until the folder has been opened again.
    Broken(Open, Error, Retry),
    Closed(Error, Retry),
}

#[derive(Clone, Copy)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    fn at_once() -> Self {
        Self { at: ambient::monotonic(), pause: FIRST_RETRY }
    }

    fn later(self) -> Self {
        Self { at: ambient::monotonic() + self.pause, pause: LAST_RETRY.min(self.pause * 2) }
    }
}

/// How a step of the thread ended.
enum Step {
    GoOn(State),
    Stop(Option<Open>),
}

impl Shared {
    /// Starts the thread.
    pub(super) fn start(self: &Arc<Self>, place: Arc<Place>) -> Result<(), Error> {
        let committer = Committer { shared: Arc::clone(self), reclaim: Reclaim::default(), crowd: Crowd::default() };
        let shared = Arc::clone(self);
        let started = thread::Builder::new().name("zlink-store-file".to_owned()).spawn(move || {
            {
                let _turn = place.turn.lock();
                committer.run();
            }
            // Under the registry's lock, so that whoever opens the folder next finds it held or free, not in between.
            let registry = place::registry();
            drop(place);
            drop(registry);
            shared.ended.send_replace(true);
        });
        started.map(drop).map_err(|error| disk::failed(&error, "starting a thread"))
    }
}

struct Committer {
    shared: Arc<Shared>,
    reclaim: Reclaim,
    crowd: Crowd,
}

impl Committer {
    fn run(mut self) {
        let mut state = self.open(Retry::at_once());
        let last = loop {
            let step = match state {
                State::Open(open) => self.work(open),
                State::Broken(open, error, retry) => match self.refuse(retry, &error) {
                    Next::Retry => Step::GoOn(self.open_again(open, error, retry)),
                    Next::Stop => Step::Stop(Some(open)),
                },
                State::Closed(error, retry) => match self.refuse(retry, &error) {
                    Next::Retry => Step::GoOn(self.open(retry)),
                    Next::Stop => Step::Stop(None),
                },
            };
            match step {
                Step::GoOn(next) => state = next,
                Step::Stop(last) => break last,
            }
        };
        self.shared.front.failed(Error::closed());
        if let Some(open) = last {
            self.shared.let_go(open, None);
        }
    }

    fn open(&self, retry: Retry) -> State {
        match self.shared.open_tables() {
            Ok(open) => {
                self.shared.front.opened(Arc::clone(&open.view));
                sweep(&self.shared, &open.view);
                State::Open(open)
            }
            Err(error) => {
                if retry.pause == FIRST_RETRY {
                    tracing::warn!(%error, "the folder could not be opened; it is tried again");
                }
                self.shared.front.failed(error.clone());
                State::Closed(error, retry.later())
            }
        }
    }

    /// Opens the folder again after a failed write, as soon as it can be written to. Readers wait that long.
    fn open_again(&self, open: Open, error: Error, retry: Retry) -> State {
        if let Err(error) = disk::probe(&self.shared.folder) {
            return State::Broken(open, error, retry.later());
        }
        self.shared.front.opening();
        if let Some(open) = self.shared.let_go(open, Some(LET_GO)) {
            self.shared.front.opened(Arc::clone(&open.view));
            return State::Broken(open, error, retry.later());
        }
        if let Err(error) = journal::write_anew(&Tables::data(&self.shared.folder)) {
            let error = disk::failed(&error, "writing the journal anew");
            self.shared.front.failed(error.clone());
            return State::Closed(error, retry.later());
        }
        self.open(retry)
    }

    /// Fails what comes until the time to try again.
    fn refuse(&self, retry: Retry, error: &Error) -> Next {
        let mut queue = self.shared.queue.lock();
        loop {
            let jobs = std::mem::take(&mut queue.jobs);
            MutexGuard::unlocked(&mut queue, || jobs.into_iter().for_each(|job| job.fail(error.clone())));
            let left = retry.at.saturating_duration_since(ambient::monotonic());
            if queue.stopping {
                return Next::Stop;
            }
            if left.is_zero() {
                return Next::Retry;
            }
            self.shared.wake.wait_for(&mut queue, left);
        }
    }

    fn work(&mut self, open: Open) -> Step {
        let mut queue = self.shared.queue.lock();
        if queue.jobs.is_empty() && !queue.stopping {
            self.shared.wake.wait_for(&mut queue, LOOK_AROUND);
        }
        let (idle, stopping) = (queue.jobs.is_empty(), queue.stopping);
        drop(queue);
        self.reclaim.consider(&open.tables, open.view.meta.live);
        if open.tables.is_poisoned() {
            return broken(open, Error::new(Code::Unavailable, Outcome::NotApplied, "an earlier write to the folder failed"));
        }
        if !idle {
            if open.tables.is_behind() {
                thread::sleep(BEHIND);
                return Step::GoOn(State::Open(open));
            }
            self.gather();
            return self.round(open);
        }
        let untold = self.shared.front.last_told().unix_ms().saturating_sub(open.view.meta.time.unix_ms());
        if untold >= KEEP_TIME_AFTER_MS || (stopping && untold > 0) {
            return match (self.keep_time(open), stopping) {
                (Ok(open), true) => Step::Stop(Some(open)),
                (Ok(open), false) => Step::GoOn(State::Open(open)),
                (Err(step), _) => step,
            };
        }
        if stopping { Step::Stop(Some(open)) } else { Step::GoOn(State::Open(open)) }
    }

    /// Keeps the last time that was told, so that time does not run backwards over a restart.
    fn keep_time(&self, open: Open) -> Result<Open, Step> {
        let meta = Meta { time: self.shared.front.last_told(), ..open.view.meta };
        match open.tables.commit([], &meta) {
            Ok(()) => {
                let view = Arc::new(open.tables.view_after(meta));
                self.shared.front.show(Arc::clone(&view));
                Ok(Open { view, ..open })
            }
            Err(error) => Err(broken(open, disk::database_failed(&error, "writing to the folder"))),
        }
    }

    /// Waits for those who are about to come.
    fn gather(&mut self) {
        let mut queue = self.shared.queue.lock();
        let Some((expected, patience)) = self.crowd.expected(queue.jobs.len()) else { return };
        let until = ambient::monotonic() + patience;
        queue.wake_at = expected;
        while queue.jobs.len() < expected && !queue.stopping && !self.shared.wake.wait_until(&mut queue, until).timed_out() {}
        queue.wake_at = 0;
        self.crowd.came(queue.jobs.len() >= expected);
    }

    /// Takes what waits, writes it, and answers.
    fn round(&mut self, open: Open) -> Step {
        let began = ambient::monotonic();
        let shared = &*self.shared;
        let now = shared.front.stand_still();
        let mut round = Round::new(Arc::clone(&open.view));
        let room = disk::check_space(&shared.folder, 2 * ROUND as u64);
        let mut done = Vec::new();
        while round.size < ROUND
            && let Some(mut job) = shared.next_job()
        {
            if !job.take_up() {
                continue;
            }
            let drafted = job.evaluate(&round, now);
            match &room {
                Err(full) if drafted.needs_room() => job.fail(full.clone()),
                _ => {
                    done.push((job, !drafted.is_empty()));
                    round.accept(drafted);
                }
            }
        }
        if round.is_empty() {
            shared.front.go_on();
            done.into_iter().for_each(|(job, _)| job.answer());
            return Step::GoOn(State::Open(open));
        }
        let live = open.view.meta.live.saturating_add_signed(round.grown);
        let meta = Meta { sequence: round.sequence, time: now, live, ..open.view.meta };
        let written = shared.write(&open.tables, round.take_changes(), &meta);
        let uploads = std::mem::take(&mut round.uploads);
        let took = ambient::monotonic().saturating_duration_since(began);
        self.crowd.ended(done.len(), shared.queue.lock().jobs.len(), took);
        match written {
            Ok(()) => {
                let view = Arc::new(open.tables.view_after(meta));
                shared.front.show(Arc::clone(&view));
                uploads.into_iter().for_each(Upload::leave);
                shared.snapshots.lock().bound(snapshot_bound(live));
                done.into_iter().for_each(|(job, _)| job.answer());
                if !round.discarded.is_empty() {
                    shared.blobs.remove(round.discarded);
                }
                Step::GoOn(State::Open(Open { view, ..open }))
            }
            Err((error, outcome)) => {
                shared.front.go_on();
                uploads.into_iter().for_each(Upload::leave);
                for (job, changed) in done {
                    // Who changed nothing was told nothing, and nothing of it can come back.
                    job.fail(error.clone().with_outcome(if changed { outcome } else { Outcome::NotApplied }));
                }
                broken(open, error)
            }
        }
    }
}

enum Next {
    Retry,
    Stop,
}

fn broken(open: Open, error: Error) -> Step {
    tracing::warn!(%error, "a write to the folder failed; it is opened again");
    Step::GoOn(State::Broken(open, error, Retry::at_once()))
}
