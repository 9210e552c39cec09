//! The forms of requests and results between processes (`tests/interop/README.md`).

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value as Json, json};
use zlink_store::{
    BlobPutResult, BlobReadResult, BlobRenewResult, Condition, Cursor, Error, Key, Mutation, PutVersion, ReadResult, ScanItem,
    ScanPage, ScanRequest, ScanResult, StoreTime, StoredValue, Version, WriteRequest, WriteResult,
};

/// Long lines are slow to read.
const IN_FILE_FROM: usize = 64 * 1_024;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
static FILES: AtomicU64 = AtomicU64::new(0);

pub(super) fn pack(bytes: &Bytes) -> Json {
    if bytes.len() < IN_FILE_FROM {
        return json!(STANDARD.encode(bytes));
    }
    let file = FOLDER.path().join(FILES.fetch_add(1, Ordering::Relaxed).to_string());
    std::fs::write(&file, bytes).expect("a file");
    json!({ "file": file })
}

fn unpack(form: &Json) -> Result<Bytes, Error> {
    if let Some(text) = form.as_str() {
        return STANDARD.decode(text).map(Bytes::from).map_err(|_| strange(form));
    }
    let file = Path::new(form["file"].as_str().ok_or_else(|| strange(form))?);
    let bytes = std::fs::read(file).map_err(|_| strange(form))?;
    std::fs::remove_file(file).map_err(|_| strange(form))?;
    Ok(bytes.into())
}

/// Removes the file of bytes that nobody wants.
pub(super) fn discard(result: &Json) {
    if let Some(file) = result["bytes"]["file"].as_str() {
        let _ = std::fs::remove_file(file);
    }
}

pub(super) fn strange(form: &Json) -> Error {
    Error::internal(format!("a strange answer: {form}"))
}

pub(super) fn number(form: &Json, name: &str) -> Result<u64, Error> {
    form[name].as_u64().ok_or_else(|| strange(form))
}

pub(super) fn time(form: &Json, name: &str) -> Result<StoreTime, Error> {
    number(form, name).map(StoreTime::from_unix_ms)
}

pub(super) fn text<'a>(form: &'a Json, name: &str) -> Result<&'a str, Error> {
    form[name].as_str().ok_or_else(|| strange(form))
}

fn value(form: &Json, store_now: StoreTime) -> Result<StoredValue, Error> {
    Ok(StoredValue {
        bytes: unpack(&form["bytes"])?,
        version: Version::new(text(form, "version")?)?,
        expires_at: form["expiresAt"].as_u64().map(StoreTime::from_unix_ms),
        store_now,
    })
}

pub(super) fn read(form: Json) -> Result<ReadResult, Error> {
    match text(&form, "kind")? {
        "missing" => Ok(ReadResult::Missing { store_now: time(&form, "storeNow")? }),
        _ => Ok(ReadResult::Found(value(&form["value"], time(&form["value"], "storeNow")?)?)),
    }
}

pub(super) fn write(request: &WriteRequest) -> Json {
    let conditions = request.conditions.iter().map(|condition| match condition {
        Condition::Missing { key } => json!({ "kind": "missing", "key": key.as_str() }),
        Condition::Version { key, expected } => {
            json!({ "kind": "version", "key": key.as_str(), "expected": expected.as_str() })
        }
    });
    let mutations = request.mutations.iter().map(|mutation| match mutation {
        Mutation::Delete { key } => json!({ "kind": "delete", "key": key.as_str() }),
        Mutation::Put { key, bytes, retention } => {
            let mut form = json!({ "kind": "put", "key": key.as_str(), "bytes": pack(bytes) });
            if let Some(retention) = retention {
                form["retentionMs"] = json!(retention.as_ms());
            }
            form
        }
    });
    json!({ "conditions": conditions.collect::<Json>(), "mutations": mutations.collect::<Json>() })
}

pub(super) fn written(form: Json) -> Result<WriteResult, Error> {
    let store_now = time(&form, "storeNow")?;
    if text(&form, "kind")? == "conflict" {
        return Ok(WriteResult::Conflict { store_now });
    }
    let versions = form["putVersions"].as_array().into_iter().flatten().map(|put| {
        Ok::<_, Error>(PutVersion { key: Key::new(text(put, "key")?)?, version: Version::new(text(put, "version")?)? })
    });
    Ok(WriteResult::Applied { put_versions: versions.collect::<Result<_, _>>()?, store_now })
}

pub(super) fn scan(request: &ScanRequest) -> Json {
    let mut form = json!({ "prefix": request.prefix, "limit": request.limit });
    if let Some(cursor) = &request.cursor {
        form["cursor"] = json!(cursor.as_str());
    }
    form
}

pub(super) fn scanned(form: Json) -> Result<ScanResult, Error> {
    if text(&form, "kind")? == "expired" {
        return Ok(ScanResult::Expired);
    }
    let store_now = time(&form, "storeNow")?;
    let items =
        form["items"].as_array().into_iter().flatten().map(|item| {
            Ok::<_, Error>(ScanItem { key: Key::new(text(item, "key")?)?, value: value(&item["value"], store_now)? })
        });
    Ok(ScanResult::Page(ScanPage {
        items: items.collect::<Result<_, _>>()?,
        next_cursor: form["nextCursor"].as_str().map(Cursor::new).transpose()?,
        store_now,
    }))
}

pub(super) fn stored(form: Json) -> Result<BlobPutResult, Error> {
    let store_now = time(&form, "storeNow")?;
    Ok(match text(&form, "kind")? {
        "stored" => BlobPutResult::Stored { expires_at: time(&form, "expiresAt")?, store_now },
        "alreadyStored" => BlobPutResult::AlreadyStored { expires_at: time(&form, "expiresAt")?, store_now },
        _ => BlobPutResult::Conflict { store_now },
    })
}

pub(super) fn blob(form: Json) -> Result<BlobReadResult, Error> {
    let store_now = time(&form, "storeNow")?;
    if text(&form, "kind")? == "missing" {
        return Ok(BlobReadResult::Missing { store_now });
    }
    Ok(BlobReadResult::Found { bytes: unpack(&form["bytes"])?, expires_at: time(&form, "expiresAt")?, store_now })
}

pub(super) fn renewed(form: Json) -> Result<BlobRenewResult, Error> {
    let store_now = time(&form, "storeNow")?;
    if text(&form, "kind")? == "missing" {
        return Ok(BlobRenewResult::Missing { store_now });
    }
    Ok(BlobRenewResult::Renewed { expires_at: time(&form, "expiresAt")?, store_now })
}
