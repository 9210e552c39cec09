//! Drives the operations of one environment that are not answered inline.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::answer::Answer;
use crate::mailbox::Mailbox;
use crate::request::{Memory, Request, Requests};
use crate::work::{Finished, Running, Stores};

/// So many answers go out at the latest, even when more are at hand: JavaScript unpacks them meanwhile.
const DELIVERED_TOGETHER: usize = 128;

/// What JavaScript has submitted and the driver has not yet taken.
#[derive(Default)]
pub(crate) struct Inbox {
    items: Mutex<Vec<Item>>,
    waker: AtomicWaker,
}

pub(crate) enum Item {
    /// Records as they came.
    Batch(Bytes),
    /// An operation that was begun inline and could not be answered there.
    Begun(Running),
}

impl Inbox {
    pub(crate) fn put(&self, item: Item) {
        self.items.lock().push(item);
        self.waker.wake();
    }

    /// Makes the driver look again, if only to find that the environment has ended.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}

/// A future that lives as long as its environment.
pub(crate) struct Driver {
    inbox: Arc<Inbox>,
    stores: Arc<Stores>,
    mailbox: Arc<Mailbox>,
    running: FuturesUnordered<Running>,
    answers: Vec<u8>,
}

impl Driver {
    pub(crate) fn new(inbox: &Arc<Inbox>, stores: &Arc<Stores>, mailbox: &Arc<Mailbox>) -> Self {
        Self {
            inbox: Arc::clone(inbox),
            stores: Arc::clone(stores),
            mailbox: Arc::clone(mailbox),
            running: FuturesUnordered::new(),
            answers: Vec::new(),
        }
    }

    fn take_what_came(&mut self) {
        let items = std::mem::take(&mut *self.inbox.items.lock());
        for item in items {
            match item {
                Item::Begun(running) => self.drive(running),
                Item::Batch(batch) => {
                    for request in Requests(&batch) {
                        self.start(&request, &batch);
                    }
                }
            }
        }
    }

    fn start(&mut self, request: &Request<'_>, batch: &Bytes) {
        let (ticket, cancellable) = (request.ticket, request.cancellable);
        let store = self.stores.get(request.subject);
        match store.and_then(|store| request.start(&store, Memory::Owned(batch), None, &self.mailbox)) {
            Ok(work) => {
                let switch = if cancellable { self.mailbox.switches.get(ticket) } else { None };
                self.drive(Running { ticket, work, switch });
            }
            Err(error) => {
                Finished { ticket, cancellable, answer: Answer::Done(Err(error)) }.pack(&self.mailbox, &mut self.answers);
            }
        }
    }

    fn drive(&mut self, running: Running) {
        if !running.work.is_heavy() {
            self.running.push(running);
            return;
        }
        let mailbox = Arc::clone(&self.mailbox);
        zlink_store::spawn(async move {
            let mut packed = Vec::new();
            running.await.pack(&mailbox, &mut packed);
            mailbox.post(|out| out.append(&mut packed));
        });
    }

    fn deliver(&mut self) {
        if !self.answers.is_empty() {
            self.mailbox.post(|out| out.append(&mut self.answers));
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        driver.inbox.waker.register(context.waker());
        if driver.mailbox.is_closed() {
            return Poll::Ready(());
        }
        driver.take_what_came();
        let mut undelivered = 0;
        while let Poll::Ready(Some(finished)) = Pin::new(&mut driver.running).poll_next(context) {
            finished.pack(&driver.mailbox, &mut driver.answers);
            undelivered += 1;
            if undelivered == DELIVERED_TOGETHER {
                driver.deliver();
                undelivered = 0;
            }
        }
        driver.deliver();
        Poll::Pending
    }
}
