//! What the blob operations say to the server: looks, scripts, segments.

use std::time::Duration;

use bytes::Bytes;

use super::keys::Keys;
use super::manifest::{LENGTH, Manifest, Stored};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome, StoreTime};
use crate::engine::redis::client::{Client, Script};
use crate::engine::redis::transport::{Batch, Command, Failure, Line, Reply};
use crate::engine::redis::words::{Words, time, unexpected, unread};
use crate::{ambient, background};

macro_rules! script {
    ($file:literal) => {
        Script::writing(concat!(include_str!("manifest.lua"), include_str!($file)))
    };
}

pub(super) static FINISH: Script = script!("finish.lua");
pub(super) static RENEW: Script = script!("renew.lua");
pub(super) static DELETE: Script = script!("delete.lua");
static LOOK: Script = Script::reading(include_str!("look.lua"));

/// Segments of one UNLINK: freeing them holds the server up for well under a millisecond.
const UNLINK_SEGMENTS: usize = 4;
/// How long unlinking, which only hastens what expiry does anyway, may take.
const UNLINK_TIME: Duration = Duration::from_secs(10);
/// A script gives back strings up to this size. It costs the server 1.3 ns per byte, since Lua hashes every string.
const THROUGH_LUA: usize = 16 * 1_024;

#[derive(Clone)]
pub(super) struct Wire {
    client: Client,
}

/// One observation of a manifest.
pub(super) struct Look {
    pub(super) now: StoreTime,
    /// The manifest, if it is there and not expired.
    pub(super) live: Option<Manifest>,
}

/// The first segment, where it was read together with the manifest.
pub(super) enum First {
    Read(Option<Bytes>),
    Unread,
}

/// When a segment of an upload expires.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// At an instant of the server's clock.
    At(u64),
    /// So many milliseconds after it came.
    In(u64),
}

/// What lies under a key.
enum Found {
    Nothing,
    String(Bytes),
    /// No string.
    Other,
}

impl Wire {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn counters(&self) -> &EngineCounters {
        self.client.counters()
    }

    pub(super) fn close(&self) {
        self.client.close();
    }

    /// The client for keys of one blob.
    fn at(&self, keys: &[Bytes]) -> Client {
        self.client.at(keys.first().map_or(&[], |key| key))
    }

    /// How many segments one operation has in flight. Somebody else's client is one line for everything: one at a time there.
    pub(super) fn window(&self) -> usize {
        if self.client.transactions() { 4 } else { 1 }
    }

    pub(super) async fn now(&self, call: &Call) -> Result<StoreTime, Error> {
        time(&single(&self.client, Line::Small, command(&["TIME"]), call).await?)
    }

    /// Reads a manifest, for an operation that changes something: what is not ours there is an error.
    pub(super) async fn look(&self, keys: &Keys, call: &Call) -> Result<Look, Error> {
        // What `call` says of the operation's own writes is not to be touched by a read.
        let reading = Call::reading(call.deadline);
        let (now, found, _) = self.observe(Line::Small, keys, false, &reading).await?;
        let live = match found {
            Found::Nothing => None,
            Found::Other => return Err(foreign()),
            Found::String(string) => match Stored::parse(&string) {
                Stored::Ours(manifest) => Some(manifest).filter(|manifest| manifest.is_live(now)),
                Stored::Newer => return Err(newer()),
                Stored::Foreign => return Err(foreign()),
            },
        };
        Ok(Look { now, live })
    }

    /// Reads a manifest and, if it comes cheap, the first segment, for a read: what is not ours there is nothing.
    pub(super) async fn open(&self, keys: &Keys, call: &Call) -> Result<(Look, First), Error> {
        let (now, found, first) = self.observe(Line::Blobs, keys, true, call).await?;
        let stored = match found {
            Found::String(string) => Stored::parse(&string),
            Found::Nothing | Found::Other => Stored::Foreign,
        };
        let live = match stored {
            Stored::Ours(manifest) => Some(manifest).filter(|manifest| manifest.is_live(now)),
            Stored::Newer => return Err(newer()),
            Stored::Foreign => None,
        };
        Ok((Look { now, live }, first))
    }

    /// The clock, what lies under a manifest's key, and the first segment if it is wanted.
    async fn observe(&self, line: Line, keys: &Keys, wanted: bool, call: &Call) -> Result<(StoreTime, Found, First), Error> {
        let client = self.client.at(&keys.manifest());
        if client.transactions() {
            let mut get = command(&["GETRANGE", "", "0", ""]);
            get[1] = keys.manifest();
            get[3] = (LENGTH - 1).to_string().into();
            let mut commands = vec![command(&["TIME"]), get];
            let batch = |commands: &[Command]| Batch { commands: commands.to_vec(), atomic: true };
            let alone = batch(&commands);
            if wanted {
                commands.push(vec![Bytes::from_static(b"GET"), keys.first()]);
            }
            let (replies, wanted) = match client.together(line, batch(&commands), call).await.map_err(unread)? {
                Some(replies) => (replies, wanted),
                None => (client.commands(line, alone, true, call).await.map_err(unread)?, false),
            };
            let refused = |reply: &Reply| matches!(reply, Reply::Error { code, .. } if code == "OOM");
            // A server whose memory is full queues no command at all, not even one that reads. A script it runs.
            if !replies.iter().any(refused) {
                let mut replies = replies.into_iter();
                let mut next = || replies.next().ok_or_else(silent);
                let (now, found) = (time(&next()?)?, Found::of(next()?)?);
                let first = if wanted { First::Read(string(next()?)?) } else { First::Unread };
                return Ok((now, found, first));
            }
        }
        let most = if wanted { THROUGH_LUA.to_string().into() } else { Bytes::from_static(b"-1") };
        let reply = client.script(line, &LOOK, &[keys.manifest(), keys.first()], &[most], true, call).await;
        let items = match reply.map_err(unread)? {
            Reply::Array(items) => items,
            other => return Err(unexpected(&other)),
        };
        let mut items = items.into_iter();
        let clock = Reply::Array(items.by_ref().take(2).collect());
        let found = items.next().map_or(Ok(Found::Other), Found::of)?;
        let first = items.next().map_or(Ok(First::Unread), |first| string(first).map(First::Read))?;
        Ok((time(&clock)?, found, first))
    }

    /// Reads one segment; `None` if it is not there, or nothing of ours.
    pub(super) async fn segment(&self, key: Bytes, call: &Call) -> Result<Option<Bytes>, Error> {
        let client = self.client.at(&key);
        string(single(&client, Line::Blobs, vec![Bytes::from_static(b"GET"), key], call).await?)
    }

    /// The line on which a script goes right behind a segment.
    pub(super) fn finishing_line(&self) -> Line {
        self.client.line_of_writes(Line::Blobs)
    }

    /// Writes one segment of an upload.
    ///
    /// `NX`: a command that was repeated and comes late must not set back the expiry of a segment that is in use by then.
    pub(super) async fn upload(
        &self,
        line: Line,
        key: Bytes,
        bytes: Bytes,
        end: End,
        repeat: bool,
        call: &Call,
    ) -> Result<(), Error> {
        let (unit, end) = match end {
            End::At(instant) => ("PXAT", instant),
            End::In(life) => ("PX", life),
        };
        let client = self.client.at(&key);
        let mut set = command(&["SET", "", "", "NX", unit, ""]);
        (set[1], set[2], set[5]) = (key, bytes, end.to_string().into());
        let batch = Batch { commands: vec![set], atomic: false };
        match client.commands(line, batch, repeat, call).await.map_err(unread)?.pop() {
            Some(Reply::Bytes(_) | Reply::Nil) => Ok(()),
            Some(other) => Err(unexpected(&other)),
            None => Err(silent()),
        }
    }

    /// Runs a script that may change something, once.
    pub(super) async fn change(
        &self,
        line: Line,
        script: &Script,
        keys: &[Bytes],
        args: &[Bytes],
        call: &Call,
    ) -> Result<Words, Failure> {
        let reply = self.at(keys).script(line, script, keys, args, false, call).await?;
        answer(reply).map_err(Failure::NotSent)
    }

    /// Runs a script that finds out by itself whether it did its work already: again after a lost answer, and then also says
    /// that one was lost.
    pub(super) async fn change_surely(
        &self,
        script: &Script,
        names: &[Bytes],
        args: &[Bytes],
        keys: &Keys,
        call: &Call,
    ) -> Result<(Words, bool), Error> {
        match self.change(Line::Small, script, names, args, call).await {
            Ok(answer) => Ok((answer, false)),
            Err(Failure::NotSent(error)) => Err(error),
            Err(Failure::Lost(error)) => Ok((self.change_again(script, names, args, keys, call, error).await?, true)),
        }
    }

    /// Runs a script again whose answer was `lost`.
    pub(super) async fn change_again(
        &self,
        script: &Script,
        names: &[Bytes],
        args: &[Bytes],
        keys: &Keys,
        call: &Call,
        lost: Error,
    ) -> Result<Words, Error> {
        let unknown = |error: Error| error.with_outcome(Outcome::Unknown);
        if lost.code() == Code::Timeout {
            return Err(unknown(lost));
        }
        // `call` says that something was sent, and whatever becomes of this attempt, so it was.
        let again = Call::reading(call.deadline);
        match self.at(names).script_again(Line::Small, script, names, args, &keys.witness(), &again).await {
            Ok(reply) => answer(reply).map_err(unknown),
            Err(Failure::NotSent(error) | Failure::Lost(error)) => Err(unknown(error)),
        }
    }

    /// Where replicas must acknowledge: sees to it that they have what was just seen, which others may have written.
    pub(super) async fn confirm(&self, keys: &Keys, call: &Call) -> Result<(), Error> {
        if self.client.line_of_writes(Line::Small) == Line::Small {
            return Ok(());
        }
        match self.client.at(&keys.manifest()).look(vec![command(&["TIME"])], &keys.witness(), call).await {
            Ok(_) => Ok(()),
            Err(Failure::NotSent(error)) => Err(error),
            Err(Failure::Lost(error)) => Err(error.with_outcome(Outcome::Unknown)),
        }
    }

    /// Removes segments that expire by themselves, so that their memory is free earlier. Nobody waits for it.
    pub(super) fn hasten(&self, keys: Vec<Bytes>) {
        if keys.is_empty() {
            return;
        }
        let client = self.at(&keys);
        let call = Call::reading(ambient::monotonic() + UNLINK_TIME);
        background::handle().spawn(async move {
            for some in keys.chunks(UNLINK_SEGMENTS) {
                let mut unlink = command(&["UNLINK"]);
                unlink.extend_from_slice(some);
                let batch = Batch { commands: vec![unlink], atomic: false };
                if client.commands(Line::Blobs, batch, false, &call).await.is_err() {
                    return;
                }
            }
        });
    }
}

impl Found {
    fn of(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Nil => Ok(Self::Nothing),
            Reply::Bytes(string) if string.is_empty() => Ok(Self::Nothing),
            Reply::Bytes(string) => Ok(Self::String(string)),
            Reply::Error { code, .. } if code == "WRONGTYPE" => Ok(Self::Other),
            other => Err(unexpected(&other)),
        }
    }
}

async fn single(client: &Client, line: Line, command: Command, call: &Call) -> Result<Reply, Error> {
    let batch = Batch { commands: vec![command], atomic: false };
    client.commands(line, batch, true, call).await.map_err(unread)?.pop().ok_or_else(silent)
}

fn string(reply: Reply) -> Result<Option<Bytes>, Error> {
    match reply {
        Reply::Bytes(bytes) => Ok(Some(bytes)),
        Reply::Nil => Ok(None),
        Reply::Error { code, .. } if code == "WRONGTYPE" => Ok(None),
        other => Err(unexpected(&other)),
    }
}

fn command(words: &[&'static str]) -> Command {
    words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect()
}

fn answer(reply: Reply) -> Result<Words, Error> {
    Words::of(reply, foreign, newer)
}

fn silent() -> Error {
    Error::internal("a command without a reply")
}

fn foreign() -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, "something else than a blob lies under the reference's key")
}

fn newer() -> Error {
    let said = "the blob was written by a newer version of this library, in a layout that this version does not know";
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}
