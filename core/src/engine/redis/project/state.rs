//! State entries: a read is one transaction, a change one script call.

use bytes::Bytes;

use super::Inner;
use super::answer::{answer, newer, unsure};
use super::entry::{FORMAT, HEADER, Header, MARK, live};
use super::keys::name;
use crate::ambient::random;
use crate::call::Call;
use crate::contract::{
    Code, Error, Name, Namespace, Outcome, StateDeleteResult, StateEntry, StateSetResult, StateWriteOptions, StoreTime, limits,
};
use crate::engine::StateSet;
use crate::engine::redis::client::Script;
use crate::engine::redis::transport::{Batch, Failure, Line, Reply};
use crate::engine::redis::words::{Words, time, unexpected, unread};

pub(super) static SET: Script =
    Script::writing(concat!(include_str!("../failed.lua"), include_str!("entry.lua"), include_str!("set.lua")));
pub(super) static DELETE: Script =
    Script::writing(concat!(include_str!("../failed.lua"), include_str!("entry.lua"), include_str!("delete.lua")));
static GET: Script = Script::reading(include_str!("get.lua"));

impl Inner {
    pub(super) async fn get(&self, namespace: &Namespace, key: &Name, call: &Call) -> Result<Option<StateEntry>, Error> {
        let entry = self.keys.entry(&name(namespace, key));
        let format = self.keys.format.clone();
        if self.client.transactions() {
            let word = Bytes::from_static;
            let (of_format, of_entry) = (vec![word(b"GET"), format.clone()], vec![word(b"GET"), entry.clone()]);
            let batch = |commands| Batch { commands, atomic: true };
            let all = batch(vec![vec![word(b"TIME")], of_format.clone(), of_entry.clone()]);
            let replies = match self.client.together(Line::Small, all, call).await.map_err(unread)? {
                Some(replies) => replies,
                None => {
                    let alone = batch(vec![of_format]);
                    let format = self.client.commands(Line::Small, alone, true, call).await.map_err(unread)?;
                    let timed = batch(vec![vec![word(b"TIME")], of_entry]);
                    let mut replies = self.client.commands(Line::Small, timed, true, call).await.map_err(unread)?;
                    // As in one observation: time, format, entry.
                    replies.splice(1..1, format);
                    replies
                }
            };
            // A server whose memory is full queues no command, not even one that reads. A script it runs.
            if !replies.iter().any(|reply| matches!(reply, Reply::Error { code, .. } if code == "OOM")) {
                return seen(replies);
            }
        }
        match self.client.script(Line::Small, &GET, &[format, entry], &[], true, call).await.map_err(unread)? {
            Reply::Array(replies) => seen(replies),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn set(&self, set: StateSet, call: &Call) -> Result<StateSetResult, Error> {
        let StateSet { namespace, key, value, options: StateWriteOptions { expected_version, ttl_seconds } } = set;
        let name = name(&namespace, &key);
        let mark: [u8; MARK] = random(&*self.ambient);
        let keys = [self.keys.format.clone(), self.keys.expiries.clone(), self.keys.entry(&name)];
        let args = [
            name,
            Bytes::copy_from_slice(&mark),
            value.as_bytes().clone(),
            decimal(expected_version),
            decimal(ttl_seconds.map(|seconds| seconds * 1_000)),
            decimal(Some(limits::MAX_ENTRIES)),
        ];
        let answer = match self.client.script(Line::Small, &SET, &keys, &args, false, call).await {
            Ok(reply) => answer(reply)?,
            Err(Failure::NotSent(error)) => return Err(error),
            Err(Failure::Lost(lost)) => {
                let [_, _, entry] = keys;
                let header = self.written(entry, mark, lost, call).await?;
                return Ok(StateSetResult::Stored(header.entry(value)));
            }
        };
        self.tidy_after(&answer)?;
        match answer.word() {
            b"stored" => {
                let expires_at = Some(answer.time(5)?).filter(|expires_at| expires_at.unix_ms() != 0);
                let (version, created_at, updated_at) = (answer.number(3)?, answer.time(4)?, answer.time(1)?);
                Ok(StateSetResult::Stored(StateEntry { value, version, expires_at, created_at, updated_at }))
            }
            b"conflict" => Ok(StateSetResult::Conflict),
            b"full" => Ok(StateSetResult::LimitReached),
            _ => Err(answer.strange()),
        }
    }

    /// After a lost answer: an entry that bears the mark of the write proves that it was made. Whatever else there is proves
    /// nothing, since the write may still be on its way.
    async fn written(&self, entry: Bytes, mark: [u8; MARK], lost: Error, call: &Call) -> Result<Header, Error> {
        let lost = lost.with_outcome(Outcome::Unknown);
        if lost.code() == Code::Timeout {
            return Err(lost);
        }
        let word = Bytes::from_static;
        let command = vec![word(b"GETRANGE"), entry, word(b"0"), Bytes::from((HEADER - 1).to_string())];
        let looked = self.client.look(vec![command], &self.keys.witness, &Call::reading(call.deadline)).await;
        let header = match looked.ok().and_then(|mut replies| replies.pop()) {
            Some(Reply::Bytes(raw)) => Header::decode(&raw),
            _ => None,
        };
        header.filter(|header| header.mark == mark).ok_or(lost)
    }

    /// A lost answer is not looked after: what is gone bears no mark, and done again it might delete what others put there.
    pub(super) async fn delete(
        &self,
        namespace: &Namespace,
        key: &Name,
        expected: Option<u64>,
        call: &Call,
    ) -> Result<StateDeleteResult, Error> {
        let name = name(namespace, key);
        let keys = [self.keys.format.clone(), self.keys.expiries.clone(), self.keys.entry(&name)];
        let reply = self.client.script(Line::Small, &DELETE, &keys, &[name, decimal(expected)], false, call).await;
        let answer = answer(reply.map_err(unsure)?)?;
        self.tidy_after(&answer)?;
        match answer.word() {
            b"deleted" => Ok(StateDeleteResult::Deleted),
            b"missing" => Ok(StateDeleteResult::Missing),
            b"conflict" => Ok(StateDeleteResult::Conflict),
            _ => Err(answer.strange()),
        }
    }

    /// Begins to remove expired entries, if a script saw any.
    fn tidy_after(&self, answer: &Words) -> Result<(), Error> {
        if answer.bytes(2) != b"0" {
            self.reaper.owe(&self.client, &self.keys, answer.time(1)?);
        }
        Ok(())
    }
}

/// What one observation shows of an entry: time, format, entry. What is not ours there is nothing, for a read.
fn seen(replies: Vec<Reply>) -> Result<Option<StateEntry>, Error> {
    let [clock, format, entry] = <[Reply; 3]>::try_from(replies).map_err(|_| Error::internal("an answer of another length"))?;
    let now: StoreTime = time(&clock)?;
    match format {
        Reply::Nil => {}
        Reply::Bytes(format) if format == FORMAT => {}
        Reply::Bytes(_) => return Err(newer()),
        other => return Err(unexpected(&other)),
    }
    match entry {
        Reply::Bytes(raw) => Ok(live(raw, now)),
        Reply::Nil => Ok(None),
        Reply::Error { code, .. } if code == "WRONGTYPE" => Ok(None),
        other => Err(unexpected(&other)),
    }
}

fn decimal(number: Option<u64>) -> Bytes {
    number.map_or_else(Bytes::new, |number| number.to_string().into())
}
