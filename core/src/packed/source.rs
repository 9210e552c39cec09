//! Payloads that stay the other side's memory: handed over part by part, by a thread of that side.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::mailbox::Mailbox;
use super::wire::{Record, number, tell};
use crate::contract::{Code, Error, Outcome, PayloadSource};

/// The payload of one put.
pub(super) struct Segments {
    mailbox: Arc<Mailbox>,
    ticket: u32,
    size: usize,
}

impl Segments {
    pub(super) fn new(mailbox: &Arc<Mailbox>, ticket: u32, size: usize) -> Self {
        Self { mailbox: Arc::clone(mailbox), ticket, size }
    }

    async fn ask(&self, range: Range<usize>) -> Result<Bytes, Error> {
        let (sender, receiver) = oneshot::channel();
        let question = self.mailbox.number();
        let _asked = Asked { mailbox: &self.mailbox, question };
        self.mailbox.segments.put(question, sender);
        self.mailbox.post(|out| {
            let mut record = Record::begin(out, tell::SEGMENT, self.ticket, question);
            record.number(number(range.start as u64)).number(number(range.end as u64));
            record.end();
        });
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl PayloadSource for Segments {
    fn size(&self) -> usize {
        self.size
    }

    fn range(&self, range: Range<usize>) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(self.ask(range))
    }
}

/// The payload is not there any more: its operation is over, or the other side ends. Whoever hears this is being dropped.
pub(super) fn gone() -> Error {
    Error::new(Code::Cancelled, Outcome::Unknown, "the payload is gone")
}

struct Asked<'a> {
    mailbox: &'a Mailbox,
    question: u32,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.mailbox.segments.take(self.question);
    }
}
