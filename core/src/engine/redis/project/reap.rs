//! Removing state entries that have expired. They do not count from the instant of their expiry on: this only frees memory, and
//! so it is nobody's to wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::answer::answer;
use super::keys::Keys;
use crate::call::Call;
use crate::contract::StoreTime;
use crate::engine::redis::client::{Client, Script};
use crate::engine::redis::transport::{Batch, Line, Reply};
use crate::{ambient, background};

pub(super) static REAP: Script = Script::tidying(include_str!("reap.lua"));

/// Entries of one step, at about 4 µs each: short beside other commands, so that a busy machine does not make it a slow one.
const STEP: usize = 32;
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(2);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Removes what is due, one step after the other, once a write has seen that something is.
#[derive(Default)]
pub(super) struct Reaper(Arc<State>);

#[derive(Default)]
struct State {
    running: AtomicBool,
    stopped: AtomicBool,
}

impl Reaper {
    pub(super) fn owe(&self, client: &Client, keys: &Keys, now: StoreTime) {
        let state = Arc::clone(&self.0);
        if state.stopped.load(Ordering::SeqCst) || state.running.swap(true, Ordering::SeqCst) {
            return;
        }
        let (client, keys) = (client.clone(), keys.clone());
        background::handle().spawn(async move {
            let mut now = now;
            while !state.stopped.load(Ordering::SeqCst)
                && let Some(later) = step(&client, &keys, now).await
            {
                now = later;
                tokio::time::sleep(PAUSE).await;
            }
            // Whatever became due meanwhile, or could not be removed, the next write sees.
            state.running.store(false, Ordering::SeqCst);
        });
    }

    pub(super) fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Removes some of what was due at `now`, and gives a later time if there may be more of it.
async fn step(client: &Client, keys: &Keys, now: StoreTime) -> Option<StoreTime> {
    let word = Bytes::from_static;
    let call = Call::reading(ambient::monotonic() + TIMEOUT);
    let limit = [word(b"LIMIT"), word(b"0"), Bytes::from(STEP.to_string())];
    let mut due = vec![word(b"ZRANGEBYSCORE"), keys.expiries.clone(), word(b"-inf"), Bytes::from(now.unix_ms().to_string())];
    due.extend(limit);
    let batch = Batch { commands: vec![due], atomic: false };
    let replies = client.commands(Line::Small, batch, true, &call).await.ok()?;
    let Some(Reply::Array(due)) = replies.into_iter().next() else { return None };
    let names: Vec<Bytes> = due.into_iter().filter_map(bytes).collect();
    if names.is_empty() {
        return None;
    }
    let mut all = vec![keys.format.clone(), keys.expiries.clone()];
    all.extend(names.iter().map(|name| keys.entry(name)));
    let reply = client.script(Line::Small, &REAP, &all, &names, true, &call).await.ok()?;
    answer(reply).ok()?.time(1).ok()
}

fn bytes(reply: Reply) -> Option<Bytes> {
    match reply {
        Reply::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
