//! What the engines say to Redis with: commands and scripts over a transport, with the rules on repeating in one place.
//! [`answers`](super::answers) tells what the error replies mean that are left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::answers::{self, Meaning};
use super::bells::Bells;
use super::rounds::{Judge, Rounds};
use super::script::Load;
pub(crate) use super::script::{Prepared, Script};
use super::transport::{Batch, Command, Failure, Line, Reply, Slot, Transport};
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};
use crate::{ambient, background};

/// How much earlier than the deadline WAIT ends.
const WAIT_MARGIN: Duration = Duration::from_millis(250);
/// How much earlier behind a script's hash: if the server does not know it, its text and a WAIT of its own come after it.
const WAIT_MARGIN_BY_HASH: Duration = Duration::from_millis(700);
/// How much earlier than its caller's wait a look ends, where replicas must acknowledge: what is known without it says more.
const LAST_WORD: Duration = Duration::from_millis(100);
/// How long the key of [`Client::look`] lives that makes the connection's write.
const WITNESS_LIFE_MS: &str = "60000";

/// Commands and scripts over one transport, with keys of one slot of a Cluster. Clones share the transport.
///
/// Everywhere here: an answer that says that nothing was done (LOADING, BUSY, READONLY …) is waited out and the batch is sent
/// again until the deadline, and then is a [`Failure::NotSent`]. `repeat` says that a batch may also be sent again after its
/// answer was lost: it reads, or doing it twice is as good as once. Without it that is a [`Failure::Lost`].
#[derive(Clone)]
pub(crate) struct Client {
    transport: Arc<dyn Transport>,
    slot: Slot,
}

/// A script with its arguments, for one attempt.
struct Ask<'a> {
    script: &'a Script,
    keys: Vec<Bytes>,
    args: Vec<Bytes>,
}

/// What goes in front of WAIT.
#[derive(Clone, Copy)]
enum Acked<'a> {
    /// The write itself: a call that is made once.
    ByWrite,
    /// A write of a key of our own as well: a call that may find its work done, and then writes nothing.
    ByWitness(&'a Bytes),
}

impl Client {
    /// For what has no keys; see [`at`](Self::at).
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, slot: Slot::default() }
    }

    /// The same, for keys in the slot of `key`.
    pub(crate) fn at(&self, key: &[u8]) -> Self {
        Self { transport: Arc::clone(&self.transport), slot: Slot::of(key) }
    }

    /// Whether MULTI may be used; if not, reads go as read-only scripts, one command at a time.
    pub(crate) fn transactions(&self) -> bool {
        self.transport.transactions()
    }

    /// The line on which a script that writes goes in place of `line`: another one where replicas must acknowledge.
    pub(crate) fn line_of_writes(&self, line: Line) -> Line {
        if self.transport.min_acked_replicas() == 0 { line } else { Line::Acked }
    }

    pub(crate) fn counters(&self) -> &EngineCounters {
        self.transport.counters()
    }

    /// What wakes those who wait for others, where there is something.
    pub(crate) fn bells(&self) -> Option<Arc<Bells>> {
        self.transport.bells()
    }

    /// Gives up the connection.
    pub(crate) fn close(&self) {
        self.transport.close();
    }

    /// Waits until a script that writes could go out on `line` at once.
    pub(crate) async fn ready(&self, line: Line, deadline: Instant) -> Result<(), Error> {
        self.transport.ready(self.line_of_writes(line), self.slot, deadline).await
    }

    /// Sends commands and gives their replies back. Of a batch that is neither atomic nor repeatable, and did something in
    /// part, the replies are given back as they are.
    pub(crate) async fn commands(&self, line: Line, batch: Batch, repeat: bool, call: &Call) -> Result<Vec<Reply>, Failure> {
        let batch = Arc::new(batch);
        let mut rounds = Rounds::new(call.deadline);
        loop {
            let (now, judge) = (rounds.call(call), Judge::of(&batch, repeat));
            let result = self.transport.send(line, self.slot, Arc::clone(&batch), &now).await;
            match rounds.judge(result, judge, repeat, call).await? {
                Some(replies) => return Ok(replies),
                None => continue,
            }
        }
    }

    /// As [`commands`](Self::commands), for a read that can be done key by key as well. `None`: that is the way now, since the
    /// keys lie at two nodes of a Cluster, as long as their slot is on its way.
    pub(crate) async fn together(&self, line: Line, batch: Batch, call: &Call) -> Result<Option<Vec<Reply>>, Failure> {
        let batch = Arc::new(batch);
        let mut rounds = Rounds::new(call.deadline).or_apart();
        loop {
            let (now, judge) = (rounds.call(call), Judge::of(&batch, true));
            let result = self.transport.send(line, self.slot, Arc::clone(&batch), &now).await;
            if let Some(replies) = rounds.judge(result, judge, true, call).await? {
                return Ok((!answers::are_apart(&replies)).then_some(replies));
            }
        }
    }

    /// Runs one script: EVALSHA, and on NOSCRIPT the text, which one of all callers sends. Errors are in the words of a command
    /// outside a script, from every version of the server.
    ///
    /// Where replicas must acknowledge, a writing script goes on [`Line::Acked`] whatever `line` says, with WAIT behind it;
    /// too few are a [`Failure::Lost`]. A call that is repeated and may find its work done needs
    /// [`script_again`](Self::script_again).
    pub(crate) async fn script(
        &self,
        line: Line,
        script: &Script,
        keys: &[Bytes],
        args: &[Bytes],
        repeat: bool,
        call: &Call,
    ) -> Result<Reply, Failure> {
        let make = || Some((Ask { script, keys: keys.to_vec(), args: args.to_vec() }, call.clone()));
        self.run(line, repeat, Acked::ByWrite, call.deadline, script.is_read_only(), make).await
    }

    /// As [`script`](Self::script) with `repeat`, for a writing script that may find its work done and then write nothing.
    /// `witness` is a key in the slot of `keys`, for nothing else, to be written in front of WAIT.
    pub(crate) async fn script_again(
        &self,
        line: Line,
        script: &Script,
        keys: &[Bytes],
        args: &[Bytes],
        witness: &Bytes,
        call: &Call,
    ) -> Result<Reply, Failure> {
        let make = || Some((Ask { script, keys: keys.to_vec(), args: args.to_vec() }, call.clone()));
        self.run(line, true, Acked::ByWitness(witness), call.deadline, false, make).await
    }

    /// Looks whether a commit was made whose answer was lost: reads by `commands`. Where replicas must acknowledge, what it
    /// shows has been acknowledged (else `Lost`): it is followed by a write of `witness` (a key in the slot of what is looked
    /// at, for nothing else; it expires in a minute) and WAIT, all on the one connection.
    ///
    /// WAIT waits for what its own connection wrote last. Since Redis 7.2 only a write that is replicated counts, which a DEL
    /// of nothing is not; and on a connection that wrote nothing it answers at once.
    pub(crate) async fn look(&self, commands: Vec<Command>, witness: &Bytes, call: &Call) -> Result<Vec<Reply>, Failure> {
        let count = commands.len();
        let mut batch = Batch { commands, atomic: false };
        let line = self.acknowledge(Line::Small, &mut batch, Acked::ByWitness(witness), WAIT_MARGIN, call.deadline);
        let mut call = call.clone();
        if self.transport.min_acked_replicas() > 0 {
            let left = call.deadline.saturating_duration_since(ambient::monotonic());
            call.deadline -= LAST_WORD.min(left / 3);
        }
        let mut replies = self.commands(line, batch, true, &call).await?;
        self.acknowledged(replies.split_off(count.min(replies.len())))?;
        Ok(replies)
    }

    /// As [`together`](Self::together), for what goes out for several callers at once. Before every attempt, once the line is
    /// connected, `make` is asked what to send and for which call: it calls [`Call::mark_sent`], looks who still waits and
    /// makes a batch for them, so that what nobody waits for any more is never sent. `None`: nobody does (`NotSent`).
    pub(crate) async fn together_of<M>(&self, line: Line, deadline: Instant, mut make: M) -> Result<Option<Vec<Reply>>, Failure>
    where
        M: FnMut() -> Option<(Batch, Call)> + Send,
    {
        let mut rounds = Rounds::new(deadline).or_apart();
        loop {
            self.transport.ready(line, self.slot, deadline).await.map_err(|error| rounds.failure(error))?;
            let (batch, call) = make().ok_or_else(|| rounds.failure(nobody_waits()))?;
            let (now, judge) = (rounds.call(&call), Judge::of(&batch, true));
            let result = self.transport.send(line, self.slot, Arc::new(batch), &now).await;
            if let Some(replies) = rounds.judge(result, judge, true, &call).await? {
                return Ok((!answers::are_apart(&replies)).then_some(replies));
            }
        }
    }

    /// As [`script`](Self::script), for what goes out for several callers at once; see [`together_of`](Self::together_of).
    pub(crate) async fn script_of<M>(&self, line: Line, repeat: bool, deadline: Instant, mut make: M) -> Result<Reply, Failure>
    where
        M: FnMut() -> Option<(Prepared, Call)> + Send,
    {
        let make = || make().map(|(Prepared { script, keys, args }, call)| (Ask { script, keys, args }, call));
        self.run(line, repeat, Acked::ByWrite, deadline, true, make).await
    }

    async fn run<'a, M>(
        &self,
        line: Line,
        repeat: bool,
        acked: Acked<'_>,
        deadline: Instant,
        ready_first: bool,
        mut make: M,
    ) -> Result<Reply, Failure>
    where
        M: FnMut() -> Option<(Ask<'a>, Call)> + Send,
    {
        let scripts = self.transport.scripts();
        let mut rounds = Rounds::new(deadline);
        // Held while the text is under way; the others wait for it.
        let mut sending = None;
        loop {
            if ready_first {
                self.transport.ready(line, self.slot, deadline).await.map_err(|error| rounds.failure(error))?;
            }
            let (Ask { script, keys, args }, call) = make().ok_or_else(|| rounds.failure(nobody_waits()))?;
            let load = scripts.load(script);
            let by_text = sending.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, &load));
            if !by_text {
                sending = None;
            }
            let sent_before = load.count();
            if sent_before == 0 && !by_text && self.waits_for_replicas(script) {
                // WAIT would wait behind a script that the server does not have, for nothing: the text goes first.
                rounds.nothing_done(&call);
                sending = turn(load, sent_before, deadline).await.map_err(|error| rounds.failure(error))?;
                continue;
            }
            let read_only_calls = scripts.read_only_calls();
            let mut batch = Batch { commands: vec![script.command(by_text, read_only_calls, &keys, &args)], atomic: false };
            let margin = if by_text { WAIT_MARGIN } else { WAIT_MARGIN_BY_HASH };
            let line = if script.is_commit() { self.acknowledge(line, &mut batch, acked, margin, deadline) } else { line };
            let now = rounds.call(&call);
            let result = self.transport.send(line, self.slot, Arc::new(batch), &now).await;
            let Some(mut replies) = rounds.judge(result, Judge::First, repeat, &call).await? else { continue };
            let acks = replies.split_off(1.min(replies.len()));
            let reply = replies.pop().ok_or_else(|| Failure::Lost(Error::internal("a command without a reply")))?;
            match answers::meaning(&reply) {
                Some(Meaning::NoScript) => {
                    rounds.nothing_done(&call);
                    sending = turn(load, sent_before, deadline).await.map_err(|error| rounds.failure(error))?;
                }
                Some(Meaning::UnknownCommand(_)) if script.is_read_only() && read_only_calls => {
                    scripts.set_read_only_calls(false);
                }
                meaning => {
                    if by_text {
                        load.sent();
                    }
                    if meaning.is_none() && self.waits_for_replicas(script) {
                        self.acknowledged(acks)?;
                    }
                    return Ok(answers::plain(reply, script.text()));
                }
            }
        }
    }

    fn waits_for_replicas(&self, script: &Script) -> bool {
        script.is_commit() && self.transport.min_acked_replicas() > 0
    }

    /// Puts WAIT behind what `batch` writes, where replicas must acknowledge. It ends by `margin` before the deadline.
    fn acknowledge(&self, line: Line, batch: &mut Batch, acked: Acked<'_>, margin: Duration, deadline: Instant) -> Line {
        let wanted = self.transport.min_acked_replicas();
        if wanted == 0 {
            return line;
        }
        let word = Bytes::from_static;
        if let Acked::ByWitness(key) = acked {
            let life = word(WITNESS_LIFE_MS.as_bytes());
            batch.commands.push(vec![word(b"SET"), key.clone(), Bytes::new(), word(b"PX"), life]);
        }
        // Its own end comes before ours, so that it can say how many there were. The server looks at it ten times a second.
        let left = deadline.saturating_duration_since(ambient::monotonic());
        let left = (left - (left / 10).max(margin).min(left / 2)).as_millis().max(1);
        batch.commands.push(vec![word(b"WAIT"), wanted.to_string().into(), left.to_string().into()]);
        Line::Acked
    }

    /// Checks the replies to what [`acknowledge`](Self::acknowledge) added.
    fn acknowledged(&self, replies: Vec<Reply>) -> Result<(), Failure> {
        let wanted = self.transport.min_acked_replicas();
        if wanted == 0 {
            return Ok(());
        }
        let unknown = |error: Error| Failure::Lost(error.with_outcome(Outcome::Unknown));
        if let Some(error) = replies.iter().find_map(answers::error_of) {
            return Err(unknown(error));
        }
        match replies.last() {
            Some(Reply::Int(count)) if *count >= i64::from(wanted) => Ok(()),
            Some(Reply::Int(count)) => {
                let said = format!("{} of {wanted} replicas acknowledged the commit", (*count).max(0));
                Err(unknown(Error::new(Code::Unavailable, Outcome::Unknown, said)))
            }
            _ => Err(unknown(Error::internal("WAIT was answered with something else than a number"))),
        }
    }
}

/// Waits for the turn to send a script's text; `None` if somebody has sent it since it had been sent `sent_before` times.
async fn turn(load: Arc<Load>, sent_before: u64, deadline: Instant) -> Result<Option<(Arc<Load>, Turn)>, Error> {
    let sender = background::timeout_at(deadline, Arc::clone(&load.sender).lock_owned()).await.map_err(|_| timeout())?;
    Ok((load.count() == sent_before).then_some((load, sender)))
}

type Turn = tokio::sync::OwnedMutexGuard<()>;

fn nobody_waits() -> Error {
    Error::cancelled(Outcome::NotApplied)
}

fn timeout() -> Error {
    Error::new(Code::Timeout, Outcome::NotApplied, "not sent until the deadline")
}
