//! What is tidied up behind the operations: finished scans, snapshots that nobody needs, records that have expired.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Inner;
use super::asks::{Ask, ask};
use super::commit::Answer;
use super::layout::SnapshotId;
use super::snapshots::entries;
use crate::ambient;
use crate::background;
use crate::call::Call;
use crate::contract::Error;
use crate::engine::redis::client::{Client, Script};
use crate::engine::redis::transport::Line;
use crate::engine::redis::words::unread;

/// Longest time that a page waits for its scan to be marked finished.
const FINISH_TIME: Duration = Duration::from_millis(250);
/// Longest time for giving up a snapshot that nobody will read.
pub(super) const ABANDONED_TIME: Duration = Duration::from_secs(5);
/// How often a call is made again that must be told of other snapshots.
const TRIES: usize = 4;

pub(super) static TIDY: Script = Script::tidying(concat!(include_str!("common.lua"), include_str!("tidy.lua")));

/// Whether the last page of a finished scan may be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    /// Somebody holds a cursor and may not have got the page: the snapshot stays readable for a moment.
    MayBeRepeated,
    /// Nobody holds a cursor: the snapshot goes at once.
    ForGood,
}

impl Inner {
    /// Marks a scan as over. That fails nobody: the page does not wait for long, then it is tried once more behind it, and an
    /// entry that stays unmarked is overdue in five minutes.
    pub(super) async fn finish(self: &Arc<Self>, client: &Client, id: SnapshotId, how: Finished, deadline: Instant) {
        let call = Call::reading(deadline.min(ambient::monotonic() + FINISH_TIME));
        if self.tidy(client, Some((id, how)), &[], &call).await.is_err() {
            let (store, client) = (Arc::clone(self), client.clone());
            background::handle().spawn(async move {
                let call = Call::reading(ambient::monotonic() + ABANDONED_TIME);
                store.tidy(&client, Some((id, how)), &[], &call).await
            });
        }
    }
}

impl Inner {
    /// One call of the tidying script: marks a scan finished, drops snapshots that nobody needs, reaps those of `due` that
    /// still are. Doing it again does no harm.
    pub(super) async fn tidy(
        &self,
        client: &Client,
        finished: Option<(SnapshotId, Finished)>,
        due: &[Bytes],
        call: &Call,
    ) -> Result<(), Error> {
        let mut drop = 0;
        for _ in 0..TRIES {
            let layout = &self.layout;
            let fixed = [&layout.format, &layout.snapshots, &layout.nothing, &layout.index, &layout.due];
            let mut keys: Vec<Bytes> = fixed.into_iter().cloned().collect();
            keys.extend(due.iter().map(|name| layout.record(name)));
            let (id, for_good) = match &finished {
                Some((id, how)) => (Bytes::copy_from_slice(id), *how == Finished::ForGood),
                None => (Bytes::new(), false),
            };
            let mut args = vec![Bytes::from(due.len().to_string()), id, Bytes::from(u8::from(for_good).to_string())];
            self.writes.known.lock().declare(layout, drop, &mut keys, &mut args);
            args.extend_from_slice(due);
            let reply = client.script(Line::Small, &TIDY, &keys, &args, true, call).await.map_err(unread)?;
            match Answer::of(reply)? {
                Answer::Done(mut fields) => {
                    fields.instant()?;
                    self.writes.known.lock().learn(entries(&fields.rest()?)?);
                    return Ok(());
                }
                Answer::Again { drop: more, entries } => {
                    drop = more;
                    self.writes.known.lock().learn(entries);
                    self.read_moved_names(client, drop, call.deadline).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads the names of the large records that the `count` oldest epochs moved, which must be known to drop them.
    pub(super) async fn read_moved_names(&self, client: &Client, count: usize, deadline: Instant) -> Result<(), Error> {
        loop {
            let Some(entry) = self.writes.known.lock().unnamed(count).cloned() else { return Ok(()) };
            let list = Ask::list(&self.layout.moved_names(&entry.id));
            let names = ask(client, vec![list], &Call::reading(deadline)).await?.array()?.rest()?;
            self.writes.known.lock().learn_names(&entry, names);
        }
    }
}
