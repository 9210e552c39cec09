//! Who the primary is, as the sentinels say.
//!
//! They are asked at each attempt to connect, and while there is traffic about every second: an old primary that was cut off
//! from them, or demoted without a word, goes on answering those who are connected.
//!
//! All are asked, since some learn later than others of a failover, and an old primary that was restarted meanwhile, perhaps with
//! nothing in it, takes itself for the primary until they tell it otherwise. While they name several, nobody can tell from the
//! names alone who is behind, however few they are: they are given time to agree, and then most of them are right.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;

use super::asking::{Asker, ask, nobody};
use super::node::Node;
use crate::contract::{Code, Error, Outcome};
use crate::engine::redis::answers::{self, Meaning};
use crate::engine::redis::bells::Dialer;
use crate::engine::redis::config::{Address, Secret, Tls};
use crate::engine::redis::dial::DialError;
use crate::engine::redis::lane::jittered;
use crate::engine::redis::link::Link;
use crate::engine::redis::transport::Reply;
use crate::{ambient, background};

/// How often they are asked whether the primary is still the same, at most.
const LOOK: Duration = Duration::from_secs(1);
/// How long the others are waited for when one has answered, at most.
const GRACE: Duration = Duration::from_millis(250);
/// How long they are given to agree when they name several primaries.
const SETTLING: Duration = Duration::from_secs(2);
/// After what time they are asked again then.
const AGAIN: Duration = Duration::from_millis(50);

/// The sentinels of one primary.
pub(super) struct Sentinels {
    master: String,
    asker: Asker,
    all: Vec<Sentinel>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where our connections lead.
    primary: Option<Address>,
    /// Who was named since we last met a primary, and was not there, or was none; or was left.
    missed: Vec<Address>,
    /// The several primaries that they name, and since when.
    split: Option<(Vec<Address>, Instant)>,
    watched: bool,
    closed: bool,
}

struct Sentinel {
    address: Address,
    link: Mutex<Option<Arc<Link>>>,
}

impl Sentinels {
    pub(super) fn new(
        sentinels: &[Address],
        master: &str,
        username: Option<&str>,
        password: Option<&Secret>,
        tls: Option<&Tls>,
    ) -> Self {
        let password = password.map(|Secret(password)| password.as_str());
        let all = sentinels.iter().map(|address| Sentinel { address: address.clone(), link: Mutex::default() });
        Self {
            master: master.to_owned(),
            asker: Asker::new(username, password, tls),
            all: all.collect(),
            state: Mutex::default(),
        }
    }

    /// Asks all of them who the primary is, and again for a moment if they do not agree.
    pub(super) async fn primary(&self, bound: Instant) -> Result<Address, DialError> {
        loop {
            let left = bound.saturating_duration_since(ambient::monotonic());
            let (named, failures) = self.named(bound, GRACE.min(left / 8)).await;
            if named.is_empty() {
                return Err(nobody(failures, &format!("no sentinel tells where the primary '{}' is", self.master)));
            }
            if let Some(address) = self.choose(&named) {
                return Ok(address);
            }
            tokio::time::sleep(jittered(AGAIN)).await;
        }
    }

    /// Asks once more, now that we are connected: between the first question and that it may have been replaced, and started again.
    pub(super) async fn confirm(&self, address: &Address, bound: Instant) -> Result<(), DialError> {
        let named = self.primary(bound).await?;
        if named == *address {
            return Ok(());
        }
        Err(DialError::passing(format!("the sentinels no longer name {address} as the primary, but {named}")))
    }

    /// Whom those name that answer; who is silent when another one has answered is waited for only so long.
    async fn named(&self, bound: Instant, grace: Duration) -> (Vec<Address>, Vec<DialError>) {
        let (mut named, mut failures) = (Vec::new(), Vec::new());
        let mut asked: FuturesUnordered<_> = self.all.iter().map(|sentinel| self.ask(sentinel, bound)).collect();
        let mut until = None;
        loop {
            let answer = match until {
                None => asked.next().await,
                Some(until) => match tokio::time::timeout_at(until, asked.next()).await {
                    Ok(answer) => answer,
                    Err(_) => break,
                },
            };
            match answer {
                Some(Ok(address)) => {
                    named.push(address);
                    until = until.or_else(|| Some((ambient::monotonic() + grace).into()));
                }
                Some(Err(failed)) => failures.push(failed),
                None => break,
            }
        }
        (named, failures)
    }

    /// `None`: it is too early to say.
    fn choose(&self, named: &[Address]) -> Option<Address> {
        let mut state = self.state.lock();
        let mut several: Vec<Address> = Vec::new();
        for address in named {
            if !several.contains(address) {
                several.push(address.clone());
            }
        }
        if let [only] = &several[..] {
            state.split = None;
            return Some(only.clone());
        }
        let now = ambient::monotonic();
        let same = |known: &[Address]| known.len() == several.len() && known.iter().all(|address| several.contains(address));
        let since = match &state.split {
            Some((known, since)) if same(known) => *since,
            _ => {
                state.split = Some((several.clone(), now));
                now
            }
        };
        if now.saturating_duration_since(since) < SETTLING {
            return None;
        }
        let votes = |address: &Address| named.iter().filter(|other| *other == address).count();
        if let Some(most) = several.iter().find(|address| 2 * votes(address) > named.len()) {
            return Some(most.clone());
        }
        // As many on each side: whoever is there, and of those the one that we know.
        let there = |address: &Address| (!state.missed.contains(address), state.primary.as_ref() == Some(address));
        several.iter().max_by_key(|address| (votes(address), there(address))).cloned()
    }

    /// We are connected to the primary; true if it was another one before.
    pub(super) fn met(&self, primary: &Address) -> bool {
        let mut state = self.state.lock();
        state.missed.clear();
        state.primary.replace(primary.clone()).is_some_and(|before| before != *primary)
    }

    /// Who was named is not there, or no primary.
    pub(super) fn missed(&self, named: &Address) {
        tracing::debug!(%named, "the primary that a sentinel named is not to be had");
        let mut state = self.state.lock();
        if !state.missed.contains(named) {
            state.missed.push(named.clone());
        }
    }

    /// Sees to it that the primary is asked for while `node` has traffic.
    pub(super) fn watch(self: &Arc<Self>, node: &Arc<Node>) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.watched, true) {
            background::handle().spawn(watch(Arc::downgrade(self), Arc::downgrade(node)));
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        for link in self.all.iter().filter_map(|sentinel| sentinel.link.lock().take()) {
            link.close("the store was closed");
        }
    }

    /// Whom more than half of the sentinels name.
    async fn majority(&self, bound: Instant) -> Option<Address> {
        // Those that are far away get the time to connect.
        let (named, _) = tokio::time::timeout_at(bound.into(), self.named(bound, LOOK)).await.ok()?;
        let votes = |address: &Address| named.iter().filter(|other| *other == address).count();
        let most = named.iter().find(|address| votes(address) > self.all.len() / 2)?;
        if votes(most) == named.len() {
            // The next time that they disagree it is about something else.
            self.state.lock().split = None;
        }
        Some(most.clone())
    }

    async fn ask(&self, sentinel: &Sentinel, bound: Instant) -> Result<Address, DialError> {
        self.answer(sentinel, bound).await.map_err(|DialError { error, lasting }| {
            let hint = if error.code() == Code::Unauthenticated { " (see sentinel_user and sentinel_password)" } else { "" };
            let said = format!("the one at {}: {}{hint}", sentinel.address, error.message());
            DialError { error: Error::new(error.code(), Outcome::NotApplied, said), lasting }
        })
    }

    async fn answer(&self, sentinel: &Sentinel, bound: Instant) -> Result<Address, DialError> {
        let link = self.link(sentinel, bound).await?;
        let word = Bytes::from_static;
        let name = Bytes::copy_from_slice(self.master.as_bytes());
        let question = vec![word(b"SENTINEL"), word(b"GET-MASTER-ADDR-BY-NAME"), name];
        match ask(&link, question, bound).await? {
            Reply::Array(items) => address(&items)
                .ok_or_else(|| DialError::passing("it names the primary in a way that is not understood".to_owned())),
            Reply::Nil => Err(DialError::lasting("it knows no primary of this name".to_owned())),
            other => Err(refused(&other)),
        }
    }

    /// The connection to a sentinel, kept for the next question.
    async fn link(&self, sentinel: &Sentinel, bound: Instant) -> Result<Arc<Link>, DialError> {
        let kept = sentinel.link.lock().clone();
        if let Some(link) = kept.filter(Link::takes_work) {
            return Ok(link);
        }
        let link = self.asker.connect(&sentinel.address, bound).await?;
        if self.state.lock().closed {
            return Err(DialError { error: Error::closed(), lasting: true });
        }
        *sentinel.link.lock() = Some(Arc::clone(&link));
        Ok(link)
    }
}

fn address(items: &[Reply]) -> Option<Address> {
    let [Reply::Bytes(host), Reply::Bytes(port)] = items else { return None };
    let (host, port) = (std::str::from_utf8(host).ok()?, std::str::from_utf8(port).ok()?.parse().ok()?);
    (!host.is_empty() && port > 0).then(|| Address::Tcp(host.to_owned(), port))
}

fn refused(reply: &Reply) -> DialError {
    match answers::meaning(reply) {
        Some(Meaning::UnknownCommand(error)) => {
            let said = "it is no sentinel, since it does not know the command SENTINEL";
            DialError { error: Error::new(error.code(), Outcome::NotApplied, said), lasting: true }
        }
        Some(Meaning::Failed(error)) if error.code() == Code::Unauthenticated => DialError { error, lasting: true },
        Some(meaning) => DialError { error: meaning.into_error(), lasting: false },
        None => DialError::passing("it answered with something else than an address".to_owned()),
    }
}

/// Asks from time to time, while there is traffic, and leaves a primary that is none any more.
async fn watch(sentinels: Weak<Sentinels>, node: Weak<Node>) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(jittered(LOOK)).await;
        let (Some(sentinels), Some(sent)) = (sentinels.upgrade(), node.upgrade().map(|node| sent(&node))) else { return };
        if sentinels.state.lock().closed {
            return;
        }
        if std::mem::replace(&mut seen, sent) == sent {
            continue;
        }
        let Some(primary) = sentinels.state.lock().primary.clone() else { continue };
        let Some(named) = sentinels.majority(ambient::monotonic() + LOOK).await else { continue };
        // Unless another one was met while they were asked.
        let still = sentinels.state.lock().primary.as_ref() == Some(&primary);
        if let Some(node) = node.upgrade()
            && still
            && named != primary
        {
            tracing::debug!(%primary, %named, "the sentinels name another primary; the next batches connect anew");
            sentinels.missed(&primary);
            node.replace_before(ambient::monotonic());
        }
    }
}

fn sent(node: &Node) -> u64 {
    node.counters().commands_sent.load(Ordering::Relaxed)
}
