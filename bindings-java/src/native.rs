//! The native methods of `systems.zlink.store.internal.Native`.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jni::errors::{Result, ThrowRuntimeExAndDefault};
use jni::objects::{JByteArray, JClass, JObjectArray};
use jni::sys::{JNI_VERSION_1_8, jboolean, jint, jlong};
use jni::{Env, EnvUnowned, JavaVM, jni_mangle, jni_str};
use zlink_store::packed::wire::{Record, tell};
use zlink_store::packed::{Request, Store, Taken, packed_error};
use zlink_store::{Error, limits};

use crate::arrays::{copy, copy_all, copy_each, put};
use crate::opening;
use crate::side::SIDE;
use crate::stats;

type ByteArrays<'local> = JObjectArray<'local, JByteArray<'local>>;

/// Called by the virtual machine when it has loaded this library.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the virtual machine looks for this name, and hands over a raw pointer")]
extern "system" fn JNI_OnLoad(vm: *mut jni::sys::JavaVM, _reserved: *mut c_void) -> jint {
    let noted = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the virtual machine passes a pointer to itself, and lives as long as the process.
        unsafe { JavaVM::from_raw(vm) };
    }));
    if noted.is_ok() { JNI_VERSION_1_8 } else { jni::sys::JNI_ERR }
}

/// The version of this library.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn version<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> { env.byte_array_from_slice(env!("CARGO_PKG_VERSION").as_bytes()) })
        .resolve::<ThrowRuntimeExAndDefault>()
}

/// The limits that Java needs to know, so as not to copy what is too large anyway: of a value, of an encoded write; and the
/// default operation timeout in milliseconds.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn limit(_env: EnvUnowned<'_>, _class: JClass<'_>, which: jint) -> jlong {
    let limit = match which {
        0 => limits::MAX_VALUE as u64,
        1 => limits::MAX_ENCODED as u64,
        _ => limits::DEFAULT_OPERATION_TIMEOUT_MS,
    };
    jlong::try_from(limit).unwrap_or(jlong::MAX)
}

/// Makes a store at the address and with the key prefix that `texts` has, without I/O: its number and whether it answers inline,
/// or an error.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn open<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    relocation: jboolean,
    place: jint,
    texts: JByteArray<'local>,
    length: jint,
    operation_timeout_ms: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        let texts = copy(env, &texts, 0, length)?;
        opened(env, opening::open(relocation, place, &texts, operation_timeout_ms))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Makes a project at the URL, of the workspace and with the name that `texts` has, as [`open`] makes a store.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn open_project<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    texts: JByteArray<'local>,
    length: jint,
    operation_timeout_ms: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        let texts = copy(env, &texts, 0, length)?;
        opened(env, opening::open_project(&texts, operation_timeout_ms))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Makes the locks of a project for one invocation, which ends `within_ms` from now (below 0: nobody knows when).
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn locks<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, project: jint, within_ms: jlong) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        let within = u64::try_from(within_ms).ok().map(Duration::from_millis);
        let record = match SIDE.bridge.locks(project.cast_unsigned(), within) {
            Ok(number) => opened_record(number, false),
            Err(error) => packed_error(&error, 0),
        };
        env.byte_array_from_slice(&record)
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

fn opened<'local>(env: &mut Env<'local>, store: std::result::Result<Store, Error>) -> Result<JByteArray<'local>> {
    let record = match store {
        Ok(store) => {
            let inline = store.answers_inline();
            opened_record(SIDE.bridge.add(store), inline)
        }
        Err(error) => packed_error(&error, 0),
    };
    env.byte_array_from_slice(&record)
}

fn opened_record(number: u32, inline: bool) -> Vec<u8> {
    let mut record = Vec::new();
    Record::begin(&mut record, tell::OWN + u32::from(inline), 0, number).end();
    record
}

/// Takes one request. The answer if it is there at once, else null. With `hold` it begins at the next [`go_on`], or earlier.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn submit<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    kind: jint,
    ticket: jint,
    store: jint,
    fields: JByteArray<'local>,
    length: jint,
    beside: ByteArrays<'local>,
    hold: jboolean,
) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        let fields = copy(env, &fields, 0, length)?;
        let beside = copy_each(env, &beside)?;
        let request =
            Request { kind: kind.cast_unsigned(), ticket: ticket.cast_unsigned(), store: store.cast_unsigned(), fields: &fields };
        match SIDE.bridge.submit(request, beside, hold) {
            Taken::Answered(record) => env.byte_array_from_slice(&record),
            Taken::UnderWay => Ok(JByteArray::null()),
        }
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Begins what was held.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn go_on<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) {
    env.with_env(|_| -> Result<_> {
        SIDE.bridge.go_on();
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// Ends one operation, which is answered all the same.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn cancel<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, ticket: jint) {
    env.with_env(|_| -> Result<_> {
        SIDE.bridge.cancel(ticket.cast_unsigned());
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// Waits for answers, and moves as many as have room into `target`. Their length in bytes; 0 after a nudge, or when `timeout_ms`
/// (if above 0) have passed.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn collect<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    target: JByteArray<'local>,
    timeout_ms: jint,
) -> jint {
    env.with_env(|env| -> Result<_> {
        let room = target.len(env)?;
        let patience = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0).map(Duration::from_millis);
        let length = SIDE.collect(room, patience, |records| put(env, &target, records))?;
        Ok(jint::try_from(length).unwrap_or(jint::MAX))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Moves answers that are there, or come within `patience_us`, into `target`, for a thread that comes back for more or says
/// [`left`]: until then nobody else is woken for them. Their length in bytes.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn collect_now<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    target: JByteArray<'local>,
    patience_us: jint,
) -> jint {
    env.with_env(|env| -> Result<_> {
        let room = target.len(env)?;
        let patience = Duration::from_micros(u64::try_from(patience_us).unwrap_or_default());
        let length = SIDE.collect_now(room, patience, |records| put(env, &target, records))?;
        Ok(jint::try_from(length).unwrap_or(jint::MAX))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// The thread that [`collect_now`] was called on does not come back.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn left<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) {
    env.with_env(|_| -> Result<_> {
        SIDE.left();
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// Waits for the answer to one operation alone, at most `timeout_ms`. Null if it goes, or has gone, to the thread that collects.
#[jni_mangle("systems.zlink.store.internal.Native", "await")]
pub fn wait_for<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    ticket: jint,
    timeout_ms: jint,
) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        let patience = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or_default());
        let Some(record) = SIDE.bridge.wait_for(ticket.cast_unsigned(), patience) else { return Ok(JByteArray::null()) };
        env.byte_array_from_slice(&record).inspect_err(|_| SIDE.bridge.put_back(record))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Makes the thread that waits for this answer look for it elsewhere.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn release<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, ticket: jint) {
    env.with_env(|_| -> Result<_> {
        SIDE.bridge.release(ticket.cast_unsigned());
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// Makes the thread that waits in `collect` come back.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn nudge<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>) {
    env.with_env(|_| -> Result<_> {
        SIDE.nudge();
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// A byte string that was kept; null if it was taken already, or is not wanted.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn take<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, number: jint, wanted: jboolean) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        match SIDE.bridge.take(number.cast_unsigned()) {
            Some(bytes) if wanted => env.byte_array_from_slice(&bytes).or_else(|error| no_room(env, error)),
            _ => Ok(JByteArray::null()),
        }
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Tells Java that it has no room for an array (`error` says no more than that it was not to be had).
fn no_room<'local>(env: &mut Env<'local>, error: jni::errors::Error) -> Result<JByteArray<'local>> {
    let said = jni_str!("no room for the bytes of an answer");
    env.throw_new(jni_str!("java/lang/OutOfMemoryError"), said)?;
    Err(error)
}

/// Answers a question for the part of `payload` between `start` and `end`; without a payload, it is gone.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn segment<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    question: jint,
    payload: JByteArray<'local>,
    start: jint,
    end: jint,
) {
    env.with_env(|env| -> Result<_> {
        let part = if payload.is_null() { None } else { Some(copy(env, &payload, start, end - start)?) };
        SIDE.bridge.segment(question.cast_unsigned(), part);
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// What a store has counted.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn stats<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, store: jint) -> JByteArray<'local> {
    env.with_env(|env| -> Result<_> {
        let record = match SIDE.bridge.stats(store.cast_unsigned()) {
            Some(stats) => stats::pack(&stats),
            None => packed_error(&Error::closed(), 0),
        };
        env.byte_array_from_slice(&record)
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Forgets a store that nobody can use any more.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn forget<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, store: jint) {
    env.with_env(|_| -> Result<_> {
        SIDE.bridge.forget(store.cast_unsigned());
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}

/// From now on log events of at least this level come, too.
#[jni_mangle("systems.zlink.store.internal.Native")]
pub fn log<'local>(mut env: EnvUnowned<'local>, _class: JClass<'local>, level: JByteArray<'local>) {
    env.with_env(|env| -> Result<_> {
        let level = copy_all(env, &level)?;
        SIDE.bridge.log(Some(&String::from_utf8_lossy(&level)));
        Ok(())
    })
    .resolve::<ThrowRuntimeExAndDefault>();
}
