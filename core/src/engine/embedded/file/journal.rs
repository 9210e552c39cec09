//! fjall's journal files, where fjall itself leaves something to do.
//!
//! A journal is a row of batches: a start (tag 1, items, sequence number), the items (tag 2; 4 clears a keyspace) and an end
//! (tag 3, a checksum over the items, four magic bytes). fjall cuts off a last batch that breaks off, but will not open a
//! journal with a batch that is there to its end and has a wrong checksum. A power cut can leave that too, when the pages of a
//! batch that was being written reached the disk out of order. Such a batch was never acknowledged, and nothing follows it.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::disk;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: &[u8] = b"FJL\x03";

/// Writes every journal anew and syncs it. After a failed sync the operating system may show bytes that are not on the disk
/// and never will be: what is read from such a file, and built upon, could be gone after the next power cut.
pub(super) fn write_anew(data: &Path) -> io::Result<()> {
    for (_, path) in journals(data)? {
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            disk::write_whole(data, name, &fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// Cuts a torn batch off the newest journal. `false` if that is not what is wrong with it: then it is left as it is.
pub(super) fn cut_off_torn_batch(data: &Path) -> io::Result<bool> {
    let Some((_, path)) = journals(data)?.pop() else { return Ok(false) };
    let journal = fs::read(&path)?;
    let Some(torn) = torn_batch(&journal) else { return Ok(false) };
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(u64::try_from(torn).unwrap_or(u64::MAX))?;
    file.sync_all()?;
    Ok(true)
}

/// The journals by their numbers, the oldest first.
fn journals(data: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jnl"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            journals.push((number, path));
        }
    }
    journals.sort_unstable();
    Ok(journals)
}

/// Where the last batch starts, if its checksum is wrong and no other batch ends behind it.
fn torn_batch(journal: &[u8]) -> Option<usize> {
    let mut rest = journal;
    loop {
        let (checksum, items, after) = batch(rest)?;
        if xxh3_64(items) == checksum {
            rest = after;
            continue;
        }
        let another = after.windows(1 + 8 + MAGIC.len()).any(|end| end[0] == END && end.ends_with(MAGIC));
        return (!another).then(|| journal.len() - rest.len());
    }
}

/// The next batch: its checksum, its items, and what follows it. `None` where it breaks off.
fn batch(journal: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (count, items) = tagged(journal, START)?.split_first_chunk::<4>()?;
    let (_sequence, items) = items.split_first_chunk::<8>()?;
    let mut rest = items;
    for _ in 0..u32::from_le_bytes(*count) {
        rest = item(rest)?;
    }
    let (checksum, after) = tagged(rest, END)?.split_first_chunk::<8>()?;
    let after = after.strip_prefix(MAGIC)?;
    let items = items.get(..items.len() - rest.len())?;
    Some((u64::from_le_bytes(*checksum), items, after))
}

/// What follows the next item.
fn item(journal: &[u8]) -> Option<&[u8]> {
    if let Some(clear) = tagged(journal, CLEAR) {
        return clear.get(8..);
    }
    // Kind and compression (a byte each: nothing is compressed), the keyspace's number, then three lengths.
    let (_, lengths) = tagged(journal, ITEM)?.split_at_checked(1 + 1 + 8)?;
    let (key, lengths) = lengths.split_first_chunk::<2>()?;
    let (_uncompressed, lengths) = lengths.split_first_chunk::<4>()?;
    let (value, rest) = lengths.split_first_chunk::<4>()?;
    let length = usize::from(u16::from_le_bytes(*key)) + usize::try_from(u32::from_le_bytes(*value)).ok()?;
    rest.get(length..)
}

fn tagged(journal: &[u8], tag: u8) -> Option<&[u8]> {
    journal.strip_prefix(&[tag])
}
