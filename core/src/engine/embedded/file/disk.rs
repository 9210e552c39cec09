//! What is asked of the file system, and what its failures mean.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::contract::{Code, Error, Outcome};

/// Writes are refused when less than this is free, so that what was accepted can still be moved from the journal into tables.
pub(super) const RESERVE: u64 = 32 * 1_024 * 1_024;

/// Refuses what does not fit on the disk.
pub(super) fn check_space(folder: &Path, bytes: u64) -> Result<(), Error> {
    let needed = RESERVE.saturating_add(bytes);
    match fs4::available_space(folder) {
        Ok(free) if free < needed => {
            let said = format!("the disk is full: {} MiB must be free, {} MiB are", needed >> 20, free >> 20);
            Err(Error::new(Code::OutOfMemory, Outcome::NotApplied, said))
        }
        // A file system that does not tell is no reason to refuse; the write itself will tell.
        _ => Ok(()),
    }
}

/// An I/O error in the contract's words: nothing was applied.
pub(super) fn failed(error: &io::Error, doing: &str) -> Error {
    Error::new(code(error), Outcome::NotApplied, format!("{doing} failed: {error}"))
}

/// The same for the database.
pub(super) fn database_failed(error: &fjall::Error, doing: &str) -> Error {
    use fjall::Error as E;
    match error {
        E::Io(error) | E::Storage(fjall::LsmError::Io(error)) => failed(error, doing),
        E::InvalidVersion(_) => {
            let said = format!("{doing} failed: the data were written by another version of the storage");
            Error::new(Code::Incompatible, Outcome::NotApplied, said)
        }
        E::Poisoned => Error::new(Code::Unavailable, Outcome::NotApplied, format!("{doing} failed: an earlier write failed")),
        E::Locked => Error::new(Code::Unavailable, Outcome::NotApplied, format!("{doing} failed: it is in use")),
        other => Error::new(Code::Internal, Outcome::NotApplied, format!("{doing} failed: a file is damaged ({other:?})")),
    }
}

fn code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Code::OutOfMemory,
        _ => Code::Unavailable,
    }
}

/// Whether the folder can be written to durably.
pub(super) fn probe(folder: &Path) -> Result<(), Error> {
    check_space(folder, 0)?;
    let path = folder.join("probe");
    let written = || -> io::Result<()> {
        let mut file = File::create(&path)?;
        file.write_all(&[0; 64 * 1_024])?;
        file.sync_all()
    };
    let result = written();
    let _ = fs::remove_file(&path);
    result.map_err(|error| failed(&error, "a trial write"))
}

/// Writes a whole file so that it is there whole or not at all.
pub(super) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.new"));
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(name))?;
    sync_folder(folder)
}

/// Makes what was created, renamed or removed in `folder` durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Windows has no such thing, and needs none.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// The same for `folder` and every folder below it.
pub(super) fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}
