//! Moving a blob's expiry.

use bytes::Bytes;

use super::RedisRelocation;
use super::keys::{Keys, Mark};
use super::wire::RENEW;
use crate::call::Call;
use crate::contract::{BlobRenewResult, Code, Error, Outcome, Retention};

impl RedisRelocation {
    pub(super) async fn renew_blob(&self, keys: &Keys, retention: Retention, call: &Call) -> Result<BlobRenewResult, Error> {
        let wire = &self.0.wire;
        let mark = Mark::new(&*self.0.ambient);
        loop {
            let look = wire.look(keys, call).await?;
            let Some(seen) = look.live else { return Ok(BlobRenewResult::Missing { store_now: look.now }) };
            let mut names = vec![keys.manifest()];
            names.extend(keys.segments(seen.upload, seen.segments()));
            let args = [
                Bytes::copy_from_slice(&seen.upload.0),
                Bytes::copy_from_slice(&seen.mark.0),
                Bytes::copy_from_slice(&mark.0),
                retention.as_ms().to_string().into(),
            ];
            // Over the mark that was seen, so that it is applied at most once.
            let (answer, lost) = wire.change_surely(&RENEW, &names, &args, keys, call).await?;
            match answer.word() {
                b"renewed" => {
                    return Ok(BlobRenewResult::Renewed { store_now: answer.time(1)?, expires_at: answer.time(2)? });
                }
                b"missing" if !lost => return Ok(BlobRenewResult::Missing { store_now: answer.time(1)? }),
                b"changed" if !lost => call.unmark_sent(),
                b"missing" | b"changed" => {
                    let said = "the answer was lost, and others changed the blob before it could be looked at";
                    return Err(Error::new(Code::Unavailable, Outcome::Unknown, said));
                }
                b"broken" => return Err(Error::internal("segments of a live blob are gone").with_outcome(Outcome::NotApplied)),
                _ => return Err(answer.strange()),
            }
        }
    }
}
