//! What a client checks of the snapshots that it reads.

use std::collections::HashMap;

use zlink_store::{Key, ScanItem, ScanRequest, ScanResult};

use super::Asked;
use super::location::Client;
use super::registers::{Purpose, Register, TOTAL};
use crate::linear::State;
use crate::verdict::Problem;

/// One snapshot, or as much of it as was read.
pub(super) struct Scanned {
    begun: u64,
    ended: u64,
    items: Vec<ScanItem>,
    complete: bool,
}

impl Client {
    /// Reads a whole snapshot, and now and then only its first pages.
    pub(super) async fn scan(&mut self, prefix: &str) {
        let limit = self.random.u32(3..=40);
        let pages = if self.random.u8(..10) == 0 { self.random.usize(1..3) } else { usize::MAX };
        if let Some(scanned) = self.pages(prefix, limit, pages).await {
            self.scanned(prefix, &scanned);
        }
    }

    pub(super) async fn pages(&self, prefix: &str, limit: u32, most: usize) -> Option<Scanned> {
        let at = &self.at;
        let mut request = ScanRequest::new(prefix, limit);
        let mut scanned = None::<Scanned>;
        for _ in 0..most {
            let Asked { begun, ended, answer } = at.ask("a scan", self.store.scan(request.clone())).await;
            let page = match answer {
                Ok(ScanResult::Page(page)) => page,
                Ok(ScanResult::Expired) => {
                    // A failover that loses something may lose a snapshot.
                    if at.history.with(|log| log.window.is_none()) {
                        at.history.problem(Problem::Expired, format!("a scan of {prefix:?}"));
                    }
                    break;
                }
                Err(_) => break,
            };
            at.history.with(|log| log.counts.read += 1);
            let scanned = scanned.get_or_insert(Scanned { begun, ended, items: Vec::new(), complete: false });
            scanned.items.extend(page.items);
            match page.next_cursor {
                Some(cursor) => request = ScanRequest::new(prefix, limit).after(cursor),
                None => {
                    scanned.complete = true;
                    break;
                }
            }
        }
        scanned
    }

    /// Checks a snapshot: it is one look at every register.
    pub(super) fn scanned(&self, prefix: &str, scanned: &Scanned) {
        let Scanned { begun, ended, items, complete } = scanned;
        let mut found = HashMap::new();
        let mut total = 0;
        for pair in items.windows(2) {
            if pair[0].key >= pair[1].key {
                self.at.history.problem(Problem::Wrong, format!("a scan shows {:?} before {:?}", pair[0].key, pair[1].key));
            }
        }
        for ScanItem { key, value } in items {
            let Some((register, place)) = self.at.registers.place(key) else { continue };
            let Some(said) = self.look(register, key, &value.bytes, &value.version, value.expires_at) else { return };
            if self.at.registers.all[register].purpose == Purpose::Account {
                total += said.number;
            }
            found.insert((register, place), said.id);
        }
        let last = items.last().map(|item| &item.key);
        for (register, Register { keys, name, .. }) in self.at.registers.all.iter().enumerate() {
            let whole = |key: &Key| key.as_str().starts_with(prefix) && (*complete || Some(key) <= last);
            if !keys.iter().all(whole) {
                continue;
            }
            let states: Vec<State> = (0..keys.len()).map(|place| found.get(&(register, place)).copied()).collect();
            if states.iter().any(|state| *state != states[0]) {
                self.at.history.problem(Problem::Torn, format!("a scan shows {name} as {states:?}"));
                continue;
            }
            self.saw(register, states[0], *begun, *ended);
        }
        if *complete && (prefix.is_empty() || prefix == "bank/") && total != TOTAL {
            self.at.history.problem(Problem::Torn, format!("a scan shows {total} in the bank instead of {TOTAL}"));
        }
    }
}
