//! Wakes those in this process who wait for something that others do, such as the release of a lock: one pub/sub connection for
//! all of them, made when the first of them must really wait. It is RESP2 whatever the other lines speak: there a subscriber's
//! connection is known by every server.
//!
//! A ring may be lost, and never counts for more than "look now". Who waits looks by himself from time to time all the same.

use std::collections::HashMap;
use std::fmt;
use std::io::IoSlice;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::answers;
use super::config::RedisConfig;
use super::dial::{DialError, Stream};
use super::host::Reply;
use super::lane::jittered;
use super::resp::{Decoder, Frame, Garbled, Outgoing};
use crate::ambient::{self, random};
use crate::background;
use crate::call::EngineCounters;

/// What the channels of this library begin with; the rest is random, one for each connection pool of a process.
pub(super) const CHANNELS: &str = "zlink-project:wake:";

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After a refusal that somebody must mend, such as a missing right.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// How long connecting and subscribing may take.
const CONNECT: Duration = Duration::from_secs(5);
/// A connection that is silent for so long is asked for a sign of life while somebody waits, and given up after as long again.
const SILENCE: Duration = Duration::from_secs(5);

/// Makes connections.
pub(super) trait Dialer: Send + Sync + 'static {
    fn dial(self: Arc<Self>, bound: Instant) -> BoxFuture<'static, Result<Stream, DialError>>;
    fn config(&self) -> &RedisConfig;
    /// Of the other lines: where one was lost, this one may be of no use any more either.
    fn counters(&self) -> &EngineCounters;
}

/// The bells of a process, on one channel.
pub(crate) struct Bells {
    dialer: Arc<dyn Dialer>,
    channel: Bytes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bells: HashMap<Bytes, Arc<Notify>>,
    listener: Option<Listener>,
    /// Why nobody can listen until somebody mends it, as it was warned of.
    refused: Option<String>,
    closed: bool,
}

struct Listener {
    task: AbortHandle,
    /// How often the other lines had been connected anew when it began.
    reconnects: u64,
}

/// A bell that rings when its name is published on the channel, and when it is not certain that it was not.
pub(crate) struct Bell {
    bells: Arc<Bells>,
    name: Bytes,
    rung: Arc<Notify>,
}

impl Bells {
    /// No I/O.
    pub(super) fn new(dialer: Arc<dyn Dialer>) -> Arc<Self> {
        let id = u128::from_be_bytes(random(&*ambient::system()));
        let channel = format!("{CHANNELS}{id:032x}").into();
        Arc::new(Self { dialer, channel, state: Mutex::default() })
    }

    /// Hangs up a bell; no I/O.
    pub(crate) fn bell(self: &Arc<Self>, name: Bytes) -> Bell {
        let rung = Arc::new(Notify::new());
        self.state.lock().bells.insert(name.clone(), Arc::clone(&rung));
        Bell { bells: Arc::clone(self), name, rung }
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        if let Some(listener) = state.listener.take() {
            listener.task.abort();
        }
    }

    fn listen(self: &Arc<Self>) {
        let reconnects = self.dialer.counters().reconnects.load(Ordering::Relaxed);
        let mut state = self.state.lock();
        if state.closed || state.listener.as_ref().is_some_and(|listener| listener.reconnects == reconnects) {
            return;
        }
        let (dialer, channel) = (Arc::clone(&self.dialer), self.channel.clone());
        let task = background::handle().spawn(run(Arc::downgrade(self), dialer, channel)).abort_handle();
        if let Some(old) = state.listener.replace(Listener { task, reconnects }) {
            old.task.abort();
        }
    }

    fn is_awaited(&self) -> bool {
        !self.state.lock().bells.is_empty()
    }

    fn ring(&self, name: &Bytes) {
        if let Some(bell) = self.state.lock().bells.get(name) {
            bell.notify_one();
        }
    }

    fn ring_all(&self) {
        self.state.lock().bells.values().for_each(|bell| bell.notify_one());
    }

    /// Warns of what ended an attempt to listen, once for as long as it is the same.
    fn ended(&self, why: &DialError) {
        let error = &why.error;
        if !why.lasting {
            tracing::debug!(%error, "waiters for locks are not woken for now; they look by themselves");
            return;
        }
        let mut state = self.state.lock();
        if state.refused.as_deref() != Some(error.message()) {
            state.refused = Some(error.message().to_owned());
            // Who listens to us may use our locks.
            drop(state);
            tracing::warn!(%error, "waiters for locks are not woken, since nobody can listen for releases: they ask three times a second");
        }
    }

    fn listens(&self) {
        if self.state.lock().refused.take().is_some() {
            tracing::info!("waiters for locks are woken again");
        }
        self.ring_all();
    }

    /// Ends the listener if nobody waits: the next one who does begins another.
    fn rests(&self) -> bool {
        let mut state = self.state.lock();
        let nobody = state.bells.is_empty();
        if nobody {
            state.listener = None;
        }
        nobody
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        self.close();
    }
}

impl Bell {
    /// What to publish its name on.
    pub(crate) fn channel(&self) -> Bytes {
        self.bells.channel.clone()
    }

    /// Sees to it that somebody listens. Once somebody does, it rings, since nobody knows what was published before.
    pub(crate) fn listen(&self) {
        self.bells.listen();
    }

    /// Until it rings; at once if it did since the last time.
    pub(crate) async fn rung(&self) {
        self.rung.notified().await;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.bells.state.lock().bells.remove(&self.name);
    }
}

impl fmt::Debug for Bells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bells").finish_non_exhaustive()
    }
}

/// Listens, and connects anew, as long as anybody waits.
async fn run(bells: Weak<Bells>, dialer: Arc<dyn Dialer>, channel: Bytes) {
    let mut pause = FIRST_PAUSE;
    loop {
        let connected = tokio::time::timeout(CONNECT, Ear::connect(&dialer, &channel)).await;
        let connected = connected.unwrap_or_else(|_| Err(DialError::passing("no answer to SUBSCRIBE".to_owned())));
        let ended = match connected {
            Ok(mut ear) => {
                if let Some(bells) = bells.upgrade() {
                    bells.listens();
                }
                pause = FIRST_PAUSE;
                ear.hear(&bells).await
            }
            Err(error) => error,
        };
        let Some(bells) = bells.upgrade() else { return };
        bells.ended(&ended);
        if bells.rests() {
            return;
        }
        drop(bells);
        tokio::time::sleep(if ended.lasting { REFUSED_PAUSE } else { jittered(pause) }).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A subscriber's connection.
struct Ear {
    stream: Stream,
    decoder: Decoder,
}

impl Ear {
    /// Connects and subscribes; there once the server has confirmed it.
    async fn connect(dialer: &Arc<dyn Dialer>, channel: &Bytes) -> Result<Self, DialError> {
        let mut ear =
            Self { stream: Arc::clone(dialer).dial(ambient::monotonic() + CONNECT).await?, decoder: Decoder::default() };
        let config = dialer.config();
        let mut greeting: Vec<Vec<Bytes>> = Vec::new();
        let words = |words: &[&str]| words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        match (&config.username, &config.password) {
            (Some(user), password) => greeting.push(words(&["AUTH", user, password.as_deref().unwrap_or_default()])),
            (None, Some(password)) => greeting.push(words(&["AUTH", password])),
            (None, None) => {}
        }
        let named = config.client_name.iter().map(|name| words(&["CLIENT", "SETNAME", name]));
        let wanted = greeting.len();
        greeting.extend(named);
        let subscribe = greeting.len();
        greeting.push(vec![Bytes::from_static(b"SUBSCRIBE"), channel.clone()]);
        dialer.counters().commands_sent.fetch_add(greeting.len() as u64, Ordering::Relaxed);
        ear.say(&greeting).await?;
        for place in 0..=subscribe {
            let reply = ear.next().await?;
            // A name is for people only.
            if let Some(meaning) = answers::meaning(&reply)
                && (place < wanted || place == subscribe)
            {
                let lasting = !matches!(meaning, answers::Meaning::Later(_) | answers::Meaning::Elsewhere(_));
                return Err(DialError { error: meaning.into_error(), lasting });
            }
        }
        Ok(ear)
    }

    /// Rings until the connection ends.
    async fn hear(&mut self, bells: &Weak<Bells>) -> DialError {
        let mut asked = false;
        loop {
            let heard = tokio::time::timeout(SILENCE, self.next()).await;
            let Some(bells) = bells.upgrade() else { return DialError::passing("nobody waits any more".to_owned()) };
            match heard {
                Ok(Ok(reply)) => {
                    asked = false;
                    if let Some(name) = published(&reply) {
                        bells.ring(name);
                    }
                }
                Ok(Err(error)) => return error,
                Err(_) if asked => return DialError::passing("the server did not answer a PING".to_owned()),
                Err(_) if bells.is_awaited() => {
                    asked = true;
                    if let Err(error) = self.say(&[vec![Bytes::from_static(b"PING")]]).await {
                        return error;
                    }
                }
                Err(_) => {}
            }
        }
    }

    async fn say(&mut self, commands: &[Vec<Bytes>]) -> Result<(), DialError> {
        let mut out = Outgoing::default();
        commands.iter().for_each(|command| out.command(command));
        while out.len() > 0 {
            let mut slices = [IoSlice::new(&[]); 4];
            let filled = out.fill(&mut slices);
            let written = self.stream.writer.write_vectored(&slices[..filled]).await.map_err(|error| lost(&error))?;
            out.advance(written);
        }
        self.stream.writer.flush().await.map_err(|error| lost(&error))
    }

    /// What the server says next, asked or not. It may be dropped and asked again.
    async fn next(&mut self) -> Result<Reply, DialError> {
        loop {
            match self.decoder.next() {
                Ok(Some(Frame::Reply(reply))) => return Ok(reply),
                Ok(Some(Frame::Push(items))) => return Ok(Reply::Array(items)),
                Ok(None) => {}
                Err(Garbled(said)) => return Err(DialError::passing(format!("the server said what is not RESP: {said}"))),
            }
            let (buffer, most) = self.decoder.space();
            let read = self.stream.reader.read_buf(&mut buffer.limit(most)).await.map_err(|error| lost(&error))?;
            if read == 0 {
                return Err(DialError::passing("the server closed the connection".to_owned()));
            }
            self.decoder.filled(read);
        }
    }
}

/// The text of a message on the channel.
fn published(reply: &Reply) -> Option<&Bytes> {
    let Reply::Array(items) = reply else { return None };
    match &items[..] {
        [Reply::Bytes(kind), _, Reply::Bytes(text)] if *kind == "message" => Some(text),
        _ => None,
    }
}

fn lost(error: &std::io::Error) -> DialError {
    DialError::io("the connection was lost", error)
}
