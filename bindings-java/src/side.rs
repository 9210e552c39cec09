//! The native side of the class loader that loaded this library (a second one loads a copy, with statics of its own).

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
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
    bridge: Bridge::new(Dialect { keep_from: KEEP_FROM, largest_record: LARGEST_RECORD, retention: "retention" }, wake),
    collected: Mutex::default(),
});

static BELL: LazyLock<Bell> = LazyLock::new(Bell::default);
/// Rung in its place while somebody waits in [`Side::collect_now`].
static HELPERS_BELL: LazyLock<Bell> = LazyLock::new(Bell::default);
static HELPER_WAITS: AtomicBool = AtomicBool::new(false);

fn wake() {
    if HELPER_WAITS.load(Ordering::SeqCst) { HELPERS_BELL.ring() } else { BELL.ring() }
}

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
        mut hand: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        loop {
            let length = self.hand_over(room, &mut hand, Bridge::collect)?;
            if length > 0 {
                return Ok(length);
            }
            if !BELL.wait(patience) {
                // The bell does not ring for what another thread was to collect.
                return self.hand_over(room, &mut hand, Bridge::collect);
            }
        }
    }

    /// Hands over what is there or comes before the end of `patience`, to a thread that then comes back for more, or says that it
    /// does not: see [`left`](Self::left). Until then nobody is woken.
    pub(crate) fn collect_now<E>(
        &self,
        room: usize,
        patience: Duration,
        mut hand: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let length = self.hand_over(room, &mut hand, Bridge::collect_and_come_back)?;
        if length > 0 || patience.is_zero() {
            return Ok(length);
        }
        HELPER_WAITS.store(true, Ordering::SeqCst);
        self.bridge.left();
        HELPERS_BELL.wait(Some(patience));
        HELPER_WAITS.store(false, Ordering::SeqCst);
        self.hand_over(room, &mut hand, Bridge::collect_and_come_back)
    }

    /// The thread of [`collect_now`](Self::collect_now) does not come back.
    pub(crate) fn left(&self) {
        self.bridge.left();
        let collected = self.collected.lock();
        if collected.handed < collected.batch.len() {
            BELL.ring();
        }
    }

    fn hand_over<E>(
        &self,
        room: usize,
        hand: &mut impl FnMut(&[u8]) -> Result<(), E>,
        collect: fn(&Bridge, &mut Vec<u8>),
    ) -> Result<usize, E> {
        let mut collected = self.collected.lock();
        let Collected { batch, handed } = &mut *collected;
        if *handed == batch.len() {
            *handed = 0;
            collect(&self.bridge, batch);
        }
        let waiting = batch.get(*handed..).unwrap_or_default();
        if waiting.is_empty() {
            return Ok(0);
        }
        let length = whole_records(waiting, room);
        hand(&waiting[..length])?;
        *handed += length;
        Ok(length)
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
