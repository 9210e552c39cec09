//! The steps that call a project's state and locks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use zlink_store::{
    Cancellation, DistributedLocks, Error, LockLease, LockOptions, Namespace, Project, ReleaseResult, RenewResult,
    StateDeleteResult, StateEntry, StateNamespace, StateSetResult, StateWriteOptions,
};

use super::calls::{Calling, finish};
use super::results::{error_result, time};
use super::value::{Fault, Val, Vars};

/// Every lease object of a scenario. A result of the kind `lease` has its place here in its field `object`.
#[derive(Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    objects: Vec<LockLease>,
    granted: HashSet<String>,
}

impl Leases {
    /// The lease object of a saved result.
    fn of(&self, name: &str, vars: &Vars) -> Result<LockLease, Fault> {
        let at = vars.look_up(&format!("{name}.object"))?;
        let held = self.0.lock();
        match at {
            Val::Number(at) => usize::try_from(at).ok().and_then(|at| held.objects.get(at).cloned()),
            _ => None,
        }
        .ok_or_else(|| format!("{name} is no lease"))
    }

    /// A lease that was just acquired, as a result.
    pub(crate) fn granted(&self, lease: LockLease) -> Result<Val, Fault> {
        if !self.0.lock().granted.insert(lease.id()) {
            return Err("two grants have the same id".to_owned());
        }
        Ok(self.keep(lease))
    }

    fn keep(&self, lease: LockLease) -> Val {
        let mut fields = lease_fields(&lease);
        let mut held = self.0.lock();
        held.objects.push(lease);
        if let Val::Fields(fields) = &mut fields {
            fields.insert("object".to_owned(), number(held.objects.len() - 1));
        }
        fields
    }
}

fn lease_fields(lease: &LockLease) -> Val {
    Val::fields([
        ("kind", Val::text("lease")),
        ("id", Val::text(lease.id())),
        ("key", Val::text(lease.key())),
        ("namespace", Val::text(lease.namespace())),
        ("fencingToken", number(lease.fencing_token())),
        ("expiresAt", time(lease.expires_at())),
    ])
}

fn number(number: impl TryInto<i64>) -> Val {
    Val::Number(number.try_into().unwrap_or(i64::MAX))
}

pub(crate) fn kind(kind: &str) -> Val {
    Val::fields([("kind", Val::text(kind))])
}

/// Makes the call that a step describes, without starting it.
pub(crate) fn call(
    step: &Map<String, Value>,
    project: &Project,
    locks: &DistributedLocks,
    vars: &Vars,
    leases: &Leases,
    cancellation: Option<Cancellation>,
) -> Result<Calling, Fault> {
    if step.keys().any(|verb| verb.starts_with("state")) {
        return state(step, project, vars, cancellation);
    }
    let leases = leases.clone();
    if let Some(key) = step.get("lockAcquire") {
        let operation = match lock_options(step, vars)? {
            Ok(options) => locks.acquire(vars.text(key)?, options).checked(),
            Err(error) => Err(error),
        };
        let calling = finish(operation, cancellation, move |lease| match lease {
            Some(lease) => leases.granted(lease),
            None => Ok(kind("unavailable")),
        });
        return Ok(measured(calling));
    }
    if let Some(id) = step.get("lockAttach") {
        return Ok(finish(Ok(locks.attach(&vars.text(id)?)), cancellation, move |lease| {
            Ok(lease.map_or_else(|| kind("lost"), |lease| leases.keep(lease)))
        }));
    }
    if let Some(name) = step.get("lockRenew") {
        let lease = leases.of(&vars.text(name)?, vars)?;
        let operation = lease.renew(optional(step, "leaseMs", vars)?).checked();
        return Ok(finish(operation, cancellation, move |result| match result {
            RenewResult::Renewed { expires_at } if lease.expires_at() < expires_at => {
                Err(format!("a lease that was renewed until {expires_at:?} says {:?}", lease.expires_at()))
            }
            RenewResult::Renewed { expires_at } => {
                Ok(Val::fields([("kind", Val::text("renewed")), ("expiresAt", time(expires_at))]))
            }
            RenewResult::Lost => Ok(kind("lost")),
        }));
    }
    if let Some(name) = step.get("lockRelease") {
        let lease = leases.of(&vars.text(name)?, vars)?;
        return Ok(finish(Ok(lease.release()), cancellation, |result| {
            Ok(kind(match result {
                ReleaseResult::Released => "released",
                ReleaseResult::Lost => "lost",
            }))
        }));
    }
    let lease = leases.of(&vars.text(&step["lease"])?, vars)?;
    Ok(Box::pin(async move { Ok(lease_fields(&lease)) }))
}

fn state(
    step: &Map<String, Value>,
    project: &Project,
    vars: &Vars,
    cancellation: Option<Cancellation>,
) -> Result<Calling, Fault> {
    if let Some(name) = step.get("stateNamespace") {
        let result = match project.state().namespace(vars.text(name)?) {
            Ok(namespace) => Val::fields([("kind", Val::text("namespace")), ("name", Val::text(namespace.name()))]),
            Err(error) => error_result(&error),
        };
        return Ok(Box::pin(async move { Ok(result) }));
    }
    let name = step.get("namespace").map_or(Ok("ns".to_owned()), |name| vars.text(name))?;
    let namespace: Result<StateNamespace, Error> = project.state().namespace(name);
    if let Some(key) = step.get("stateGet") {
        let key = vars.text(key)?;
        return Ok(finish(namespace.map(|namespace| namespace.get(key)), cancellation, |entry| match entry {
            Some(entry) => entry_fields("entry", &entry),
            None => Ok(kind("missing")),
        }));
    }
    let expected_version = optional(step, "expectedVersion", vars)?;
    if let Some(key) = step.get("stateSet") {
        let key = vars.text(key)?;
        let json = vars.text(step.get("json").ok_or("json is missing")?)?;
        let options = StateWriteOptions { expected_version, ttl_seconds: optional(step, "ttlSeconds", vars)? };
        let operation = namespace.map(|namespace| namespace.set(key, json, options));
        return Ok(finish(operation, cancellation, |result| match result {
            StateSetResult::Stored(entry) => entry_fields("stored", &entry),
            StateSetResult::Conflict => Ok(kind("conflict")),
            StateSetResult::LimitReached => Ok(kind("limitReached")),
        }));
    }
    let key = vars.text(&step["stateDelete"])?;
    let operation = namespace.map(|namespace| namespace.delete(key, expected_version));
    Ok(finish(operation, cancellation, |result| {
        Ok(kind(match result {
            StateDeleteResult::Deleted => "deleted",
            StateDeleteResult::Missing => "missing",
            StateDeleteResult::Conflict => "conflict",
        }))
    }))
}

fn entry_fields(kind: &str, entry: &StateEntry) -> Result<Val, Fault> {
    if entry.version == 0 || entry.created_at > entry.updated_at {
        return Err(format!("an entry makes no sense: {entry:?}"));
    }
    let mut fields = Val::fields([
        ("kind", Val::text(kind)),
        ("json", Val::text(entry.value.as_str())),
        ("version", number(entry.version)),
        ("createdAt", time(entry.created_at)),
        ("updatedAt", time(entry.updated_at)),
    ]);
    if let (Val::Fields(fields), Some(expires_at)) = (&mut fields, entry.expires_at) {
        if expires_at <= entry.updated_at {
            return Err(format!("an entry expires before it is written: {entry:?}"));
        }
        fields.insert("expiresAt".to_owned(), time(expires_at));
    }
    Ok(fields)
}

/// The options of an acquire; the inner error is an argument error.
pub(crate) fn lock_options(step: &Map<String, Value>, vars: &Vars) -> Result<Result<LockOptions, Error>, Fault> {
    let mut options = LockOptions::default();
    if let Some(name) = step.get("namespace") {
        match Namespace::new(vars.text(name)?) {
            Ok(namespace) => options.namespace = namespace,
            Err(error) => return Ok(Err(error)),
        }
    }
    options.wait_ms = optional(step, "waitMs", vars)?.unwrap_or(options.wait_ms);
    options.lease_ms = optional(step, "leaseMs", vars)?.unwrap_or(options.lease_ms);
    Ok(Ok(options))
}

fn optional(step: &Map<String, Value>, field: &str, vars: &Vars) -> Result<Option<u64>, Fault> {
    let number = step.get(field).map(|number| vars.number(number)).transpose()?;
    number.map(|number| u64::try_from(number).map_err(|error| error.to_string())).transpose()
}

/// The result with how long it took.
fn measured(calling: Calling) -> Calling {
    Box::pin(async move {
        let began = monotonic();
        let mut result = calling.await?;
        if let Val::Fields(fields) = &mut result {
            // Whole milliseconds, upwards: a timer counts no finer.
            let took = (began.elapsed() + Duration::from_micros(999)).as_millis();
            fields.insert("tookMs".to_owned(), number(took));
        }
        Ok(result)
    })
}

#[expect(clippy::disallowed_methods, reason = "how long a call took")]
fn monotonic() -> Instant {
    Instant::now()
}
