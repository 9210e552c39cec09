//! Results of a store as plain fields, and what is checked of every one of them.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobRenewResult, Error, Key, LocationStore, ReadResult, ScanPage, ScanRequest, ScanResult,
    StoreTime, Version, WriteResult, limits,
};

use super::value::{Fault, Val};

/// Every version that a put of the scenario got.
pub(crate) type Versions = Arc<Mutex<HashSet<String>>>;

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

pub(crate) fn read_result(result: ReadResult) -> Result<Val, Fault> {
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

pub(crate) fn write_result(result: WriteResult, puts: &[String], versions: &Versions) -> Result<Val, Fault> {
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

pub(crate) fn page_result(page: ScanPage, asked: &ScanRequest) -> Result<Val, Fault> {
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

pub(crate) async fn scan_all(store: LocationStore, mut request: ScanRequest) -> Result<Val, Fault> {
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

pub(crate) fn blob_put_result(result: BlobPutResult) -> Result<Val, Fault> {
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

pub(crate) fn blob_read_result(result: BlobReadResult) -> Result<Val, Fault> {
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

pub(crate) fn blob_renew_result(result: BlobRenewResult) -> Result<Val, Fault> {
    Ok(match result {
        BlobRenewResult::Missing { store_now } => Val::fields([("kind", Val::text("missing")), ("storeNow", time(store_now))]),
        BlobRenewResult::Renewed { expires_at, store_now } => {
            Val::fields([("kind", Val::text("renewed")), ("expiresAt", time(expires_at)), ("storeNow", time(store_now))])
        }
    })
}
