//! The native functions that JavaScript calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use napi::bindgen_prelude::{Either, Function, Uint8ArraySlice};
use napi::{Env, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use zlink_store::{Error, StoreStats, limits};

use crate::answer::Answer;
use crate::bytes_out::hand_over;
use crate::driver::{Driver, Inbox, Item};
use crate::endpoint::StoreSettings;
use crate::host;
use crate::log;
use crate::mailbox::Mailbox;
use crate::request::{Memory, Request, Requests};
use crate::source::gone;
use crate::wire::{ask, number};
use crate::work::{Finished, Running, Store, Stores, Switch};

/// The native side of one JavaScript environment (main thread or worker).
#[napi]
pub struct Bridge {
    mailbox: Arc<Mailbox>,
    stores: Arc<Stores>,
    inbox: Arc<Inbox>,
    driver: Mutex<Option<Driver>>,
    external: bool,
}

/// An error of the core.
#[napi(object, object_from_js = false)]
pub struct StoreFailure {
    /// Such as `TIMEOUT`.
    pub code: String,
    /// `notApplied` or `unknown`.
    pub outcome: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The argument that is wrong, if one is.
    pub argument: Option<String>,
    /// Words for a person.
    pub message: String,
}

/// A store that was opened.
#[napi(object, object_from_js = false)]
pub struct OpenedStore {
    /// What requests name it by.
    pub number: u32,
    /// Whether it answers inside `submit`.
    pub inline: bool,
}

/// What a store has counted since it was made.
#[napi(object, object_from_js = false)]
pub struct Counters {
    /// Operations begun, by kind.
    pub operations: HashMap<&'static str, f64>,
    /// Failures, by code.
    pub errors: HashMap<&'static str, f64>,
    /// Finished operations by latency: entry `i` counts those under 2^(i+1) µs that are in no entry before.
    pub latency_us_log2: Vec<f64>,
    /// Operations under way.
    pub in_flight: f64,
    /// Connections made again after a loss.
    pub reconnects: f64,
    /// Commands sent to the server.
    pub commands_sent: f64,
}

/// Limits that JavaScript needs to know, so as not to copy what is too large anyway.
#[napi(object, object_from_js = false)]
pub struct Limits {
    /// Largest value.
    pub value: f64,
    /// Largest encoded write.
    pub write: f64,
}

#[napi]
impl Bridge {
    /// `wake` is called when there is something to `collect`. `external`: whether memory of ours may be handed out.
    #[napi(constructor)]
    pub fn new(wake: Function<'_, (), Unknown<'static>>, external: bool) -> napi::Result<Self> {
        let mailbox = Arc::new(Mailbox::new(&wake)?);
        let (stores, inbox) = (Arc::<Stores>::default(), Arc::<Inbox>::default());
        let driver = Mutex::new(Some(Driver::new(&inbox, &stores, &mailbox)));
        Ok(Self { mailbox, stores, inbox, driver, external })
    }

    /// Limits of the contract.
    #[napi]
    pub fn limits() -> Limits {
        Limits { value: number(limits::MAX_VALUE as u64), write: number(limits::MAX_ENCODED as u64) }
    }

    /// Makes a store, without I/O.
    #[napi]
    pub fn open(&self, settings: StoreSettings) -> Either<OpenedStore, StoreFailure> {
        match settings.open(&self.mailbox) {
            Ok(store) => {
                let inline = store.answers_inline();
                Either::A(OpenedStore { number: self.stores.add(store), inline })
            }
            Err(error) => Either::B(failure(&error)),
        }
    }

    /// Forgets a store that nobody can use any more.
    #[napi]
    pub fn forget(&self, store: u32) {
        self.stores.remove(store);
    }

    /// Takes a batch of requests. `payload` is that of the last one, if it came beside the batch. Says whether there is
    /// something to `collect` already.
    #[napi]
    pub fn submit(&self, batch: Uint8ArraySlice<'_>, length: u32, payload: Option<Uint8ArraySlice<'_>>) -> bool {
        let batch = batch.get(..length as usize).unwrap_or(&batch);
        let mut driven = Vec::new();
        for request in Requests(batch) {
            match request.kind {
                ask::NOTHING => {}
                ask::CLIENT_REPLY => {
                    if let Some(waiting) = self.mailbox.replies.take(request.ticket) {
                        // Whoever asked may have left in between.
                        let _ = waiting.send(host::reply(request.fields));
                    }
                }
                _ => match self.stores.get(request.subject) {
                    Ok(store) if store.answers_inline() => self.answer(&request, &store, payload.as_deref()),
                    _ => {
                        self.switch(&request);
                        driven.extend_from_slice(request.record);
                    }
                },
            }
        }
        if !driven.is_empty() {
            self.drive(Item::Batch(Bytes::from(driven)));
        }
        self.mailbox.has_records()
    }

    /// Looks for argument errors in one request without submitting it.
    #[napi]
    pub fn check(&self, batch: Uint8ArraySlice<'_>, offset: u32, length: u32) -> Option<StoreFailure> {
        let request = Requests(batch.get(offset as usize..)?.get(..length as usize)?).next()?;
        let store = self.stores.get(request.subject).ok()?;
        let payload = Some(Bytes::new());
        request.start(&store, Memory::Borrowed, payload, &self.mailbox).err().map(|error| failure(&error))
    }

    /// Ends one operation, whose ticket comes back once that is done.
    #[napi]
    pub fn cancel(&self, ticket: u32) {
        if let Some(switch) = self.mailbox.switches.get(ticket) {
            switch.throw();
        }
    }

    /// Moves what native code has to say into `target`, and returns its length; negative if it does not fit.
    #[napi]
    pub fn collect(&self, mut target: Uint8ArraySlice<'_>) -> i64 {
        self.mailbox.collect(writable(&mut target))
    }

    /// A byte string that was too large for the batch. `undefined` if it was taken already.
    #[napi]
    pub fn take(&self, env: Env, number: u32) -> napi::Result<Option<Uint8ArraySlice<'static>>> {
        self.mailbox.large.take(number).map(|bytes| hand_over(&env, bytes, self.external)).transpose()
    }

    /// Answers a question for a part of a payload; without bytes, the payload is gone.
    #[napi]
    pub fn segment(&self, question: u32, part: Option<Uint8ArraySlice<'_>>) {
        if let Some(waiting) = self.mailbox.segments.take(question) {
            // Whoever asked may have left in between.
            let _ = waiting.send(part.map(|part| Bytes::copy_from_slice(&part)).ok_or_else(gone));
        }
    }

    /// Whether the process is kept alive.
    #[napi]
    pub fn hold(&self, env: Env, hold: bool) {
        self.mailbox.hold_process(env, hold);
    }

    /// What a store has counted.
    #[napi]
    pub fn stats(&self, store: u32) -> Option<Counters> {
        self.stores.get(store).ok().map(|store| counters(store.stats()))
    }

    /// From now on log events of at least this level come, too; `undefined` ends that.
    #[napi]
    pub fn log(&self, level: Option<String>) {
        log::listen(&self.mailbox, level.as_deref());
    }

    fn answer(&self, request: &Request<'_>, store: &Store, payload: Option<&[u8]>) {
        let ticket = request.ticket;
        let payload = payload.filter(|_| request.kind == ask::PUT).map(Bytes::copy_from_slice);
        let answer = match request.start(store, Memory::Borrowed, payload, &self.mailbox) {
            Ok(work) => {
                let mut running = Running { ticket, work, switch: None };
                match running.poll_now() {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => {
                        running.switch = self.switch(request);
                        self.drive(Item::Begun(running));
                        return;
                    }
                }
            }
            Err(error) => Answer::Done(Err(error)),
        };
        self.mailbox.leave(|out| Finished { ticket, cancellable: false, answer }.pack(&self.mailbox, out));
    }

    fn switch(&self, request: &Request<'_>) -> Option<Arc<Switch>> {
        request.cancellable.then(|| {
            let switch = Arc::<Switch>::default();
            self.mailbox.switches.put(request.ticket, Arc::clone(&switch));
            switch
        })
    }

    fn drive(&self, item: Item) {
        self.inbox.put(item);
        // The driver starts with the first operation that needs it.
        if let Some(driver) = self.driver.lock().take() {
            zlink_store::spawn(driver);
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.mailbox.close();
        self.inbox.wake();
        self.stores.clear();
    }
}

#[expect(unsafe_code, reason = "the slice's own accessor is unsafe")]
fn writable<'a>(array: &'a mut Uint8ArraySlice<'_>) -> &'a mut [u8] {
    // SAFETY: the array is the calling environment's, which does nothing else while its native function runs.
    unsafe { array.as_mut() }
}

fn failure(error: &Error) -> StoreFailure {
    StoreFailure {
        code: error.code().as_str().to_owned(),
        outcome: error.outcome().as_str().to_owned(),
        retryable: error.retryable(),
        argument: error.argument_name().map(str::to_owned),
        message: error.message().to_owned(),
    }
}

fn counters(stats: StoreStats) -> Counters {
    Counters {
        operations: stats.operations.into_iter().map(|(kind, count)| (kind, number(count))).collect(),
        errors: stats.errors.into_iter().map(|(code, count)| (code.as_str(), number(count))).collect(),
        latency_us_log2: stats.latency_us_log2.into_iter().map(number).collect(),
        in_flight: number(stats.in_flight as u64),
        reconnects: number(stats.reconnects),
        commands_sent: number(stats.commands_sent),
    }
}
