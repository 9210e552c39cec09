//! Questions to servers about the deployment itself, on connections of their own, which are not counted.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;

use crate::call::{Call, EngineCounters};
use crate::contract::Outcome;
use crate::engine::redis::answers::{self, Meaning};
use crate::engine::redis::config::{Address, Tls};
use crate::engine::redis::dial::{DialError, Step, dial};
use crate::engine::redis::handshake::auth_error;
use crate::engine::redis::link::{Link, Neighbours};
use crate::engine::redis::transport::{Batch, Command, Failure, Reply};

/// How long one server is waited for before the next is asked beside it.
const STAGGER: Duration = Duration::from_millis(250);

/// Who asks.
pub(super) struct Asker {
    login: Option<Command>,
    tls: Option<Tls>,
    counters: Arc<EngineCounters>,
    neighbours: Arc<Neighbours>,
}

impl Asker {
    pub(super) fn new(username: Option<&str>, password: Option<&str>, tls: Option<&Tls>) -> Self {
        let words = |words: &[&str]| words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let login = match (username, password) {
            (Some(user), password) => Some(words(&["AUTH", user, password.unwrap_or_default()])),
            (None, Some(password)) => Some(words(&["AUTH", password])),
            (None, None) => None,
        };
        Self { login, tls: tls.cloned(), counters: Arc::default(), neighbours: Arc::default() }
    }

    /// A connection to ask on.
    pub(super) async fn connect(&self, address: &Address, bound: Instant) -> Result<Arc<Link>, DialError> {
        let stream = dial(address, self.tls.as_ref(), &Mutex::new(Step::Ask)).await?;
        let link = Link::new(stream, Arc::clone(&self.counters), &self.neighbours);
        if let Some(login) = &self.login {
            let reply = ask(&link, login.clone(), bound).await?;
            if let Some(meaning) = answers::meaning(&reply) {
                return Err(match meaning {
                    Meaning::Later(error) | Meaning::Elsewhere(error) => DialError { error, lasting: false },
                    meaning => DialError { error: auth_error(&reply, meaning.into_error()), lasting: true },
                });
            }
        }
        Ok(link)
    }
}

/// Asks one question.
pub(super) async fn ask(link: &Arc<Link>, question: Command, bound: Instant) -> Result<Reply, DialError> {
    let answer = link.send(Arc::new(Batch { commands: vec![question], atomic: false }), &Call::reading(bound)).await;
    match answer {
        Ok(mut replies) => replies.pop().ok_or_else(|| DialError::passing("no reply".to_owned())),
        // What ended the connection says more.
        Err(Failure::NotSent(error) | Failure::Lost(error)) => {
            Err(link.end().unwrap_or_else(|| DialError { error: error.with_outcome(Outcome::NotApplied), lasting: false }))
        }
    }
}

/// Asks one after the other, and beside those that take long the next ones, until one answers. Else what all of them said.
pub(super) async fn first_answer<C, T, F>(
    candidates: impl ExactSizeIterator<Item = C>,
    ask: impl Fn(C) -> F,
) -> Result<T, Vec<DialError>>
where
    F: Future<Output = Result<T, DialError>>,
{
    let mut waiting = candidates;
    let mut asked = FuturesUnordered::new();
    let mut failures = Vec::new();
    asked.extend(waiting.next().map(&ask));
    while !asked.is_empty() {
        let more = waiting.len() > 0;
        tokio::select! {
            Some(answer) = asked.next() => match answer {
                Ok(answer) => return Ok(answer),
                Err(failed) => failures.push(failed),
            },
            () = tokio::time::sleep(STAGGER), if more => {}
        }
        asked.extend(waiting.next().map(&ask));
    }
    Err(failures)
}

/// What to say when nobody answered: the most telling of what they said. Lasting if all said what will not change by itself.
pub(super) fn nobody(failures: Vec<DialError>, what: &str) -> DialError {
    let lasting = failures.iter().all(|failed| failed.lasting);
    let telling = failures.iter().rposition(|failed| failed.lasting).or(failures.len().checked_sub(1));
    match telling.and_then(|place| failures.into_iter().nth(place)) {
        Some(DialError { error, .. }) => {
            let said = format!("{what}: {}", error.message());
            DialError { error: crate::contract::Error::new(error.code(), Outcome::NotApplied, said), lasting }
        }
        None => DialError::passing(what.to_owned()),
    }
}
