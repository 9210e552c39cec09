//! The native functions that JavaScript calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use napi::bindgen_prelude::{Either, Function, Uint8ArraySlice};
use napi::{Env, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use zlink_store::packed::wire::{Rows, ask, number};
use zlink_store::packed::{self, Dialect, Request, Store};
use zlink_store::{Error, StoreStats, limits};

use crate::bytes_out::hand_over;
use crate::endpoint::{ProjectSettings, StoreSettings};
use crate::replies::Replies;
use crate::wake::Wake;

/// The reply of the user's Redis client to a command (the ticket).
const CLIENT_REPLY: u32 = ask::OWN;

/// JavaScript copies what it unpacks; from this size on the byte string is handed over itself.
const DIALECT: Dialect = Dialect { keep_from: 64 * 1_024, largest_record: usize::MAX, retention: "retentionMs" };

/// The native side of one JavaScript environment (main thread or worker).
#[napi]
pub struct Bridge {
    packed: packed::Bridge,
    wake: Wake,
    /// After `packed`: who asks when that has ended is told so at once, and all others then.
    replies: Expected,
    /// Answers that were fetched and did not fit yet.
    collected: Mutex<Vec<u8>>,
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
    /// Largest JSON text of a state entry.
    pub json: f64,
}

#[napi]
impl Bridge {
    /// `wake` is called when there is something to `collect`. `external`: whether memory of ours may be handed out.
    #[napi(constructor)]
    pub fn new(wake: Function<'_, (), Unknown<'static>>, external: bool) -> napi::Result<Self> {
        let wake = Wake::new(&wake)?;
        let bell = wake.clone();
        let packed = packed::Bridge::new(DIALECT, move || bell.call());
        Ok(Self { packed, wake, replies: Expected::default(), collected: Mutex::default(), external })
    }

    /// Limits of the contract.
    #[napi]
    pub fn limits() -> Limits {
        Limits {
            value: number(limits::MAX_VALUE as u64),
            write: number(limits::MAX_ENCODED as u64),
            json: number(limits::MAX_JSON as u64),
        }
    }

    /// Makes a store, without I/O.
    #[napi]
    pub fn open(&self, settings: StoreSettings) -> Either<OpenedStore, StoreFailure> {
        self.opened(settings.open(self.packed.outlet(), &self.replies.0))
    }

    /// Opens a project, without I/O.
    #[napi]
    pub fn open_project(&self, settings: ProjectSettings) -> Either<OpenedStore, StoreFailure> {
        self.opened(settings.open())
    }

    /// The locks of a project for one invocation, which ends in so many ms if that is said.
    #[napi]
    pub fn locks(&self, project: u32, within_ms: Option<f64>) -> Either<OpenedStore, StoreFailure> {
        // What no duration holds is as good as never: it comes from a deadline that is not over.
        let within = within_ms.map(|ms| Duration::try_from_secs_f64(ms / 1e3).unwrap_or(Duration::MAX));
        match self.packed.locks(project, within) {
            Ok(number) => Either::A(OpenedStore { number, inline: false }),
            Err(error) => Either::B(failure(&error)),
        }
    }

    fn opened(&self, store: Result<Store, Error>) -> Either<OpenedStore, StoreFailure> {
        match store {
            Ok(store) => {
                let inline = store.answers_inline();
                Either::A(OpenedStore { number: self.packed.add(store), inline })
            }
            Err(error) => Either::B(failure(&error)),
        }
    }

    /// Forgets a store that nobody can use any more.
    #[napi]
    pub fn forget(&self, store: u32) {
        self.packed.forget(store);
    }

    /// Takes a batch of requests. `payload` is that of the last one, if it came beside the batch. Says whether there is
    /// something to `collect` already.
    #[napi]
    pub fn submit(&self, batch: Uint8ArraySlice<'_>, length: u32, payload: Option<Uint8ArraySlice<'_>>) -> bool {
        let batch = batch.get(..length as usize).unwrap_or(&batch);
        for row in Rows(batch).filter(|row| row.kind == CLIENT_REPLY) {
            self.replies.0.answer(row.ticket, &Bytes::copy_from_slice(row.fields));
        }
        self.packed.submit_all(batch, payload.iter().map(|payload| Bytes::copy_from_slice(payload)).collect());
        self.packed.has_records()
    }

    /// Looks for argument errors in one request without submitting it.
    #[napi]
    pub fn check(&self, batch: Uint8ArraySlice<'_>, offset: u32, length: u32) -> Option<StoreFailure> {
        let row = Rows(batch.get(offset as usize..)?.get(..length as usize)?).next()?;
        let fields = Bytes::copy_from_slice(row.fields);
        let request = Request { kind: row.kind, ticket: row.ticket, store: row.extra, fields: &fields };
        self.packed.check(request).err().map(|error| failure(&error))
    }

    /// Ends one operation, whose ticket comes back once that is done.
    #[napi]
    pub fn cancel(&self, ticket: u32) {
        self.packed.cancel(ticket);
    }

    /// Moves what native code has to say into `target`, and returns its length; negative if it does not fit.
    #[napi]
    pub fn collect(&self, mut target: Uint8ArraySlice<'_>) -> i64 {
        let mut collected = self.collected.lock();
        if collected.is_empty() {
            self.packed.collect(&mut collected);
        }
        let length = i64::try_from(collected.len()).unwrap_or(i64::MAX);
        let Some(place) = writable(&mut target).get_mut(..collected.len()) else { return -length };
        place.copy_from_slice(&collected);
        collected.clear();
        length
    }

    /// A byte string that was too large for the batch. `null` if it was taken already.
    #[napi]
    pub fn take(&self, env: Env, number: u32) -> napi::Result<Option<Uint8ArraySlice<'static>>> {
        self.packed.take(number).map(|bytes| hand_over(&env, bytes, self.external)).transpose()
    }

    /// Answers a question for a part of a payload; without bytes, the payload is gone.
    #[napi]
    pub fn segment(&self, question: u32, part: Option<Uint8ArraySlice<'_>>) {
        self.packed.segment(question, part.map(|part| Bytes::copy_from_slice(&part)));
    }

    /// Whether the process is kept alive.
    #[napi]
    pub fn hold(&self, env: Env, hold: bool) {
        self.wake.hold_process(env, hold);
    }

    /// What a store has counted.
    #[napi]
    pub fn stats(&self, store: u32) -> Option<Counters> {
        self.packed.stats(store).map(counters)
    }

    /// From now on log events of at least this level come, too; `undefined` ends that.
    #[napi]
    pub fn log(&self, level: Option<String>) {
        self.packed.log(level.as_deref());
    }
}

/// Replies that end with their environment.
#[derive(Default)]
struct Expected(Arc<Replies>);

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.clear();
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
