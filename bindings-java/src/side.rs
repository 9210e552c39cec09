//! The native side of the class loader that loaded this library (a second one loads a copy, with statics of its own).

use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use zlink_store::packed::wire::HEADER;
use zlink_store::packed::{Bridge, Dialect};

use crate::bell::Bell;

/// A byte string of at least this size goes by itself, copied once; for a smaller one another copy costs less than a crossing.
const KEEP_FROM: usize = 4 * 1_024;
/// What every array that Java collects into has room for.
const LARGEST_RECORD: usize = 32 * 1_024;

pub(crate) static SIDE: LazyLock<Side> = LazyLock::new(|| Side {
    bridge: Bridge::new(Dialect { keep_from: KEEP_FROM, largest_record: LARGEST_RECORD, retention: "retention" }, || BELL.ring()),
    collected: Mutex::default(),
});

static BELL: LazyLock<Bell> = LazyLock::new(Bell::default);

pub(crate) struct Side {
    pub(crate) bridge: Bridge,
    collected: Mutex<Collected>,
}

/// Records that left the mailbox and have not all been handed to Java.
#[derive(Default)]
struct Collected {
    batch: Vec<u8>,
    handed: usize,
}

impl Side {
    /// Waits for records and hands whole ones over, as many as `room` has place for. Zero: nudged, or out of patience.
    pub(crate) fn collect<E>(
        &self,
        room: usize,
        patience: Option<Duration>,
        hand: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        loop {
            let mut collected = self.collected.lock();
            let Collected { batch, handed } = &mut *collected;
            if *handed == batch.len() {
                self.bridge.collect(batch);
                *handed = 0;
            }
            let waiting = batch.get(*handed..).unwrap_or_default();
            if !waiting.is_empty() {
                let length = whole_records(waiting, room);
                hand(&waiting[..length])?;
                *handed += length;
                return Ok(length);
            }
            drop(collected);
            if !BELL.wait(patience) {
                return Ok(0);
            }
        }
    }

    /// Makes the thread that collects come back.
    pub(crate) fn nudge(&self) {
        BELL.nudge();
    }
}

/// The length of the whole records at the beginning of `records` that `room` has place for.
fn whole_records(records: &[u8], room: usize) -> usize {
    if records.len() <= room {
        return records.len();
    }
    let mut length = 0;
    while let Some(word) = records[length..].get(HEADER - 4..).and_then(<[u8]>::first_chunk) {
        let next = length + u32::from_le_bytes(*word) as usize;
        if next > room {
            break;
        }
        length = next;
    }
    length
}
