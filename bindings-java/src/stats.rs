//! Packs what a store has counted.

use zlink_store::StoreStats;
use zlink_store::packed::wire::{Record, number, tell};

/// Counts by name, latencies, and the rest.
pub(crate) fn pack(stats: &StoreStats) -> Vec<u8> {
    let mut out = Vec::new();
    let mut record = Record::begin(&mut out, tell::OWN, 0, 0);
    let operations: Vec<_> = stats.operations.iter().map(|(kind, count)| (*kind, *count)).collect();
    let errors: Vec<_> = stats.errors.iter().map(|(code, count)| (code.as_str(), *count)).collect();
    for counts in [operations, errors] {
        record.word(length(counts.len()));
        for (name, count) in counts {
            record.string(name.as_bytes()).number(number(count));
        }
    }
    record.word(length(stats.latency_us_log2.len()));
    for count in &stats.latency_us_log2 {
        record.number(number(*count));
    }
    for count in [stats.in_flight as u64, stats.reconnects, stats.commands_sent] {
        record.number(number(count));
    }
    record.end();
    out
}

fn length(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
