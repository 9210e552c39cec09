//! The embedded engine (spec: embedded.md): one store logic over two storages, memory and file.

use std::path::Path;
use std::sync::Arc;

use super::{LocationEngine, RelocationEngine};
use crate::contract::{Error, KeyPrefix};

/// A Location Store in memory: private (`None`) or shared by name in the process.
pub(crate) fn memory_location(name: Option<&str>, prefix: &KeyPrefix) -> Result<Arc<dyn LocationEngine>, Error> {
    let _ = (name, prefix);
    Err(Error::internal("being built"))
}

/// A Relocation Store in memory.
pub(crate) fn memory_relocation(name: Option<&str>, prefix: &KeyPrefix) -> Result<Arc<dyn RelocationEngine>, Error> {
    let _ = (name, prefix);
    Err(Error::internal("being built"))
}

/// A Location Store in a folder.
pub(crate) fn file_location(path: &Path, prefix: &KeyPrefix) -> Result<Arc<dyn LocationEngine>, Error> {
    let _ = (path, prefix);
    Err(Error::internal("being built"))
}

/// A Relocation Store in a folder.
pub(crate) fn file_relocation(path: &Path, prefix: &KeyPrefix) -> Result<Arc<dyn RelocationEngine>, Error> {
    let _ = (path, prefix);
    Err(Error::internal("being built"))
}
