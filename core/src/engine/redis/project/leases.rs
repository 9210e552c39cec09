//! What is said to the server about leases: one script call each.

use bytes::Bytes;

use super::Inner;
use super::answer::{answer, unsure};
use super::keys::{name, names};
use crate::ambient;
use crate::call::Call;
use crate::contract::{Code, Error, Grant, LeaseId, LockName, Outcome, ReleaseResult, RenewResult};
use crate::engine::redis::client::Script;
use crate::engine::redis::transport::{Failure, Line};
use crate::engine::redis::words::{Words, unread};

macro_rules! script {
    ($kind:ident, $($file:literal),*) => {
        Script::$kind(concat!($(include_str!($file)),*))
    };
}

pub(super) static ACQUIRE: Script = script!(writing, "acquire_free.lua", "../failed.lua", "locks.lua", "acquire.lua");
pub(super) static RENEW: Script = script!(writing, "locks.lua", "renew.lua");
pub(super) static RELEASE: Script = script!(writing, "release_free.lua", "locks.lua", "release.lua");
/// Nobody is promised what it does.
pub(super) static FORGET: Script = script!(tidying, "locks.lua", "forget.lua");
static ATTACH: Script = Script::reading(include_str!("attach.lua"));

impl Inner {
    pub(super) async fn attach(&self, id: LeaseId, call: &Call) -> Result<Option<Grant>, Error> {
        let sent = ambient::monotonic();
        let reply = self.client.script(Line::Small, &ATTACH, self.keys.leases(), &[text(id)], true, call).await;
        let answer = answer(reply.map_err(unread)?)?;
        match answer.word() {
            b"lease" => {
                let lock = names(answer.bytes(1)).ok_or_else(|| Error::internal("a lock's name is damaged"))?;
                let (token, expires_at, lease_ms) = (answer.number(2)?, answer.time(3)?, answer.number(4)?);
                Ok(Some(Grant { lock, id, token, expires_at, lease_ms, sent }))
            }
            b"lost" => Ok(None),
            _ => Err(answer.strange()),
        }
    }

    /// Done twice it is as good as once.
    pub(super) async fn renew(&self, id: LeaseId, lease_ms: u64, call: &Call) -> Result<RenewResult, Error> {
        let args = [text(id), Bytes::from(lease_ms.to_string())];
        let reply = self.client.script(Line::Small, &RENEW, &self.keys.locks, &args, true, call).await;
        let answer = answer(reply.map_err(unsure)?)?;
        match answer.word() {
            b"renewed" => Ok(RenewResult::Renewed { expires_at: answer.time(1)? }),
            b"lost" => Ok(RenewResult::Lost),
            _ => Err(answer.strange()),
        }
    }

    pub(super) async fn release(&self, id: LeaseId, call: &Call) -> Result<ReleaseResult, Error> {
        let (answer, again) = self.surely(&RELEASE, &self.keys.locks, &[text(id)], call).await?;
        match answer.word() {
            b"released" => Ok(ReleaseResult::Released),
            // Ours is gone: the first attempt did it.
            b"lost" if again => Ok(ReleaseResult::Released),
            b"lost" => Ok(ReleaseResult::Lost),
            _ => Err(answer.strange()),
        }
    }

    /// Takes back what an acquire may have got, and sees to it that it gets nothing later.
    pub(super) async fn forget(&self, lock: &LockName, id: LeaseId, call: &Call) -> Result<(), Error> {
        let mut keys = self.keys.locks.to_vec();
        keys.push(self.keys.cancelled(id));
        let args = [name(&lock.namespace, &lock.key), text(id)];
        let reply = self.client.script(Line::Small, &FORGET, &keys, &args, true, call).await;
        answer(reply.map_err(unsure)?).map(|_| ())
    }

    /// Runs a script that finds out by itself whether it did its work already: again after a lost answer, and then also says
    /// that one was lost.
    pub(super) async fn surely(
        &self,
        script: &'static Script,
        keys: &[Bytes],
        args: &[Bytes],
        call: &Call,
    ) -> Result<(Words, bool), Error> {
        let lost = match self.client.script(Line::Small, script, keys, args, false, call).await {
            Ok(reply) => return Ok((answer(reply)?, false)),
            Err(Failure::NotSent(error)) => return Err(error),
            Err(Failure::Lost(error)) => error.with_outcome(Outcome::Unknown),
        };
        if lost.code() == Code::Timeout {
            return Err(lost);
        }
        // `call` says that something was sent, and whatever becomes of this attempt, so it was.
        let again = Call::reading(call.deadline);
        match self.client.script_again(Line::Small, script, keys, args, &self.keys.witness, &again).await {
            Ok(reply) => Ok((answer(reply).map_err(|error| error.with_outcome(Outcome::Unknown))?, true)),
            Err(_) => Err(lost),
        }
    }
}

pub(super) fn text(id: LeaseId) -> Bytes {
    id.to_string().into()
}
