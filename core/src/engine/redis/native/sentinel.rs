//! Who the primary is, as the sentinels say.
//!
//! They are asked at each attempt to connect, and while there is traffic about every second: an old primary that was cut off
//! from them, or demoted without a word, goes on answering those who are connected.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;

use super::asking::{Asker, ask, first_answer, nobody};
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

/// The sentinels of one primary.
pub(super) struct Sentinels {
    master: String,
    asker: Asker,
    /// The one that was right last comes first.
    all: Mutex<Vec<Arc<Sentinel>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where our connections lead.
    primary: Option<Address>,
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
        let all = sentinels.iter().map(|address| Arc::new(Sentinel { address: address.clone(), link: Mutex::default() }));
        Self {
            master: master.to_owned(),
            asker: Asker::new(username, password, tls),
            all: Mutex::new(all.collect()),
            state: Mutex::default(),
        }
    }

    /// Asks one after the other, and those that take long side by side, until one names the primary.
    pub(super) async fn primary(&self, bound: Instant) -> Result<Address, DialError> {
        let all = self.all.lock().clone();
        let answered = first_answer(all.into_iter(), async |sentinel| {
            let address = self.ask(&sentinel, bound).await?;
            self.prefer(&sentinel);
            Ok(address)
        });
        answered.await.map_err(|failures| nobody(failures, &format!("no sentinel tells where the primary '{}' is", self.master)))
    }

    /// We are connected to the primary; true if it was another one before.
    pub(super) fn met(&self, primary: &Address) -> bool {
        let mut state = self.state.lock();
        state.primary.replace(primary.clone()).is_some_and(|before| before != *primary)
    }

    /// Who was named is not there, or no primary: another sentinel may know more.
    pub(super) fn missed(&self, named: &Address) {
        let mut all = self.all.lock();
        if all.len() > 1 {
            tracing::debug!(%named, "the primary that a sentinel named is not to be had");
            all.rotate_left(1);
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
        let all = self.all.lock().clone();
        for link in all.iter().filter_map(|sentinel| sentinel.link.lock().take()) {
            link.close("the store was closed");
        }
    }

    /// Whom more than half of the sentinels name.
    async fn majority(&self, bound: Instant) -> Option<Address> {
        let all = self.all.lock().clone();
        let half = all.len() / 2;
        let answers = join_all(all.into_iter().map(async |sentinel| Some((self.ask(&sentinel, bound).await.ok()?, sentinel))));
        let named: Vec<_> = answers.await.into_iter().flatten().collect();
        let votes = |address: &Address| named.iter().filter(|(other, _)| other == address).count();
        let (address, sentinel) = named.iter().find(|(address, _)| votes(address) > half)?;
        self.prefer(sentinel);
        Some(address.clone())
    }

    fn prefer(&self, sentinel: &Arc<Sentinel>) {
        let mut all = self.all.lock();
        if let Some(place) = all.iter().position(|other| Arc::ptr_eq(other, sentinel)) {
            all[..=place].rotate_right(1);
        }
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
        let named = sentinels.majority(ambient::monotonic() + LOOK).await;
        let primary = sentinels.state.lock().primary.clone();
        if let (Some(named), Some(primary), Some(node)) = (named, primary, node.upgrade())
            && named != primary
        {
            tracing::debug!(%primary, %named, "the sentinels name another primary; the next batches connect anew");
            node.replace_before(ambient::monotonic());
        }
    }
}

fn sent(node: &Node) -> u64 {
    node.counters().commands_sent.load(Ordering::Relaxed)
}
