//! One line of a transport: the connection that takes its work now, and how the next one is made.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared, select_all};
use parking_lot::Mutex;

use super::dial::DialError;
use super::link::Link;
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// With less time than this left there is no further attempt: the last failure says more than its end by the deadline would.
const ATTEMPT: Duration = Duration::from_millis(20);

/// An attempt that takes longer is still good, but another one begins beside it: it may hang where the next one would not. For
/// who has little time, half of that time is too long already, unless it is less than `NOT_SLOW`.
const SLOW: Duration = Duration::from_secs(1);
const NOT_SLOW: Duration = Duration::from_millis(20);

/// How a lane gets a connection.
pub(super) trait Connector: Send + Sync + 'static {
    /// Makes one, at most until `deadline`.
    fn connect(self: Arc<Self>, deadline: Instant) -> BoxFuture<'static, Result<Arc<Link>, DialError>>;
    /// A connection was lost, or replaced, and another one was made.
    fn reconnected(&self);
}

type Attempt = Shared<BoxFuture<'static, Result<Arc<Link>, DialError>>>;
type WeakAttempt = WeakShared<BoxFuture<'static, Result<Arc<Link>, DialError>>>;

/// The attempt that began last. It ends when the last caller that waits for it leaves, and with the deadline of the first one.
struct Newest {
    begun: Instant,
    deadline: Instant,
    attempt: WeakAttempt,
}

struct Failed {
    at: Instant,
    error: Error,
    /// A caller had no time left for its attempt: that says nothing about the server, and nobody else waits for that.
    of_haste: bool,
}

pub(super) struct Lane<C> {
    connector: Weak<C>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Link>>,
    newest: Option<Newest>,
    failures: u32,
    failed: Option<Failed>,
    connected_before: bool,
    closed: bool,
}

impl State {
    /// For who waited until its deadline: the last failure says more.
    fn late(&self) -> Error {
        let late = || Error::new(Code::Timeout, Outcome::NotApplied, "not connected until the deadline");
        self.failed.as_ref().map_or_else(late, |failed| failed.error.clone())
    }
}

impl<C: Connector> Lane<C> {
    pub(super) fn new(connector: Weak<C>) -> Arc<Self> {
        Arc::new(Self { connector, state: Mutex::default() })
    }

    /// The connection that takes work; made if there is none, again and again until `deadline`.
    pub(super) async fn link(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Link>, Error> {
        // The failure after which this caller has paused: it pauses once after each.
        let mut paused = None;
        let mut attempts = Vec::<Attempt>::new();
        let patience = (deadline.saturating_duration_since(ambient::monotonic()) / 2).clamp(NOT_SLOW, SLOW);
        loop {
            let until = match self.next(deadline, patience, paused)? {
                Next::Link(link) => return Ok(link),
                Next::Attempt { begun, attempt } => {
                    if !attempts.iter().any(|other| other.ptr_eq(&attempt)) {
                        attempts.push(attempt);
                    }
                    deadline.min(begun + patience)
                }
                Next::Pause { until, failure } => {
                    paused = Some(failure);
                    until
                }
            };
            match first(&mut attempts, until).await {
                Some(Ok(link)) => return Ok(link),
                Some(Err(DialError { error, lasting: true })) => return Err(error),
                None if until >= deadline => {
                    return Err(self.state.lock().late());
                }
                // `next` knows whether there is time for another attempt.
                Some(Err(_)) | None => {}
            }
        }
    }

    fn next(self: &Arc<Self>, deadline: Instant, patience: Duration, paused: Option<Instant>) -> Result<Next, Error> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Error::closed());
        }
        if let Some(link) = &state.current
            && link.takes_work()
        {
            return Ok(Next::Link(Arc::clone(link)));
        }
        let now = ambient::monotonic();
        // Who has more time than the first caller of an attempt starts another, so that it is not held up by those who have little.
        if let Some(Newest { begun, deadline: ends, attempt }) = &state.newest
            && now < *begun + patience
            && (*ends >= deadline || *ends >= now + patience)
            && let Some(attempt) = attempt.upgrade()
            && attempt.peek().is_none()
        {
            return Ok(Next::Attempt { begun: *begun, attempt });
        }
        if let Some(Failed { at, error, of_haste }) = &state.failed
            && paused != Some(*at)
        {
            let until = if *of_haste { now } else { start_of_next(*at, state.failures, now, deadline) };
            if deadline.saturating_duration_since(until) < ATTEMPT {
                return Err(error.clone());
            }
            if until > now {
                return Ok(Next::Pause { until, failure: *at });
            }
        }
        if deadline <= now {
            return Err(state.late());
        }
        let attempt = self.attempt(deadline);
        state.newest = attempt.downgrade().map(|attempt| Newest { begun: now, deadline, attempt });
        Ok(Next::Attempt { begun: now, attempt })
    }

    /// One attempt, which all callers share. The first caller's deadline bounds it; who can wait longer starts another.
    fn attempt(self: &Arc<Self>, deadline: Instant) -> Attempt {
        let lane = Arc::clone(self);
        // On our own runtime, whoever polls; dropped with its last caller.
        let task = background::spawn_scoped(async move {
            let Some(connector) = lane.connector.upgrade() else { return Ok(Err(closed())) };
            let result = Arc::clone(&connector).connect(deadline).await;
            Ok(lane.take(&*connector, result))
        });
        let flat = async move { task.await.unwrap_or_else(|error| Err(DialError { error, lasting: false })) };
        flat.boxed().shared()
    }

    fn take(&self, connector: &C, result: Result<Arc<Link>, DialError>) -> Result<Arc<Link>, DialError> {
        let mut state = self.state.lock();
        match result {
            Ok(link) => {
                if state.closed {
                    link.close("the store was closed");
                    return Err(closed());
                }
                if let Some(current) = state.current.clone().filter(|current| current.takes_work()) {
                    link.close("another connection was made first");
                    return Ok(current);
                }
                let old = state.current.replace(Arc::clone(&link));
                let again = std::mem::replace(&mut state.connected_before, true);
                state.failures = 0;
                state.failed = None;
                // Before anybody finds the new one.
                if again {
                    connector.reconnected();
                }
                drop(state);
                if let Some(old) = old {
                    old.retire();
                }
                Ok(link)
            }
            Err(failed) => {
                tracing::debug!(error = %failed.error, "a connection could not be made");
                let of_haste = failed.error.code() == Code::Timeout;
                if !of_haste {
                    state.failures = state.failures.saturating_add(1);
                }
                state.failed = Some(Failed { at: ambient::monotonic(), error: failed.error.clone(), of_haste });
                Err(failed)
            }
        }
    }

    /// Gives a connection that was made before `instant` no new work: the next caller connects anew.
    pub(super) fn replace_if_before(&self, instant: Instant) {
        let mut state = self.state.lock();
        let old = state.current.take_if(|current| current.born() <= instant);
        drop(state);
        if let Some(old) = old {
            old.retire();
        }
    }

    /// Whether there was a connection, which was lost and not made again.
    pub(super) fn has_lost(&self) -> bool {
        let state = self.state.lock();
        state.connected_before && !state.current.as_ref().is_some_and(Link::takes_work)
    }

    /// Takes over from another lane, whose connection was lost: the next one that is made here is made again.
    pub(super) fn take_over(&self) {
        self.state.lock().connected_before = true;
    }

    /// Closes the connection and makes none any more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let current = state.current.take();
        let newest = state.newest.take();
        drop(state);
        drop(newest);
        if let Some(link) = current {
            link.close("the store was closed");
        }
    }
}

enum Next {
    Link(Arc<Link>),
    Attempt { begun: Instant, attempt: Attempt },
    Pause { until: Instant, failure: Instant },
}

/// Waits until one of `attempts` has ended, which is taken out, at most until `until`.
async fn first(attempts: &mut Vec<Attempt>, until: Instant) -> Option<Result<Arc<Link>, DialError>> {
    if attempts.is_empty() {
        background::sleep_until(until).await;
        return None;
    }
    let (result, ended, _) = background::timeout_at(until, select_all(attempts.iter().cloned())).await.ok()?;
    drop(attempts.swap_remove(ended));
    Some(result)
}

/// When the next attempt after `failures` failures begins: with a growing pause, yet at half of what a caller has left, so that
/// a short deadline still sees a server that came back; never at once, so that short deadlines cannot storm it.
fn start_of_next(failed: Instant, failures: u32, now: Instant, deadline: Instant) -> Instant {
    let pause = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX)).min(LONGEST_PAUSE);
    let patient = failed + jittered(pause);
    let hasty = (now + deadline.saturating_duration_since(now) / 2).max(failed + FIRST_PAUSE);
    patient.min(hasty)
}

/// Between half and all of `pause`.
pub(super) fn jittered(pause: Duration) -> Duration {
    ambient::jittered(pause, &*ambient::system())
}

fn closed() -> DialError {
    DialError { error: Error::closed(), lasting: true }
}
