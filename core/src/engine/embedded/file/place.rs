//! A folder and who has it: one engine in this process, nobody in another.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::FileStorage;
use super::disk;
use crate::contract::{Code, Error, Outcome};
use crate::engine::embedded::core::Core;

const LOCK: &str = "zlink-store.lock";
const FORMAT: &str = "zlink-store.format";
const FORMAT_BEING_MADE: &str = "zlink-store.format.new";
const FORMAT_NAME: &str = "zlink-store";
const FORMAT_NUMBER: u64 = 1;

/// Every folder that this process has open, by its canonical path.
static PLACES: LazyLock<Mutex<HashMap<PathBuf, Weak<Place>>>> = LazyLock::new(Mutex::default);

/// A folder that is ours as long as this lives.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    /// The engine that has it, if one has; the one before it may still be closing.
    pub(super) engine: Mutex<Weak<Core<FileStorage>>>,
    /// Held by the thread that has the data open.
    pub(super) turn: Mutex<()>,
    /// The operating system lets it go with the file, also when the process is killed.
    _lock: File,
}

/// Guards everything that decides who has a folder.
pub(super) type Registry = MutexGuard<'static, HashMap<PathBuf, Weak<Place>>>;

pub(super) fn registry() -> Registry {
    PLACES.lock()
}

/// The place at `path`; the folder is made if it is missing.
pub(super) fn at(registry: &mut Registry, path: &Path) -> Result<Arc<Place>, Error> {
    let folder = make_folder(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Error::argument("path", "must not have a NUL in it"),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => foreign(path, "it is no folder"),
        _ => disk::failed(&error, &format!("making or finding the folder {}", path.display())),
    })?;
    if let Some(place) = registry.get(&folder).and_then(Weak::upgrade) {
        return Ok(place);
    }
    registry.retain(|_, place| place.strong_count() > 0);
    let place = Arc::new(claim(folder.clone())?);
    registry.insert(folder, Arc::downgrade(&place));
    Ok(place)
}

fn make_folder(path: &Path) -> io::Result<PathBuf> {
    let new = !path.try_exists()?;
    fs::create_dir_all(path)?;
    let folder = path.canonicalize()?;
    if new && let Some(parent) = folder.parent() {
        disk::sync_folder(parent)?;
    }
    if fs::metadata(&folder)?.is_dir() { Ok(folder) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Takes the folder, or says why not; a folder that is not ours is left as it is.
fn claim(folder: PathBuf) -> Result<Place, Error> {
    let trouble = |error: io::Error| disk::failed(&error, &format!("opening the folder {}", folder.display()));
    if !is_ours(&folder).map_err(trouble)? {
        return Err(foreign(&folder, "it holds something else"));
    }
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK)).map_err(trouble)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let said = format!(
                "the folder {} is in use by another process, or by another copy of this library in this one",
                folder.display()
            );
            return Err(Error::new(Code::Unavailable, Outcome::NotApplied, said));
        }
        Err(TryLockError::Error(error)) => return Err(trouble(error)),
    }
    match fs::read(folder.join(FORMAT)) {
        Ok(format) => check_format(&folder, &format)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let format = format!("{FORMAT_NAME} {FORMAT_NUMBER}\n");
            disk::write_whole(&folder, FORMAT, format.as_bytes()).map_err(trouble)?;
        }
        Err(error) => return Err(trouble(error)),
    }
    Ok(Place { folder, engine: Mutex::default(), turn: Mutex::default(), _lock: lock })
}

/// Whether the folder is empty, or was begun or written by us.
fn is_ours(folder: &Path) -> io::Result<bool> {
    let mut only_ours = true;
    for entry in fs::read_dir(folder)? {
        match entry?.file_name().to_str() {
            Some(FORMAT) => return Ok(true),
            // A volume of its own may have a `lost+found`.
            Some(LOCK | FORMAT_BEING_MADE | "lost+found") => {}
            _ => only_ours = false,
        }
    }
    Ok(only_ours)
}

fn check_format(folder: &Path, format: &[u8]) -> Result<(), Error> {
    let number = std::str::from_utf8(format).ok().and_then(|format| format.trim_end().strip_prefix(FORMAT_NAME));
    match number.and_then(|number| number.trim_start().parse::<u64>().ok()) {
        Some(FORMAT_NUMBER) => Ok(()),
        Some(number) => {
            let said = format!(
                "the folder {} has format {number}; this version of the library reads format {FORMAT_NUMBER}",
                folder.display()
            );
            Err(Error::new(Code::Incompatible, Outcome::NotApplied, said))
        }
        None => Err(foreign(folder, "its format file is not ours")),
    }
}

fn foreign(path: &Path, why: &str) -> Error {
    let said = format!("{} cannot be used: {why}; nothing was changed", path.display());
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}
