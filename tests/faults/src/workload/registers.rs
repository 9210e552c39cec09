//! What the clients of Location Stores write: registers of one key, and of several keys that are always put and deleted together.

use std::collections::HashMap;

use zlink_store::Key;

/// What all accounts hold together.
pub(super) const TOTAL: u64 = ACCOUNTS as u64 * OPENING;
/// What each account holds at first.
pub(super) const OPENING: u64 = 1_000;
const ACCOUNTS: usize = 6;

/// What a register is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Put, replaced, created and deleted by everybody.
    Free,
    /// A number that only rises, by one at a time.
    Counter,
    /// A part of what is moved to and fro and never becomes more or less.
    Account,
}

#[derive(Debug)]
pub(super) struct Register {
    pub(super) name: String,
    pub(super) purpose: Purpose,
    pub(super) keys: Vec<Key>,
    /// Bytes of padding.
    pub(super) size: usize,
}

#[derive(Debug)]
pub(super) struct Registers {
    pub(super) all: Vec<Register>,
    by_key: HashMap<Key, (usize, usize)>,
}

impl Registers {
    pub(super) fn new() -> Self {
        let one = |name: String, purpose, size| {
            let keys = vec![Key::new(name.as_str()).expect("a legal key")];
            Register { name, purpose, keys, size }
        };
        let mut all = Vec::new();
        for (number, size) in [10, 10, 200, 2_000, 20_000].into_iter().enumerate() {
            all.push(one(format!("plain/{number}"), Purpose::Free, size));
        }
        for (number, size, keys) in [(0, 10, 2), (1, 500, 8), (2, 20_000, 3)] {
            let name = format!("group/{number}/");
            let keys = (0..keys).map(|key| Key::new(format!("{name}{key}")).expect("a legal key")).collect();
            all.push(Register { name, purpose: Purpose::Free, keys, size });
        }
        all.extend((0..2).map(|number| one(format!("counter/{number}"), Purpose::Counter, 10)));
        all.extend((0..ACCOUNTS).map(|number| one(format!("bank/{number}"), Purpose::Account, 10)));
        let places = all.iter().enumerate().flat_map(|(register, Register { keys, .. })| {
            keys.iter().cloned().enumerate().map(move |(place, key)| (key, (register, place)))
        });
        let by_key = places.collect();
        Self { all, by_key }
    }

    /// The register of a key, and the key's place in it.
    pub(super) fn place(&self, key: &Key) -> Option<(usize, usize)> {
        self.by_key.get(key).copied()
    }

    /// The registers for a purpose.
    pub(super) fn of(&self, purpose: Purpose) -> Vec<usize> {
        (0..self.all.len()).filter(|&register| self.all[register].purpose == purpose).collect()
    }
}
