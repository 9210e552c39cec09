//! What Java says about a store to be opened.

use std::path::PathBuf;

use bytes::Bytes;
use zlink_store::packed::Store;
use zlink_store::packed::wire::Reader;
use zlink_store::{
    Endpoint, Error, LocationStore, Project, ProjectId, ProjectOptions, RedisConfig, RelocationStore, StoreOptions, limits,
};

const MEMORY: i32 = 0;
const FILE: i32 = 1;

pub(crate) fn open(relocation: bool, place: i32, texts: &Bytes, operation_timeout_ms: i64) -> Result<Store, Error> {
    let mut texts = Reader::new(texts);
    let address = text(&mut texts, if place == FILE { "path" } else { "connectionString" })?;
    let mut options = StoreOptions::with_prefix(text(&mut texts, "keyPrefix")?)?;
    options.operation_timeout_ms = operation_timeout(operation_timeout_ms)?;
    let endpoint = match place {
        MEMORY => Endpoint::Memory(Some(address).filter(|name| !name.is_empty()).map(str::to_owned)),
        FILE => Endpoint::File(PathBuf::from(address)),
        _ => Endpoint::Redis(Box::new(redis(address)?)),
    };
    Ok(if relocation {
        Store::Relocation(RelocationStore::open(endpoint, options)?)
    } else {
        Store::Location(LocationStore::open(endpoint, options)?)
    })
}

/// A project at the URL, of the workspace and with the name that `texts` has.
pub(crate) fn open_project(texts: &Bytes, operation_timeout_ms: i64) -> Result<Store, Error> {
    let mut texts = Reader::new(texts);
    let url = text(&mut texts, "url")?;
    let id = ProjectId::new(text(&mut texts, "workspace")?, text(&mut texts, "project")?)?;
    let options = ProjectOptions::default().with_operation_timeout_ms(operation_timeout(operation_timeout_ms)?);
    Project::open(url, id, options).map(Store::Project)
}

fn operation_timeout(ms: i64) -> Result<u64, Error> {
    u64::try_from(ms).map_err(|_| {
        let said = format!("must be 1..={} ms, got {ms}", limits::MAX_OPERATION_TIMEOUT_MS);
        Error::argument("operationTimeout", said)
    })
}

fn text<'a>(texts: &mut Reader<'a>, argument: &str) -> Result<&'a str, Error> {
    let text = texts.string()?;
    std::str::from_utf8(text).map_err(|_| Error::argument(argument, "must be valid Unicode (no lone surrogate)"))
}

/// A connection string is a URL, or `host:port` alone.
fn redis(text: &str) -> Result<RedisConfig, Error> {
    let parsed = if text.contains("://") { RedisConfig::parse(text) } else { RedisConfig::parse(&format!("redis://{text}")) };
    parsed.map_err(|error| match error.argument_name() {
        Some("url") => {
            let problem = error.message().strip_prefix("url").unwrap_or(error.message()).trim_start();
            Error::argument("connectionString", problem)
        }
        _ => error,
    })
}
