//! What a disk holds after a power cut: what was synced, and none, all or some of the rest.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::trace::Call;

/// The calls that this module has to know of.
pub const CALLS: &str = "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat";

/// How fjall makes a journal: so long, and empty.
const EMPTY_JOURNAL: i64 = 64 * 1_024 * 1_024;
/// What a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// What became durable, by a trace.
#[derive(Debug, Default)]
pub struct Durable {
    files: HashMap<PathBuf, Extent>,
    /// Created or renamed, and the folder was not synced since.
    fresh: HashSet<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    written: u64,
    synced: u64,
}

impl Durable {
    /// Follows a trace of a process that began with an empty folder and appends to its files only.
    ///
    /// # Panics
    /// If the trace shows a call that appends nothing.
    pub fn follow(calls: &[Call]) -> Self {
        let mut points: Vec<_> = calls.iter().flat_map(|call| [(call.began, false, call), (call.ended, true, call)]).collect();
        points.sort_by_key(|(line, ended, _)| (*line, *ended));
        let mut durable = Self::default();
        let mut syncing: HashMap<usize, (u64, HashSet<PathBuf>)> = HashMap::new();
        for (_, ended, call) in points {
            match (&call.name[..], call.file(), ended) {
                ("fsync" | "fdatasync", Some(path), false) => {
                    let fresh = durable.fresh.iter().filter(|fresh| fresh.parent() == Some(&path)).cloned().collect();
                    syncing.insert(call.began, (durable.extent(&path).written, fresh));
                }
                ("fsync" | "fdatasync", Some(path), true) if call.succeeded() => {
                    let Some((written, fresh)) = syncing.remove(&call.began) else { continue };
                    let extent = durable.extent(&path);
                    extent.synced = extent.synced.max(written.min(extent.written));
                    durable.fresh.retain(|path| !fresh.contains(path));
                }
                (_, path, true) if call.succeeded() => durable.apply(call, path),
                _ => {}
            }
        }
        durable
    }

    fn apply(&mut self, call: &Call, path: Option<PathBuf>) {
        let result = call.result.unwrap_or_default();
        match (&call.name[..], path) {
            ("write", Some(path)) => self.extent(&path).written += result.unsigned_abs(),
            ("pwrite64" | "writev", Some(path)) => panic!("{} to {}", call.name, path.display()),
            ("ftruncate", Some(path)) => {
                let length = call.arguments.rsplit(", ").next().and_then(|length| length.parse().ok());
                let length: i64 = length.unwrap_or_else(|| panic!("ftruncate({})", call.arguments));
                if length != EMPTY_JOURNAL {
                    let length = length.unsigned_abs();
                    let extent = self.extent(&path);
                    *extent = Extent { written: length, synced: extent.synced.min(length) };
                }
            }
            ("openat", _) if call.arguments.contains("O_EXCL") || call.arguments.contains("O_TRUNC") => {
                if let [path] = call.texts()[..] {
                    self.files.insert(path.into(), Extent::default());
                    self.fresh.insert(path.into());
                }
            }
            ("rename" | "renameat" | "renameat2", _) => {
                if let [old, new] = call.texts()[..] {
                    self.renamed(Path::new(old), Path::new(new));
                }
            }
            ("unlink" | "unlinkat", _) => {
                if let [path] = call.texts()[..] {
                    self.files.remove(Path::new(path));
                    self.fresh.remove(Path::new(path));
                }
            }
            _ => {}
        }
    }

    fn renamed(&mut self, old: &Path, new: &Path) {
        let moved = |path: PathBuf| match path.strip_prefix(old) {
            Ok(rest) if rest.as_os_str().is_empty() => new.to_owned(),
            Ok(rest) => new.join(rest),
            Err(_) => path,
        };
        self.files = std::mem::take(&mut self.files).into_iter().map(|(path, extent)| (moved(path), extent)).collect();
        self.fresh = std::mem::take(&mut self.fresh).into_iter().map(moved).collect();
        // A rename over another file takes effect at once here: the file before it is gone and cannot be brought back.
        self.fresh.remove(new);
    }

    fn extent(&mut self, path: &Path) -> &mut Extent {
        self.files.entry(path.to_owned()).or_default()
    }

    /// Cuts `copy`, a copy of `folder`, back to what was synced. Of what came after, sectors that `survives` chooses are there
    /// too. How many bytes were cut off is returned.
    ///
    /// # Errors
    /// If the copy cannot be changed.
    pub fn cut_back(&self, folder: &Path, copy: &Path, mut survives: impl FnMut() -> bool) -> io::Result<u64> {
        let mut cut = 0;
        for (path, extent) in &self.files {
            let Ok(inside) = path.strip_prefix(folder) else { continue };
            let file = copy.join(inside);
            if !file.is_file() {
                continue;
            }
            if self.fresh.contains(path) && extent.synced == 0 {
                fs::remove_file(&file)?;
                continue;
            }
            if extent.synced == extent.written {
                continue;
            }
            cut += extent.written - extent.synced;
            let bytes = fs::read(&file)?;
            let mut changed = OpenOptions::new().write(true).open(&file)?;
            let mut at = extent.synced;
            // A file that was made long beforehand keeps its length; another ends where its last sector that is there does.
            let mut length = if bytes.len() as u64 > extent.written { bytes.len() as u64 } else { extent.synced };
            while at < extent.written {
                let end = extent.written.min((at / SECTOR + 1) * SECTOR);
                changed.seek(SeekFrom::Start(at))?;
                if survives() {
                    length = length.max(end);
                } else {
                    changed.write_all(&vec![0; usize::try_from(end - at).unwrap_or(0)])?;
                }
                at = end;
            }
            changed.set_len(length)?;
        }
        Ok(cut)
    }
}

/// Copies a folder.
///
/// # Errors
/// If it cannot be read, or the copy not be written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        } else {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
