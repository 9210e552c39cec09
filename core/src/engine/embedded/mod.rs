//! The embedded engine (spec: embedded.md): one store logic over two storages, memory and file.

mod core;
mod expiry;
mod file;
mod location;
mod memory;
mod name;
mod project;
mod record;
mod relocation;
mod snapshots;
mod storage;
#[cfg(test)]
mod tests;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::{project::fuzz as fuzz_project, record::fuzz as fuzz_record};

use std::path::Path;
use std::sync::Arc;

use self::core::Store;
use self::record::Scope;
use super::{LocationEngine, ProjectEngine, RelocationEngine};
use crate::ambient;
use crate::contract::{Error, KeyPrefix, ProjectId};

/// A Location Store in memory: private (`None`) or shared by name in the process.
pub(crate) fn memory_location(name: Option<&str>, prefix: &KeyPrefix) -> Arc<dyn LocationEngine> {
    Arc::new(Store::new(memory::open(name), Scope::new(prefix.as_str())))
}

/// A Relocation Store in memory.
pub(crate) fn memory_relocation(name: Option<&str>, prefix: &KeyPrefix) -> Arc<dyn RelocationEngine> {
    Arc::new(Store::new(memory::open(name), Scope::new(prefix.as_str())))
}

/// A Location Store in a folder.
pub(crate) fn file_location(path: &Path, prefix: &KeyPrefix) -> Result<Arc<dyn LocationEngine>, Error> {
    let core = file::open(path, ambient::system())?;
    Ok(Arc::new(Store::new(core, Scope::new(prefix.as_str()))))
}

/// A Relocation Store in a folder.
pub(crate) fn file_relocation(path: &Path, prefix: &KeyPrefix) -> Result<Arc<dyn RelocationEngine>, Error> {
    let core = file::open(path, ambient::system())?;
    Ok(Arc::new(Store::new(core, Scope::new(prefix.as_str()))))
}

/// A project's state and locks in memory.
pub(crate) fn memory_project(name: Option<&str>, id: &ProjectId) -> Arc<dyn ProjectEngine> {
    Arc::new(Store::new(memory::open(name), project::Scope::new(id)))
}

/// A project's state and locks in a folder.
pub(crate) fn file_project(path: &Path, id: &ProjectId) -> Result<Arc<dyn ProjectEngine>, Error> {
    Ok(Arc::new(Store::new(file::open(path, ambient::system())?, project::Scope::new(id))))
}
