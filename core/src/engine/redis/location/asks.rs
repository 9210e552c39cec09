//! Reading commands that belong together: one transaction, or one read-only script where MULTI may not be used.

use std::time::Instant;

use bytes::Bytes;

use super::answer::Fields;
use crate::call::Call;
use crate::contract::Error;
use crate::engine::redis::client::{Client, Prepared, Script};
use crate::engine::redis::transport::{Batch, Line, Reply};
use crate::engine::redis::words::unread;

static ATOMIC: Script = Script::reading(include_str!("atomic.lua"));

/// One reading command: its name, its keys, and what follows them.
pub(super) struct Ask {
    name: &'static str,
    keys: Vec<Bytes>,
    args: Vec<Bytes>,
}

impl Ask {
    pub(super) fn new(name: &'static str, keys: Vec<Bytes>, args: Vec<Bytes>) -> Self {
        Self { name, keys, args }
    }

    pub(super) fn time() -> Self {
        Self::new("TIME", Vec::new(), Vec::new())
    }

    pub(super) fn get(key: &Bytes) -> Self {
        Self::new("GET", vec![key.clone()], Vec::new())
    }

    /// The whole of a list.
    pub(super) fn list(key: &Bytes) -> Self {
        Self::new("LRANGE", vec![key.clone()], vec![Bytes::from_static(b"0"), Bytes::from_static(b"-1")])
    }

    /// How many bytes a string has.
    pub(super) fn size(key: Bytes) -> Self {
        Self::new("STRLEN", vec![key], Vec::new())
    }

    pub(super) fn strings(keys: Vec<Bytes>) -> Self {
        Self::new("MGET", keys, Vec::new())
    }
}

/// Asks all of `asks` at one instant; one reply each.
pub(super) async fn ask(client: &Client, asks: Vec<Ask>, call: &Call) -> Result<Fields, Error> {
    if client.transactions() {
        let replies = client.commands(Line::Small, batch(&asks), true, call).await.map_err(unread)?;
        if !lacks_memory(&replies) {
            return Ok(Fields::from_replies(replies));
        }
    }
    let Prepared { script, keys, args } = prepared(&asks);
    Fields::of(client.script(Line::Small, script, &keys, &args, true, call).await.map_err(unread)?)
}

/// As [`ask`], for several callers: `make` makes it from those who still wait. `None`: it must be asked key by key, since the
/// keys lie at two nodes of a Cluster.
pub(super) async fn ask_of<M>(client: &Client, deadline: Instant, mut make: M) -> Result<Option<Fields>, Error>
where
    M: FnMut() -> Option<(Vec<Ask>, Call)> + Send,
{
    if client.transactions() {
        let make = || make().map(|(asks, call)| (batch(&asks), call));
        let Some(replies) = client.together_of(Line::Small, deadline, make).await.map_err(unread)? else { return Ok(None) };
        if !lacks_memory(&replies) {
            return Ok(Some(Fields::from_replies(replies)));
        }
    }
    let make = || make().map(|(asks, call)| (prepared(&asks), call));
    Fields::of(client.script_of(Line::Small, true, deadline, make).await.map_err(unread)?).map(Some)
}

/// A server without memory queues nothing, not even reads; scripts that only read it takes.
fn lacks_memory(replies: &[Reply]) -> bool {
    replies.iter().any(|reply| matches!(reply, Reply::Error { code, .. } if code == "OOM"))
}

fn batch(asks: &[Ask]) -> Batch {
    let commands = asks.iter().map(|Ask { name, keys, args }| {
        let mut command = Vec::with_capacity(1 + keys.len() + args.len());
        command.push(Bytes::from_static(name.as_bytes()));
        command.extend_from_slice(keys);
        command.extend_from_slice(args);
        command
    });
    Batch { commands: commands.collect(), atomic: true }
}

fn prepared(asks: &[Ask]) -> Prepared {
    let (mut keys, mut args) = (Vec::new(), Vec::new());
    for ask in asks {
        args.push(Bytes::from_static(ask.name.as_bytes()));
        args.push(Bytes::from(ask.keys.len().to_string()));
        args.push(Bytes::from(ask.args.len().to_string()));
        args.extend_from_slice(&ask.args);
        keys.extend_from_slice(&ask.keys);
    }
    Prepared { script: &ATOMIC, keys, args }
}
