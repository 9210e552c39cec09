//! Reading commands that belong together: one transaction, or one read-only script where MULTI may not be used.

use std::time::Instant;

use bytes::Bytes;

use super::answer::{Fields, unread};
use crate::call::Call;
use crate::contract::Error;
use crate::engine::redis::client::{Client, Prepared, Script};
use crate::engine::redis::transport::{Batch, Line};

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

    pub(super) fn strings(keys: Vec<Bytes>) -> Self {
        Self::new("MGET", keys, Vec::new())
    }
}

/// Asks all of `asks` at one instant; one reply each.
pub(super) async fn ask(client: &Client, asks: Vec<Ask>, call: &Call) -> Result<Fields, Error> {
    if client.transactions() {
        return client.commands(Line::Small, batch(asks), true, call).await.map(Fields::from_replies).map_err(unread);
    }
    let Prepared { script, keys, args } = prepared(asks);
    Fields::of(client.script(Line::Small, script, &keys, &args, true, call).await.map_err(unread)?)
}

/// As [`ask`], for several callers: `make` makes it from those who still wait.
pub(super) async fn ask_of<M>(client: &Client, deadline: Instant, mut make: M) -> Result<Fields, Error>
where
    M: FnMut() -> Option<(Vec<Ask>, Call)> + Send,
{
    if client.transactions() {
        let make = || make().map(|(asks, call)| (batch(asks), call));
        return client.commands_of(Line::Small, true, deadline, make).await.map(Fields::from_replies).map_err(unread);
    }
    let make = || make().map(|(asks, call)| (prepared(asks), call));
    Fields::of(client.script_of(Line::Small, true, deadline, make).await.map_err(unread)?)
}

fn batch(asks: Vec<Ask>) -> Batch {
    let commands = asks.into_iter().map(|Ask { name, mut keys, mut args }| {
        let mut command = Vec::with_capacity(1 + keys.len() + args.len());
        command.push(Bytes::from_static(name.as_bytes()));
        command.append(&mut keys);
        command.append(&mut args);
        command
    });
    Batch { commands: commands.collect(), atomic: true }
}

fn prepared(asks: Vec<Ask>) -> Prepared {
    let (mut keys, mut args) = (Vec::new(), Vec::new());
    for mut ask in asks {
        args.push(Bytes::from_static(ask.name.as_bytes()));
        args.push(Bytes::from(ask.keys.len().to_string()));
        args.push(Bytes::from(ask.args.len().to_string()));
        args.append(&mut ask.args);
        keys.append(&mut ask.keys);
    }
    Prepared { script: &ATOMIC, keys, args }
}
