//! What the blob operations say to the server: looks, scripts, segments.

use std::time::Duration;

use bytes::Bytes;

use super::keys::Keys;
use super::manifest::{HEADER, Manifest, Stored};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome, StoreTime};
use crate::engine::redis::client::{Client, Script};
use crate::engine::redis::transport::{Batch, Command, Failure, Line, Reply};
use crate::{ambient, background};

macro_rules! script {
    ($file:literal) => {
        Script::writing(concat!(include_str!("manifest.lua"), include_str!($file)))
    };
}

pub(super) static PUT_SMALL: Script = script!("put_small.lua");
pub(super) static FINISH: Script = script!("finish.lua");
pub(super) static RENEW: Script = script!("renew.lua");
pub(super) static DELETE: Script = script!("delete.lua");
static LOOK: Script = Script::reading(include_str!("look.lua"));

/// Segments of one UNLINK: freeing them holds the server up for well under a millisecond.
const UNLINK_SEGMENTS: usize = 4;
/// How long unlinking, which only hastens what expiry does anyway, may take.
const UNLINK_TIME: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct Wire {
    client: Client,
}

/// One observation of a manifest.
pub(super) struct Look {
    pub(super) now: StoreTime,
    /// The manifest, if it is there and not expired.
    pub(super) live: Option<Manifest>,
    /// What was asked for of the string: the header, and the bytes behind it.
    pub(super) string: Bytes,
}

/// What lies under a key.
enum Found {
    Nothing,
    String(Bytes),
    /// No string.
    Other,
}

impl Found {
    fn of(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Nil => Ok(Self::Nothing),
            Reply::Bytes(string) if string.is_empty() => Ok(Self::Nothing),
            Reply::Bytes(string) => Ok(Self::String(string)),
            Reply::Error { code, .. } if code == "WRONGTYPE" => Ok(Self::Other),
            other => Err(unexpected(other)),
        }
    }
}

impl Wire {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn close(&self) {
        self.client.close();
    }

    pub(super) fn counters(&self) -> &EngineCounters {
        self.client.counters()
    }

    /// How many segments one operation has in flight. Somebody else's client is one line for everything: one at a time there.
    pub(super) fn window(&self) -> usize {
        if self.client.transactions() { 4 } else { 1 }
    }

    pub(super) async fn now(&self, call: &Call) -> Result<StoreTime, Error> {
        let batch = Batch { commands: vec![vec![Bytes::from_static(b"TIME")]], atomic: false };
        let mut replies = self.client.commands(Line::Small, batch, true, call).await.map_err(unread)?;
        time(replies.pop())
    }

    /// Reads the header of a manifest, for an operation that changes something: what is not ours there is an error.
    pub(super) async fn look(&self, keys: &Keys, call: &Call) -> Result<Look, Error> {
        // What `call` says of the operation's own writes is not to be touched by a read.
        let reading = Call::reading(call.deadline);
        let (now, found) = self.observe(Line::Small, keys, Some(HEADER), &reading).await?;
        let string = match found {
            Found::Nothing => return Ok(Look { now, live: None, string: Bytes::new() }),
            Found::String(string) => string,
            Found::Other => return Err(foreign()),
        };
        match Stored::parse(&string) {
            Stored::Ours(manifest) => Ok(Look { now, live: Some(manifest).filter(|manifest| manifest.is_live(now)), string }),
            Stored::Newer => Err(newer()),
            Stored::Foreign => Err(foreign()),
        }
    }

    /// Reads a manifest and the bytes behind it, for a read: what is not ours there is nothing.
    pub(super) async fn open(&self, keys: &Keys, call: &Call) -> Result<Look, Error> {
        let (now, found) = self.observe(Line::Blobs, keys, None, call).await?;
        let Found::String(string) = found else { return Ok(Look { now, live: None, string: Bytes::new() }) };
        match Stored::parse(&string) {
            Stored::Ours(manifest) => Ok(Look { now, live: Some(manifest).filter(|manifest| manifest.is_live(now)), string }),
            Stored::Newer => Err(newer()),
            Stored::Foreign => Ok(Look { now, live: None, string: Bytes::new() }),
        }
    }

    /// The clock, and what lies under a manifest's key: all of it, or the first bytes `wanted`.
    async fn observe(&self, line: Line, keys: &Keys, wanted: Option<usize>, call: &Call) -> Result<(StoreTime, Found), Error> {
        let last = wanted.map_or_else(|| Bytes::from_static(b"-1"), |wanted| (wanted - 1).to_string().into());
        if self.client.transactions() {
            let read = vec![Bytes::from_static(b"GETRANGE"), keys.manifest(), Bytes::from_static(b"0"), last.clone()];
            let batch = Batch { commands: vec![vec![Bytes::from_static(b"TIME")], read], atomic: true };
            let mut replies = self.client.commands(line, batch, true, call).await.map_err(unread)?;
            match (replies.pop(), replies.pop()) {
                // A server whose memory is full queues no command at all, not even one that reads. A script it runs.
                (Some(Reply::Error { code, .. }), _) if code == "OOM" || code == "EXECABORT" => {}
                (Some(found), now) => return Ok((time(now)?, Found::of(found)?)),
                (None, _) => return Err(silent()),
            }
        }
        let reply = self.client.script(line, &LOOK, &[keys.manifest()], &[last], true, call).await.map_err(unread)?;
        let Reply::Array(mut items) = reply else { return Err(unexpected(reply)) };
        let rest = if items.len() > 2 { items.split_off(2) } else { Vec::new() };
        let found = match rest.into_iter().next() {
            Some(string) => Found::of(string)?,
            None => Found::Other,
        };
        Ok((time(Some(Reply::Array(items)))?, found))
    }

    /// Reads one segment; `None` if it is not there, or nothing of ours.
    pub(super) async fn segment(&self, key: Bytes, call: &Call) -> Result<Option<Bytes>, Error> {
        let batch = Batch { commands: vec![vec![Bytes::from_static(b"GET"), key]], atomic: false };
        let mut replies = self.client.commands(Line::Blobs, batch, true, call).await.map_err(unread)?;
        match replies.pop() {
            Some(Reply::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Reply::Nil) => Ok(None),
            Some(Reply::Error { code, .. }) if code == "WRONGTYPE" => Ok(None),
            Some(other) => Err(unexpected(other)),
            None => Err(silent()),
        }
    }

    /// Writes one segment that expires at `end`. `NX`: a command that was repeated and comes late must not set back the expiry
    /// of a segment that is in use by then.
    pub(super) async fn upload(&self, key: Bytes, bytes: Bytes, end: u64, call: &Call) -> Result<(), Error> {
        let flag = Bytes::from_static;
        let set: Command = vec![flag(b"SET"), key, bytes, flag(b"NX"), flag(b"PXAT"), end.to_string().into()];
        let batch = Batch { commands: vec![set], atomic: false };
        let mut replies = self.client.commands(Line::Blobs, batch, true, call).await.map_err(unread)?;
        match replies.pop() {
            Some(Reply::Bytes(_) | Reply::Nil) => Ok(()),
            Some(other) => Err(unexpected(other)),
            None => Err(silent()),
        }
    }

    /// Runs a script that may change something, once.
    pub(super) async fn change(&self, script: &Script, keys: &[Bytes], args: &[Bytes], call: &Call) -> Result<Answer, Failure> {
        self.run(script, keys, args, false, call).await
    }

    /// Runs a script that finds out by itself whether it did its work already: again after a lost answer, and then also says
    /// that one was lost. A failure is the caller's.
    pub(super) async fn change_surely(
        &self,
        script: &Script,
        keys: &[Bytes],
        args: &[Bytes],
        call: &Call,
    ) -> Result<(Answer, bool), Error> {
        match self.run(script, keys, args, false, call).await {
            Ok(answer) => Ok((answer, false)),
            Err(Failure::NotSent(error)) => Err(error.with_outcome(Outcome::NotApplied)),
            Err(Failure::Lost(_)) => {
                // `call` says that something was sent, and whatever becomes of the second attempt, so it was.
                let again = Call::reading(call.deadline);
                match self.run(script, keys, args, true, &again).await {
                    Ok(answer) => Ok((answer, true)),
                    Err(Failure::NotSent(error) | Failure::Lost(error)) => Err(error.with_outcome(Outcome::Unknown)),
                }
            }
        }
    }

    async fn run(&self, script: &Script, keys: &[Bytes], args: &[Bytes], repeat: bool, call: &Call) -> Result<Answer, Failure> {
        let payload: usize = args.iter().map(Bytes::len).sum();
        let line = if payload > 4_096 { Line::Blobs } else { Line::Small };
        let reply = self.client.script(line, script, keys, args, repeat, call).await?;
        Answer::from(reply).map_err(Failure::NotSent)
    }

    /// Removes segments that expire by themselves, so that their memory is free earlier. Nobody waits for it.
    pub(super) fn hasten(&self, keys: Vec<Bytes>) {
        let client = self.client.clone();
        let call = Call::reading(ambient::monotonic() + UNLINK_TIME);
        background::handle().spawn(async move {
            for some in keys.chunks(UNLINK_SEGMENTS) {
                let mut unlink: Command = vec![Bytes::from_static(b"UNLINK")];
                unlink.extend_from_slice(some);
                let batch = Batch { commands: vec![unlink], atomic: false };
                if client.commands(Line::Blobs, batch, false, &call).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A script's answer: a word and what belongs to it.
#[derive(Debug)]
pub(super) struct Answer(Vec<Bytes>);

impl Answer {
    fn from(reply: Reply) -> Result<Self, Error> {
        let Reply::Array(items) = reply else { return Err(unexpected(reply)) };
        let fields = items.into_iter().map(|item| match item {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected(other)),
        });
        let answer = Self(fields.collect::<Result<_, _>>()?);
        match answer.word() {
            b"foreign" => Err(foreign()),
            b"newer" => Err(newer()),
            _ => Ok(answer),
        }
    }

    pub(super) fn word(&self) -> &[u8] {
        self.text(0)
    }

    pub(super) fn text(&self, place: usize) -> &[u8] {
        self.0.get(place).map_or(&[], |field| field)
    }

    pub(super) fn time(&self, place: usize) -> Result<StoreTime, Error> {
        decimal(self.text(place)).map(StoreTime::from_unix_ms).ok_or_else(|| Error::internal("a script answered without a time"))
    }

    pub(super) fn strange(&self) -> Error {
        Error::internal("a script answered with a word that this version does not know")
    }
}

fn time(reply: Option<Reply>) -> Result<StoreTime, Error> {
    if let Some(Reply::Array(parts)) = &reply
        && let [Reply::Bytes(seconds), Reply::Bytes(micros)] = &parts[..]
        && let (Some(seconds), Some(micros)) = (decimal(seconds), decimal(micros))
    {
        return Ok(StoreTime::from_unix_ms(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)));
    }
    Err(reply.map_or_else(silent, unexpected))
}

fn silent() -> Error {
    Error::internal("a command without a reply")
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A failure of something that changes nothing anybody sees.
fn unread(failure: Failure) -> Error {
    match failure {
        Failure::NotSent(error) | Failure::Lost(error) => error.with_outcome(Outcome::NotApplied),
    }
}

fn foreign() -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, "something else than a blob lies under the reference's key")
}

fn newer() -> Error {
    let said = "the blob was written by a newer version of this library, in a layout that this version does not know";
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}

/// An answer that says that the command did nothing, or that makes no sense.
fn unexpected(reply: Reply) -> Error {
    let Reply::Error { code, message } = reply else {
        return Error::internal("the server answered a command with a reply of another kind");
    };
    let refused = |code, said| Error::new(code, Outcome::NotApplied, said);
    match code.as_str() {
        "OOM" => refused(Code::OutOfMemory, "the server refused the write: its maxmemory is reached".to_owned()),
        "NOPERM" | "NOAUTH" | "WRONGPASS" => refused(Code::Unauthenticated, format!("the server refused: {code} {message}")),
        "WRONGTYPE" => foreign(),
        _ if message.contains("invalid bulk length") => {
            let said = "the server's proto-max-bulk-len is smaller than a blob segment needs (512 KiB are enough): raise it";
            refused(Code::Incompatible, said.to_owned())
        }
        "LOADING" | "READONLY" | "MASTERDOWN" | "BUSY" | "MISCONF" | "NOREPLICAS" | "CLUSTERDOWN" | "TRYAGAIN" => {
            refused(Code::Unavailable, format!("the server answered {code}"))
        }
        _ => Error::internal(format!("the server answered an unexpected error {code}")),
    }
}
