//! fjall's journal files, where fjall itself leaves something to do.

use std::fs;
use std::io;
use std::path::Path;

use super::disk;

/// Writes every journal anew and syncs it. After a failed sync the operating system may show bytes that are not on the disk
/// and never will be: what is read from such a file, and built upon, could be gone after the next power cut.
pub(super) fn write_anew(data: &Path) -> io::Result<()> {
    for entry in fs::read_dir(data)? {
        let name = entry?.file_name();
        if let Some(name) = name.to_str()
            && name.ends_with(".jnl")
        {
            disk::write_whole(data, name, &fs::read(data.join(name))?)?;
        }
    }
    Ok(())
}
