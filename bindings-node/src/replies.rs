//! Who waits for the user's Redis clients of one environment, and what these said.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use zlink_store::host::{Failure, Reply};
use zlink_store::packed::wire::Reader;
use zlink_store::{Code, Error, Outcome};

pub(crate) type Answered = Result<Reply, Failure>;

/// Commands under way, by number.
#[derive(Default)]
pub(crate) struct Replies {
    waiting: Mutex<HashMap<u32, oneshot::Sender<Answered>>>,
    next: AtomicU32,
}

impl Replies {
    pub(crate) fn expect(&self) -> (u32, oneshot::Receiver<Answered>) {
        let (sender, receiver) = oneshot::channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(number, sender);
        (number, receiver)
    }

    /// Whether somebody still waited.
    pub(crate) fn forget(&self, number: u32) -> bool {
        self.waiting.lock().remove(&number).is_some()
    }

    pub(crate) fn answer(&self, number: u32, fields: &Bytes) {
        let waiting = self.waiting.lock().remove(&number);
        if let Some(waiting) = waiting {
            // Whoever asked may have left in between.
            let _ = waiting.send(unpack(Reader::new(fields)));
        }
    }

    /// The environment ends.
    pub(crate) fn clear(&self) {
        // Dropped outside the lock: it wakes those who wait.
        let dropped = std::mem::take(&mut *self.waiting.lock());
        drop(dropped);
    }
}

fn unpack(mut fields: Reader<'_>) -> Answered {
    let kind = fields.byte().map_err(Failure::Lost)?;
    if !matches!(kind, b'n' | b'l') {
        return value(kind, &mut fields).map_err(Failure::Lost);
    }
    let said = String::from_utf8_lossy(fields.string().map_err(Failure::Lost)?).into_owned();
    let error = Error::new(Code::Unavailable, Outcome::Unknown, said);
    Err(if kind == b'n' { Failure::NotSent(error.with_outcome(Outcome::NotApplied)) } else { Failure::Lost(error) })
}

fn value(kind: u8, fields: &mut Reader<'_>) -> Result<Reply, Error> {
    Ok(match kind {
        b'_' => Reply::Nil,
        b':' => {
            let digits = std::str::from_utf8(fields.string()?).ok().and_then(|digits| digits.parse().ok());
            Reply::Int(digits.ok_or_else(malformed)?)
        }
        // A copy: a part would keep the whole batch alive.
        b'$' => Reply::Bytes(Bytes::copy_from_slice(fields.string()?)),
        b'*' => {
            let items = fields.word()?;
            let mut array = Vec::new();
            for _ in 0..items {
                let kind = fields.byte()?;
                array.push(value(kind, fields)?);
            }
            Reply::Array(array)
        }
        b'-' => {
            let said = String::from_utf8_lossy(fields.string()?);
            let (code, message) = said.split_once(' ').unwrap_or((&said, ""));
            Reply::Error { code: code.to_owned(), message: message.to_owned() }
        }
        _ => return Err(malformed()),
    })
}

fn malformed() -> Error {
    Error::internal("a malformed reply")
}
