//! The steps that call a store: arguments in, a result as plain fields out, and what is checked of every result.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Cancellation, Condition, Cursor, DistributedLocks, Error, Key,
    LocationStore, Mutation, Operation, Project, ReadResult, RelocationStore, Retention, ScanPage, ScanRequest, ScanResult,
    StoreTime, Version, WriteRequest, WriteResult, limits,
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
}

/// Every version that a put of the scenario got.
pub(crate) type Versions = Arc<Mutex<HashSet<String>>>;

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

pub(crate) fn error_result(error: &Error) -> Val {
    let mut result = Val::fields([
        ("error", Val::text(error.code().as_str())),
        ("outcome", Val::text(error.outcome().as_str())),
        ("message", Val::text(error.message())),
    ]);
    if let (Val::Fields(fields), Some(argument)) = (&mut result, error.argument_name()) {
        fields.insert("argument".to_owned(), Val::text(argument));
    }
    result
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

pub(crate) fn time(time: StoreTime) -> Val {
    Val::Number(i64::try_from(time.unix_ms()).unwrap_or(i64::MAX))
}

fn record(fields: &mut Val, version: &Version, expires_at: Option<StoreTime>) {
    if let Val::Fields(fields) = fields {
        fields.insert("version".to_owned(), Val::text(version.as_str()));
        if let Some(expires_at) = expires_at {
            fields.insert("expiresAt".to_owned(), time(expires_at));
        }
    }
}

fn live(expires_at: Option<StoreTime>, store_now: StoreTime) -> Result<(), Fault> {
    match expires_at {
        Some(expires_at) if expires_at <= store_now => {
            Err(format!("an expired record was given out: {expires_at:?} {store_now:?}"))
        }
        _ => Ok(()),
    }
}

fn read_result(result: ReadResult) -> Result<Val, Fault> {
    match result {
        ReadResult::Missing { store_now } => Ok(Val::fields([("kind", Val::text("missing")), ("storeNow", time(store_now))])),
        ReadResult::Found(value) => {
            live(value.expires_at, value.store_now)?;
            let mut fields = Val::fields([
                ("kind", Val::text("found")),
                ("bytes", Val::Bytes(value.bytes)),
                ("storeNow", time(value.store_now)),
            ]);
            record(&mut fields, &value.version, value.expires_at);
            Ok(fields)
        }
    }
}

fn write_result(result: WriteResult, puts: &[String], versions: &Versions) -> Result<Val, Fault> {
    let (put_versions, store_now) = match result {
        WriteResult::Applied { put_versions, store_now } => (put_versions, store_now),
        WriteResult::Conflict { store_now } => {
            return Ok(Val::fields([("kind", Val::text("conflict")), ("storeNow", time(store_now))]));
        }
    };
    if !put_versions.iter().map(|put| put.key.as_str()).eq(puts.iter().map(String::as_str)) {
        return Err("putVersions are not the puts in their order".to_owned());
    }
    let mut seen = versions.lock();
    if let Some(again) = put_versions.iter().find(|put| !seen.insert(put.version.as_str().to_owned())) {
        return Err(format!("version {} was given out twice", again.version));
    }
    Ok(Val::fields([
        ("kind", Val::text("applied")),
        ("keys", Val::List(put_versions.iter().map(|put| Val::text(put.key.as_str())).collect())),
        ("versions", Val::List(put_versions.iter().map(|put| Val::text(put.version.as_str())).collect())),
        ("storeNow", time(store_now)),
    ]))
}

fn page_result(page: ScanPage, asked: &ScanRequest) -> Result<Val, Fault> {
    let size = |key: &Key, version: &Version, bytes: usize| key.as_bytes().len() + version.as_bytes().len() + bytes;
    let sizes: usize = page.items.iter().map(|item| size(&item.key, &item.value.version, item.value.bytes.len())).sum();
    if sizes > limits::MAX_ENCODED && page.items.len() > 1 {
        return Err(format!("a page of {sizes} bytes"));
    }
    if page.items.len() > usize::try_from(asked.limit).unwrap_or(usize::MAX) {
        return Err(format!("{} items on a page of at most {}", page.items.len(), asked.limit));
    }
    if page.items.is_empty() && (page.next_cursor.is_some() || asked.cursor.is_some()) {
        return Err("an empty page in the middle of a scan".to_owned());
    }
    if !page.items.is_sorted_by(|a, b| a.key.as_bytes() < b.key.as_bytes()) {
        return Err("a page out of order".to_owned());
    }
    for item in &page.items {
        if !item.key.as_str().starts_with(&asked.prefix) {
            return Err(format!("{:?} does not start with the prefix", item.key));
        }
        if item.value.store_now != page.store_now {
            return Err("an item with another storeNow than its page".to_owned());
        }
        if asked.cursor.is_none() {
            live(item.value.expires_at, page.store_now)?;
        }
    }
    let items = page.items.into_iter().map(|item| {
        let mut fields = Val::fields([("key", Val::text(item.key.as_str())), ("bytes", Val::Bytes(item.value.bytes))]);
        record(&mut fields, &item.value.version, item.value.expires_at);
        fields
    });
    let mut fields =
        Val::fields([("kind", Val::text("page")), ("items", Val::List(items.collect())), ("storeNow", time(page.store_now))]);
    if let (Val::Fields(fields), Some(cursor)) = (&mut fields, page.next_cursor) {
        fields.insert("nextCursor".to_owned(), Val::text(cursor.as_str()));
    }
    Ok(fields)
}

async fn scan_all(store: LocationStore, mut request: ScanRequest) -> Result<Val, Fault> {
    let mut all = Vec::new();
    let mut pages = 0;
    let mut first = None;
    let mut last_key: Option<Key> = None;
    loop {
        let page = match store.scan(request.clone()).await {
            Ok(ScanResult::Page(page)) => page,
            Ok(ScanResult::Expired) => return Ok(Val::fields([("kind", Val::text("expired"))])),
            Err(error) => return Ok(error_result(&error)),
        };
        pages += 1;
        let store_now = *first.get_or_insert(page.store_now);
        if let (Some(last), Some(next)) = (&last_key, page.items.first())
            && last.as_bytes() >= next.key.as_bytes()
        {
            return Err("pages out of order".to_owned());
        }
        last_key = page.items.last().map(|item| item.key.clone());
        let next = page.next_cursor.clone();
        if let Val::Fields(mut fields) = page_result(page, &request)?
            && let Some(Val::List(items)) = fields.remove("items")
        {
            all.extend(items);
        }
        match next {
            Some(cursor) => request = request.after(cursor),
            None => {
                return Ok(Val::fields([
                    ("kind", Val::text("all")),
                    ("items", Val::List(all)),
                    ("pages", Val::Number(pages)),
                    ("storeNow", time(store_now)),
                ]));
            }
        }
    }
}

fn blob_put_result(result: BlobPutResult) -> Result<Val, Fault> {
    Ok(match result {
        BlobPutResult::Stored { expires_at, store_now } => {
            Val::fields([("kind", Val::text("stored")), ("expiresAt", time(expires_at)), ("storeNow", time(store_now))])
        }
        BlobPutResult::AlreadyStored { expires_at, store_now } => {
            live(Some(expires_at), store_now)?;
            Val::fields([("kind", Val::text("alreadyStored")), ("expiresAt", time(expires_at)), ("storeNow", time(store_now))])
        }
        BlobPutResult::Conflict { store_now } => Val::fields([("kind", Val::text("conflict")), ("storeNow", time(store_now))]),
    })
}

fn blob_read_result(result: BlobReadResult) -> Result<Val, Fault> {
    Ok(match result {
        BlobReadResult::Missing { store_now } => Val::fields([("kind", Val::text("missing")), ("storeNow", time(store_now))]),
        BlobReadResult::Found { bytes, expires_at, store_now } => {
            live(Some(expires_at), store_now)?;
            Val::fields([
                ("kind", Val::text("found")),
                ("bytes", Val::Bytes(bytes)),
                ("expiresAt", time(expires_at)),
                ("storeNow", time(store_now)),
            ])
        }
    })
}

fn blob_renew_result(result: BlobRenewResult) -> Result<Val, Fault> {
    Ok(match result {
        BlobRenewResult::Missing { store_now } => Val::fields([("kind", Val::text("missing")), ("storeNow", time(store_now))]),
        BlobRenewResult::Renewed { expires_at, store_now } => {
            Val::fields([("kind", Val::text("renewed")), ("expiresAt", time(expires_at)), ("storeNow", time(store_now))])
        }
    })
}
