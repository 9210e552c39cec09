//! Counters of one store, and a plain snapshot of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::contract::Code;

/// Kinds of operations that are counted apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    Scan,
    Put,
    Renew,
    Delete,
    Ping,
    Acquire,
    Attach,
    Release,
}

const KINDS: [&str; 10] = ["read", "write", "scan", "put", "renew", "delete", "ping", "acquire", "attach", "release"];
const BUCKETS: usize = 32;

/// What a store has counted since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Operations begun, by kind (`read`, `write` …).
    pub operations: Vec<(&'static str, u64)>,
    /// Failures, by code; codes that never came are left out.
    pub errors: Vec<(Code, u64)>,
    /// Finished operations by latency: entry `i` counts those that took at least 2^i and under 2^(i+1) microseconds (entry 0 also those under 1 µs).
    pub latency_us_log2: Vec<u64>,
    /// Operations under way.
    pub in_flight: usize,
    /// Connections made again after a loss, at another server too (shared by the stores on one connection).
    pub reconnects: u64,
    /// Commands sent to the server (shared by the stores on one connection).
    pub commands_sent: u64,
}

/// What an engine counts.
#[derive(Debug, Default)]
pub(crate) struct EngineCounters {
    pub(crate) reconnects: AtomicU64,
    pub(crate) commands_sent: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    operations: [AtomicU64; KINDS.len()],
    errors: [AtomicU64; Code::ALL.len()],
    latency: [AtomicU64; BUCKETS],
    pub(super) in_flight: AtomicUsize,
}

impl Counters {
    pub(super) fn begun(&self, kind: Kind) {
        self.operations[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn finished(&self, took: Duration, failed: Option<Code>) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        self.latency[(micros.ilog2() as usize).min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        if let Some(index) = failed.and_then(|code| Code::ALL.iter().position(|other| *other == code)) {
            self.errors[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn snapshot(&self, engine: Option<&EngineCounters>) -> StoreStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreStats {
            operations: KINDS.iter().copied().zip(self.operations.iter().map(read)).collect(),
            errors: Code::ALL.into_iter().zip(self.errors.iter().map(read)).filter(|(_, count)| *count > 0).collect(),
            latency_us_log2: self.latency.iter().map(read).collect(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            reconnects: engine.map_or(0, |engine| read(&engine.reconnects)),
            commands_sent: engine.map_or(0, |engine| read(&engine.commands_sent)),
        }
    }
}
