//! What a store has counted.

use std::collections::HashMap;

/// Counters of one store since it was made, as a plain snapshot.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Stats {
    /// Operations begun, by kind (`read`, `write` …).
    pub operations: HashMap<String, u64>,
    /// Failures, by code; codes that never came are left out.
    pub errors: HashMap<String, u64>,
    /// Finished operations by latency: entry `i` counts those that took at least 2^i and under 2^(i+1) microseconds (entry 0 also
    /// those under 1 µs).
    pub latency_us_log2: Vec<u64>,
    /// Operations under way.
    pub in_flight: u64,
    /// Connections made again after a loss (shared by the stores on one connection).
    pub reconnects: u64,
    /// Commands sent to the server (shared by the stores on one connection).
    pub commands_sent: u64,
}

impl From<zlink_store::StoreStats> for Stats {
    fn from(stats: zlink_store::StoreStats) -> Self {
        Self {
            operations: stats.operations.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            errors: stats.errors.iter().map(|(code, count)| (code.as_str().to_owned(), *count)).collect(),
            latency_us_log2: stats.latency_us_log2,
            in_flight: stats.in_flight as u64,
            reconnects: stats.reconnects,
            commands_sent: stats.commands_sent,
        }
    }
}
