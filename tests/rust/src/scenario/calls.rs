//! The steps that call a store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use zlink_store::{
    BlobReference, Cancellation, Condition, Cursor, DistributedLocks, Error, Key, LocationStore, Mutation, Operation, Project,
    RelocationStore, Retention, ScanRequest, ScanResult, Version, WriteRequest,
};

use super::results::{
    Versions, blob_put_result, blob_read_result, blob_renew_result, error_result, page_result, read_result, scan_all,
    write_result,
};
use super::value::{Fault, Val, Vars};

/// A call under way: its result, or what is wrong with what the store answered.
pub(crate) type Calling = Pin<Box<dyn Future<Output = Result<Val, Fault>> + Send>>;

/// A store of any kind.
#[derive(Clone)]
pub(crate) enum Store {
    Location(LocationStore),
    Relocation(RelocationStore),
    /// With the invocation of those calls that name none.
    Project(Project, DistributedLocks),
}

impl Store {
    pub(crate) async fn close(&self) {
        match self {
            Self::Location(store) => store.close().await,
            Self::Relocation(store) => store.close().await,
            Self::Project(project, _) => project.close().await,
        }
    }

    /// How many operations it has begun.
    pub(crate) fn begun(&self) -> u64 {
        let stats = match self {
            Self::Location(store) => store.stats(),
            Self::Relocation(store) => store.stats(),
            Self::Project(project, _) => project.stats(),
        };
        stats.operations.iter().map(|(_, count)| count).sum()
    }
}

/// The verbs that call a store, and the kind of store that they want.
pub(crate) const VERBS: [(&str, &str); 19] = [
    ("read", "location"),
    ("write", "location"),
    ("put", "location"),
    ("delete", "location"),
    ("scan", "location"),
    ("scanAll", "location"),
    ("blobPut", "relocation"),
    ("blobRead", "relocation"),
    ("blobRenew", "relocation"),
    ("blobDelete", "relocation"),
    ("stateNamespace", "project"),
    ("stateGet", "project"),
    ("stateSet", "project"),
    ("stateDelete", "project"),
    ("lockAcquire", "project"),
    ("lockAttach", "project"),
    ("lockRenew", "project"),
    ("lockRelease", "project"),
    ("lease", "project"),
];

/// The cancellation that a step wants to be requested before its call.
pub(crate) fn cancelled(step: &Map<String, Value>) -> Option<Cancellation> {
    step.get("cancelled").is_some_and(|cancelled| cancelled == true).then(|| {
        let cancellation = Cancellation::new();
        cancellation.cancel();
        cancellation
    })
}

pub(crate) fn location(
    step: &Map<String, Value>,
    store: &LocationStore,
    vars: &Vars,
    versions: &Versions,
    cancellation: Option<Cancellation>,
) -> Result<Calling, Fault> {
    if let Some(key) = step.get("read") {
        let operation = Key::new(vars.text(key)?).map(|key| store.read(key));
        return Ok(finish(operation, cancellation, read_result));
    }
    if let Some(scan) = step.get("scan").or(step.get("scanAll")) {
        let scan = scan.as_object().ok_or("a scan is an object")?;
        let prefix = scan.get("prefix").map_or(Ok(String::new()), |prefix| vars.text(prefix))?;
        let limit = scan.get("limit").map_or(Ok(1_000), |limit| vars.number(limit))?;
        let mut request = Ok(ScanRequest::new(prefix, u32::try_from(limit).map_err(|error| error.to_string())?));
        if let Some(cursor) = scan.get("cursor") {
            request = Cursor::new(vars.text(cursor)?).and_then(|cursor| request.map(|request| request.after(cursor)));
        }
        if step.contains_key("scanAll") {
            let request = request.map_err(|error| error.to_string())?;
            return Ok(Box::pin(scan_all(store.clone(), request)));
        }
        let asked = request.as_ref().ok().cloned();
        let operation = request.map(|request| store.scan(request));
        return Ok(finish(operation, cancellation, move |result| match (result, asked) {
            (ScanResult::Page(page), Some(asked)) => page_result(page, &asked),
            _ => Ok(Val::fields([("kind", Val::text("expired"))])),
        }));
    }
    let request = request(step, vars)?;
    let puts: Vec<String> = request.iter().flat_map(|request| &request.mutations).filter_map(put_key).collect();
    let operation = request.map(|request| store.write(request));
    let versions = Arc::clone(versions);
    Ok(finish(operation, cancellation, move |result| write_result(result, &puts, &versions)))
}

pub(crate) fn relocation(
    step: &Map<String, Value>,
    store: &RelocationStore,
    vars: &Vars,
    cancellation: Option<Cancellation>,
) -> Result<Calling, Fault> {
    let verb = ["blobPut", "blobRead", "blobRenew", "blobDelete"].into_iter().find(|verb| step.contains_key(*verb));
    let verb = verb.ok_or("no such verb of a relocation store")?;
    let reference = BlobReference::new(vars.text(&step[verb])?);
    Ok(match verb {
        "blobPut" => {
            let bytes = vars.bytes(step.get("bytes").ok_or("bytes is missing")?)?;
            let retention = retention(vars.number_of(step, "retentionMs")?)?;
            let operation = reference.and_then(|reference| Ok(store.put(reference, bytes, retention?)));
            finish(operation, cancellation, blob_put_result)
        }
        "blobRead" => finish(reference.map(|reference| store.read(reference)), cancellation, blob_read_result),
        "blobRenew" => {
            let retention = retention(vars.number_of(step, "retentionMs")?)?;
            let operation = reference.and_then(|reference| Ok(store.renew(reference, retention?)));
            finish(operation, cancellation, blob_renew_result)
        }
        _ => finish(reference.map(|reference| store.delete(reference)), cancellation, |()| {
            Ok(Val::fields([("kind", Val::text("deleted"))]))
        }),
    })
}

/// Runs an operation (or gives back what was wrong with its arguments) and turns its answer into fields.
pub(crate) fn finish<T: Send + 'static>(
    operation: Result<Operation<T>, Error>,
    cancellation: Option<Cancellation>,
    to_fields: impl FnOnce(T) -> Result<Val, Fault> + Send + 'static,
) -> Calling {
    Box::pin(async move {
        let operation = match (operation, cancellation) {
            (Ok(operation), Some(cancellation)) => operation.with_cancellation(&cancellation),
            (Ok(operation), None) => operation,
            (Err(error), _) => return Ok(error_result(&error)),
        };
        match operation.await {
            Ok(answer) => to_fields(answer),
            Err(error) => Ok(error_result(&error)),
        }
    })
}

/// The write that a `write`, `put` or `delete` step describes; the inner error is an argument error.
fn request(step: &Map<String, Value>, vars: &Vars) -> Result<Result<WriteRequest, Error>, Fault> {
    let Some(write) = step.get("write") else {
        // A step that is one mutation; its `times`, if it has one, was its own.
        let mutation = mutation(&Value::Object(step.clone()), vars)?;
        let place = |error: Error| error.inside("mutations[0]");
        return Ok(mutation.map(|mutation| WriteRequest::new().mutation(mutation)).map_err(place));
    };
    let mut request = WriteRequest::new();
    let list = |name: &str| match write.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => vars.expand(list),
        Some(_) => Err(format!("{name} is no list")),
    };
    for (index, (form, vars)) in list("conditions")?.iter().enumerate() {
        match condition(form, vars)? {
            Ok(condition) => request = request.condition(condition),
            Err(error) => return Ok(Err(error.inside(&format!("conditions[{index}]")))),
        }
    }
    for (index, (form, vars)) in list("mutations")?.iter().enumerate() {
        match mutation(form, vars)? {
            Ok(mutation) => request = request.mutation(mutation),
            Err(error) => return Ok(Err(error.inside(&format!("mutations[{index}]")))),
        }
    }
    Ok(Ok(request))
}

fn condition(form: &Value, vars: &Vars) -> Result<Result<Condition, Error>, Fault> {
    if let Some(key) = form.get("missing") {
        return Ok(Key::new(vars.text(key)?).map(|key| Condition::Missing { key }));
    }
    let key = Key::new(vars.text(&form["version"])?);
    let expected = Version::new(vars.text(&form["expected"])?);
    Ok(key.and_then(|key| Ok(Condition::Version { key, expected: expected? })))
}

fn mutation(form: &Value, vars: &Vars) -> Result<Result<Mutation, Error>, Fault> {
    if let Some(key) = form.get("delete") {
        return Ok(Key::new(vars.text(key)?).map(Mutation::delete));
    }
    let key = Key::new(vars.text(&form["put"])?);
    let bytes = vars.bytes(&form["bytes"])?;
    let retention = match form.get("retentionMs") {
        Some(ms) => retention(vars.number(ms)?)?.map(Some),
        None => Ok(None),
    };
    Ok(key.and_then(|key| Ok(Mutation::Put { key, bytes, retention: retention? })))
}

fn put_key(mutation: &Mutation) -> Option<String> {
    match mutation {
        Mutation::Put { key, .. } => Some(key.as_str().to_owned()),
        Mutation::Delete { .. } => None,
    }
}

fn retention(ms: i64) -> Result<Result<Retention, Error>, Fault> {
    Ok(Retention::from_ms(u64::try_from(ms).map_err(|error| error.to_string())?))
}
