//! Random operations of several clients against a simple model, with scans that go on in between. Every page must show the
//! store as it stood when its scan began. More rounds: `ZLINK_MODEL_ROUNDS=500`; one round: `ZLINK_MODEL_SEED=7`.

use std::collections::BTreeMap;

use super::rig::*;
use crate::LocationStore;
use crate::contract::*;

/// A small generator of random numbers (xorshift), so that a seed is a run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[derive(Clone)]
struct Value {
    bytes: Vec<u8>,
    version: Version,
    expires: Option<StoreTime>,
}

impl Value {
    fn is_live(&self, now: StoreTime) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

type State = BTreeMap<String, Value>;

/// A scan under way: what is still to come.
struct Scan {
    prefix: String,
    limit: u32,
    cursor: Cursor,
    left: Vec<(String, Value)>,
    /// A page that was read, to be asked for again: cursor, its items, the next cursor.
    read: Option<(Cursor, Vec<ScanItem>, Option<Cursor>)>,
}

struct Round {
    dice: Dice,
    stores: Vec<LocationStore>,
    state: State,
    scans: Vec<Scan>,
}

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[tokio::test]
async fn every_page_shows_the_store_as_the_scan_began() {
    let rig = Rig::new().await;
    let seeds = match env("ZLINK_MODEL_SEED") {
        Some(seed) => vec![seed],
        None => (1..=env("ZLINK_MODEL_ROUNDS").unwrap_or(6)).collect(),
    };
    for seed in seeds {
        println!("ZLINK_MODEL_SEED={seed}");
        rig.raw::<()>("FLUSHDB").await;
        let stores = vec![rig.store.clone(), rig.other(), rig.other()];
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut round = Round { dice, stores, state: State::new(), scans: Vec::new() };
        for _ in 0..600 {
            round.step().await;
        }
        while let Some(scan) = round.scans.pop() {
            round.next_page(scan).await;
        }
        nothing_is_left_behind(&rig, &round.state).await;
    }
}

impl Round {
    async fn step(&mut self) {
        match self.dice.below(100) {
            0..40 => self.write().await,
            40..55 => self.read().await,
            55..65 => self.start_scan().await,
            65..98 if !self.scans.is_empty() => {
                let at = self.pick(self.scans.len());
                let scan = self.scans.swap_remove(at);
                if self.dice.below(20) > 0 {
                    self.next_page(scan).await;
                }
            }
            98.. => tokio::time::sleep(std::time::Duration::from_millis(self.dice.below(20))).await,
            _ => {}
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        usize::try_from(self.dice.below(count as u64)).unwrap()
    }

    fn store(&mut self) -> LocationStore {
        let at = self.pick(self.stores.len());
        self.stores[at].clone()
    }

    /// Few keys, so that they are changed again and again; more than a small scan has.
    fn key(&mut self) -> String {
        let kind = ["a", "b", "ba"][self.pick(3)];
        format!("{kind}{:02}", self.dice.below(60))
    }

    fn bytes(&mut self) -> Vec<u8> {
        let size = match self.dice.below(20) {
            0 => 40_000,
            1 => 16_384 - 34,
            2 => 0,
            _ => 20,
        };
        let fill = u8::try_from(self.dice.below(256)).unwrap();
        vec![fill; size]
    }

    async fn write(&mut self) {
        let mut request = WriteRequest::new();
        let mut changes = BTreeMap::new();
        let most = [2, 2, 2, 2, 12][self.pick(5)];
        for _ in 0..=self.dice.below(most) {
            let text = self.key();
            if changes.contains_key(&text) {
                continue;
            }
            if self.dice.below(4) == 0 {
                let known = self.state.get(&text).cloned().filter(|_| self.dice.below(3) > 0);
                request = request.condition(match known {
                    Some(value) => Condition::Version { key: key(&text), expected: value.version },
                    None => Condition::Missing { key: key(&text) },
                });
            }
            let bytes = self.bytes();
            let (change, mutation) = match self.dice.below(10) {
                0..3 => (None, Mutation::delete(key(&text))),
                3..6 => {
                    let longest = [15, 400][self.pick(2)];
                    let retention = ms(1 + self.dice.below(longest));
                    (Some((bytes.clone(), Some(retention))), Mutation::put_for(key(&text), bytes, retention))
                }
                _ => (Some((bytes.clone(), None)), Mutation::put(key(&text), bytes)),
            };
            changes.insert(text, change);
            request = request.mutation(mutation);
        }
        let store = self.store();
        let conditions = request.conditions.clone();
        let result = store.write(request).await.unwrap();
        let (WriteResult::Applied { store_now: now, .. } | WriteResult::Conflict { store_now: now }) = result;
        let holds = conditions.iter().all(|condition| {
            let live = self.state.get(condition.key().as_str()).filter(|value| value.is_live(now));
            match condition {
                Condition::Missing { .. } => live.is_none(),
                Condition::Version { expected, .. } => live.is_some_and(|value| value.version == *expected),
            }
        });
        let WriteResult::Applied { put_versions, .. } = result else {
            assert!(!holds, "a conflict that is none");
            return;
        };
        assert!(holds, "a condition did not hold");
        let mut versions: BTreeMap<String, Version> =
            put_versions.into_iter().map(|put| (put.key.to_string(), put.version)).collect();
        for (text, change) in changes {
            match change {
                None => self.state.remove(&text),
                Some((bytes, retention)) => {
                    let expires = retention.map(|retention| now.plus(retention));
                    let version = versions.remove(&text).unwrap();
                    self.state.insert(text, Value { bytes, version, expires })
                }
            };
        }
    }

    async fn read(&mut self) {
        let text = self.key();
        let store = self.store();
        let known = self.state.get(&text);
        match store.read(key(&text)).await.unwrap() {
            ReadResult::Missing { store_now } => assert!(known.is_none_or(|value| !value.is_live(store_now)), "{text}"),
            ReadResult::Found(found) => same(&text, known.unwrap(), &found),
        }
    }

    async fn start_scan(&mut self) {
        let prefix = ["", "a", "b", "ba", "b0", "none"][self.pick(6)].to_owned();
        let limit = [1, 3, 10, 100][self.pick(4)];
        let first = page(&self.store(), ScanRequest::new(&*prefix, limit)).await.unwrap();
        let live = self.state.iter().filter(|(text, value)| text.starts_with(&*prefix) && value.is_live(first.store_now));
        let left: Vec<_> = live.map(|(text, value)| (text.clone(), value.clone())).collect();
        self.check(first, prefix, limit, left, None);
    }

    async fn next_page(&mut self, mut scan: Scan) {
        let store = self.store();
        let read = scan.read.take().filter(|_| self.dice.below(3) == 0);
        if let Some((cursor, items, next)) = read {
            let request = ScanRequest::new(&*scan.prefix, scan.limit).after(cursor);
            let again = page(&store, request).await.expect("a page asked for again");
            let plain = |items: &[ScanItem]| -> Vec<(Key, Version)> {
                items.iter().map(|item| (item.key.clone(), item.value.version.clone())).collect()
            };
            assert_eq!(plain(&again.items), plain(&items), "the same cursor, the same items");
            assert_eq!(again.next_cursor, next, "the same cursor, the same next cursor");
        }
        let limit = if self.dice.below(2) == 0 { scan.limit } else { [1, 3, 10, 100][self.pick(4)] };
        let request = ScanRequest::new(&*scan.prefix, limit).after(scan.cursor.clone());
        let page = page(&store, request).await.expect("a live scan");
        assert!(!page.items.is_empty());
        self.check(page, scan.prefix, limit, scan.left, Some(scan.cursor));
    }

    /// Compares a page with the front of what is left, and goes on with the scan if there is a cursor.
    fn check(&mut self, page: ScanPage, prefix: String, limit: u32, mut left: Vec<(String, Value)>, asked: Option<Cursor>) {
        let count = left.len().min(limit as usize);
        assert_eq!(page.items.len(), count, "items of a page of {prefix:?}");
        for (item, (text, value)) in page.items.iter().zip(left.drain(..count)) {
            assert_eq!(item.key.as_str(), text);
            assert_eq!(item.value.store_now, page.store_now);
            same(&text, &value, &item.value);
        }
        assert_eq!(page.next_cursor.is_some(), !left.is_empty(), "a cursor exactly when more follows");
        if let Some(cursor) = page.next_cursor {
            let read = asked.map(|asked| (asked, page.items, Some(cursor.clone())));
            self.scans.push(Scan { prefix, limit, cursor, left, read });
        }
    }
}

fn same(text: &str, known: &Value, found: &StoredValue) {
    assert!(found.bytes == known.bytes, "{text}: other bytes");
    assert_eq!((&found.version, found.expires_at), (&known.version, known.expires), "{text}");
}

/// Once nobody reads a snapshot any more, all that is left are the live records and their names.
async fn nothing_is_left_behind(rig: &Rig, state: &State) {
    // As if all snapshots were overdue.
    rig.age_snapshots(limits::SNAPSHOT_LIFE_MS).await;
    rig.put("z", "").await;
    until(async || {
        let now = rig.store.ping().await.unwrap();
        let mut live: Vec<&str> = state.iter().filter(|(_, value)| value.is_live(now)).map(|(text, _)| &**text).collect();
        live.push("z");
        let mut keys: Vec<String> = rig.raw("KEYS {p}:*").await;
        keys.retain(|key| key != "{p}:x");
        keys.sort();
        let mut expected: Vec<String> = live.iter().map(|text| format!("{{p}}:r:{text}")).collect();
        expected.extend(["{p}:f", "{p}:i", "{p}:n"].map(String::from));
        expected.sort();
        rig.put("z", "").await;
        let names: Vec<String> = rig.raw("ZRANGE {p}:i 0 -1").await;
        keys == expected && names == live
    })
    .await;
}
