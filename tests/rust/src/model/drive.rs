//! Chooses the steps, takes them on one of several clients, and compares.

use std::fmt::Write as _;

use super::choices::Choices;
use crate::place::Place;
use bytes::Bytes;
use zlink_store::{
    BlobReference, Condition, Cursor, Key, LocationStore, Mutation, RelocationStore, Retention, ScanRequest, ScanResult,
    StoreTime, Version, WriteRequest,
};

use super::blobs::Blobs;
use super::expect::{Mismatch, same};
use super::records::Records;
use super::scans::Scans;

const CLIENTS: usize = 3;
const KEYS: [&str; 36] = [
    "a",
    "a\0",
    "a\0b",
    "ab",
    "abc",
    "abd",
    "b",
    "b0",
    "b1",
    "b2",
    "b3",
    "b4",
    "b5",
    "b6",
    "b7",
    "b8",
    "b9",
    "c",
    "k/1",
    "k/2",
    "k/3",
    "k/4",
    "k/5",
    "k/6",
    "\u{7f}",
    "\u{80}",
    "é",
    "e\u{301}",
    "\u{ff5e}",
    "\u{ff5e}x",
    "😀",
    "😀x",
    "😁",
    "{z}",
    "}{",
    "\0",
];
const PREFIXES: [&str; 10] = ["", "", "", "", "a", "b", "k/", "\u{ff5e}", "😀", "nothing"];
const REFERENCES: [&str; 6] = ["blob", "Blob", "\0", "😀", "{blob}", "blob/1"];
const BLOB_SIZES: [usize; 8] = [0, 1, 1_000, 65_536, 262_143, 262_144, 262_145, 600_000];

/// One run.
pub struct Driver<'a> {
    place: &'a Place,
    random: Choices<'a>,
    locations: Vec<LocationStore>,
    relocations: Vec<RelocationStore>,
    records: Records,
    scans: Scans,
    blobs: Blobs,
    /// The last time that an answer told.
    now: StoreTime,
    log: Vec<String>,
}

impl<'a> Driver<'a> {
    /// Takes `steps` steps, fewer if the choices come to their end.
    ///
    /// # Errors
    /// The step, what was wrong, and the steps that had to do with it.
    pub async fn run(place: &'a Place, choices: Choices<'a>, steps: usize) -> Result<(), String> {
        let open = |error: zlink_store::Error| error.to_string();
        let mut driver = Driver {
            place,
            random: choices,
            locations: (0..CLIENTS).map(|_| place.location("l")).collect::<Result<_, _>>().map_err(open)?,
            relocations: (0..CLIENTS).map(|_| place.relocation("r")).collect::<Result<_, _>>().map_err(open)?,
            records: Records::default(),
            scans: Scans::default(),
            blobs: Blobs::default(),
            now: StoreTime::from_unix_ms(0),
            log: Vec::new(),
        };
        for step in 0..steps {
            if driver.random.are_over() {
                break;
            }
            if let Err(mismatch) = driver.step().await {
                return Err(driver.tell(step, &mismatch));
            }
        }
        Ok(())
    }

    /// The steps that touched what the mismatch is about, and the last few.
    fn tell(&self, step: usize, mismatch: &Mismatch) -> String {
        let mut said = format!("step {step}: {}\nThe steps that had to do with it:\n", mismatch.said);
        let last = self.log.len().saturating_sub(6);
        let concerned: Vec<_> = (self.log.iter().enumerate())
            .filter(|(at, line)| *at >= last || mismatch.about.iter().any(|about| line.contains(about.trim_matches('"'))))
            .collect();
        for (at, line) in &concerned[concerned.len().saturating_sub(40)..] {
            let _ = writeln!(said, "  {at}: {line}");
        }
        said
    }

    async fn step(&mut self) -> Result<(), Mismatch> {
        let client = self.random.usize(..CLIENTS);
        match self.random.u32(..1_000) {
            0..250 => self.read(client).await,
            250..590 => self.write(client).await,
            590..690 => self.scan(client).await,
            690..840 => self.next_page(client).await,
            840..860 => self.wrong_cursor(client).await,
            860..865 => self.abandoned_scans(client).await,
            865..890 => self.wait_for_an_expiry(client).await,
            890..895 => self.reopen(client).await,
            _ => self.blob(client).await,
        }
    }

    /// Time must not run backwards from answer to answer.
    fn passed(&mut self, now: StoreTime) -> Result<(), Mismatch> {
        if now < self.now {
            return Err(Mismatch::new(format!("time ran backwards from {:?} to {now:?}", self.now), [""]));
        }
        self.now = now;
        Ok(())
    }

    async fn read(&mut self, client: usize) -> Result<(), Mismatch> {
        let key = *self.random.choice(&KEYS).unwrap_or(&"a");
        self.read_key(client, key).await
    }

    async fn read_key(&mut self, client: usize, key: &str) -> Result<(), Mismatch> {
        let answer = self.locations[client].read(Key::new(key)?).await?;
        let now = self.records.check_read(key, &answer)?;
        self.log.push(format!("read {key:?} at {now:?}"));
        self.passed(now)
    }

    async fn write(&mut self, client: usize) -> Result<(), Mismatch> {
        let mut request = WriteRequest::new();
        let (conditions, mutations) = match self.random.u32(..100) {
            0..60 => (self.random.usize(..2), self.random.usize(1..3)),
            60..95 => (self.random.usize(..4), self.random.usize(..8)),
            _ => (self.random.usize(..KEYS.len()), self.random.usize(..KEYS.len())),
        };
        // Some writes only delete: they go other ways inside an engine.
        let only_deletes = self.random.u32(..100) < 25;
        for key in self.some_keys(conditions) {
            request = request.condition(self.condition(key)?);
        }
        for key in self.some_keys(mutations) {
            request = request.mutation(self.mutation(key, only_deletes)?);
        }
        let answer = self.locations[client].write(request.clone()).await?;
        self.log.push(format!("write {request:?} -> {answer:?}"));
        let now = self.records.check_write(&request, &answer)?;
        self.passed(now)
    }

    fn some_keys(&mut self, count: usize) -> Vec<&'static str> {
        self.random.some(&KEYS, count)
    }

    /// Mostly one that holds.
    fn condition(&mut self, key: &str) -> Result<Condition, Mismatch> {
        let current = self.records.live(key, self.now).map(|record| record.version.clone());
        let expected = match (self.random.u32(..100), current) {
            (0..85, Some(version)) => version,
            (0..85, None) => return Ok(Condition::Missing { key: Key::new(key)? }),
            (85..90, Some(_)) => return Ok(Condition::Missing { key: Key::new(key)? }),
            (90..95, _) => match self.records.former.get(key) {
                Some(former) => former.clone(),
                None => Version::new("never issued")?,
            },
            _ => {
                let versions: Vec<_> = self.records.by_key.values().map(|record| &record.version).collect();
                self.random.choice(&versions).map(|version| (*version).clone()).map_or_else(|| Version::new("x"), Ok)?
            }
        };
        Ok(Condition::Version { key: Key::new(key)?, expected })
    }

    fn mutation(&mut self, key: &str, only_deletes: bool) -> Result<Mutation, Mismatch> {
        let key = Key::new(key)?;
        if only_deletes || self.random.u32(..100) < 25 {
            return Ok(Mutation::delete(key));
        }
        let size = match self.random.u32(..1_000) {
            0..2 => 200_000,
            2..30 => 16_380 + self.random.usize(..10),
            30..60 => 0,
            _ => 1 + self.random.usize(..200),
        };
        let bytes = self.bytes(size);
        Ok(match self.random.u32(..100) {
            0..60 => Mutation::put(key, bytes),
            60..80 => Mutation::put_for(key, bytes, Retention::from_ms(self.random.u64(1..40))?),
            80..95 => Mutation::put_for(key, bytes, Retention::from_ms(self.random.u64(40..2_000))?),
            _ => Mutation::put_for(key, bytes, Retention::from_ms(self.random.u64(1..=(1 << 53) - 1))?),
        })
    }

    fn bytes(&mut self, size: usize) -> Bytes {
        let start = self.random.byte();
        (0..=u8::MAX).cycle().skip(usize::from(start)).take(size).collect()
    }

    async fn scan(&mut self, client: usize) -> Result<(), Mismatch> {
        let prefix = *self.random.choice(&PREFIXES).unwrap_or(&"");
        let limit = if self.random.u32(..10) == 0 { 1_000 } else { self.random.u32(1..9) };
        self.scan_prefix(client, prefix, limit).await
    }

    async fn scan_prefix(&mut self, client: usize, prefix: &str, limit: u32) -> Result<(), Mismatch> {
        let answer = self.locations[client].scan(ScanRequest::new(prefix, limit)).await?;
        let before = self.scans.started.len();
        let now = self.scans.check_first(&self.records, prefix, limit, answer)?;
        let name = self.scans.started.get(before).map_or("a scan of one page", |snapshot| &snapshot.name);
        self.log.push(format!("{name}: {prefix:?}, limit {limit}, at {now:?}"));
        self.passed(now)?;
        let Some(oldest) = self.scans.doubtful() else { return Ok(()) };
        let request = ScanRequest::new(&oldest.prefix, 1).after(oldest.cursors[0].0.clone());
        let answer = self.locations[client].scan(request).await?;
        self.log.push(format!("{}: cursor 0, limit 1, whether it is there", oldest.name));
        oldest.check_next(0, 1, answer)?.map_or(Ok(()), |now| self.passed(now))
    }

    async fn next_page(&mut self, client: usize) -> Result<(), Mismatch> {
        // Mostly a young one, so that many come to their end.
        let count = self.scans.started.len();
        if count == 0 {
            return Ok(());
        }
        let from = if self.random.bool() { count.saturating_sub(6) } else { 0 };
        let snapshot = &mut self.scans.started[self.random.usize(from..count)];
        let cursors = snapshot.cursors.len();
        let which = if self.random.u32(..100) < 70 { cursors - 1 } else { self.random.usize(..cursors) };
        let limit = self.random.u32(1..9);
        let request = ScanRequest::new(&snapshot.prefix, limit).after(snapshot.cursors[which].0.clone());
        let answer = self.locations[client].scan(request).await?;
        self.log.push(format!("{}: cursor {which}, limit {limit}", snapshot.name));
        match snapshot.check_next(which, limit, answer)? {
            Some(now) => self.passed(now),
            None => Ok(()),
        }
    }

    async fn wrong_cursor(&mut self, client: usize) -> Result<(), Mismatch> {
        let Some(snapshot) = self.random.choice(&self.scans.started) else { return Ok(()) };
        let (cursor, _) = &snapshot.cursors[0];
        let (prefix, cursor) = match self.random.u32(..3) {
            0 => (format!("{}x", snapshot.prefix), cursor.clone()),
            1 => {
                let mut bent = cursor.as_str().as_bytes().to_vec();
                let at = self.random.usize(..bent.len());
                bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
                (snapshot.prefix.clone(), Cursor::from_utf8(&bent)?)
            }
            _ => (snapshot.prefix.clone(), Cursor::new(&cursor.as_str()[..self.random.usize(1..cursor.as_str().len())])?),
        };
        let answer = self.locations[client].scan(ScanRequest::new(prefix, 5).after(cursor)).await?;
        same("a wrong cursor", answer, ScanResult::Expired, &snapshot.name)
    }

    /// Starts scans that nobody goes on with, so that the bound on their number comes into play.
    async fn abandoned_scans(&mut self, client: usize) -> Result<(), Mismatch> {
        for _ in 0..self.random.u32(1..30) {
            self.scan_prefix(client, "", 1).await?;
        }
        Ok(())
    }

    /// Reads a key again and again over the instant of its expiry.
    async fn wait_for_an_expiry(&mut self, client: usize) -> Result<(), Mismatch> {
        let Some((expires_at, key)) = self.records.next_expiry(self.now) else { return Ok(()) };
        if !self.random.may_wait() || expires_at.unix_ms() - self.now.unix_ms() > 50 {
            return Ok(());
        }
        while self.now < expires_at {
            self.read_key(client, &key).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn reopen(&mut self, client: usize) -> Result<(), Mismatch> {
        self.log.push(format!("client {client} is opened anew"));
        self.locations[client].close().await;
        self.relocations[client].close().await;
        self.locations[client] = self.place.location("l")?;
        self.relocations[client] = self.place.relocation("r")?;
        Ok(())
    }

    async fn blob(&mut self, client: usize) -> Result<(), Mismatch> {
        let name = *self.random.choice(&REFERENCES).unwrap_or(&"blob");
        let reference = BlobReference::new(name)?;
        let store = &self.relocations[client];
        let retention = match self.random.u32(..10) {
            0..3 => self.random.u64(1..30),
            3..5 => self.random.u64(30..1_000),
            _ => self.random.u64(60_000..=(1 << 53) - 1),
        };
        let retention = Retention::from_ms(retention)?;
        let now = match self.random.u32(..100) {
            0..40 => {
                let size = *self.random.choice(&BLOB_SIZES).unwrap_or(&0);
                // Few contents, so that a reference meets the same bytes again.
                let bytes: Bytes = (0..=u8::MAX).cycle().skip(self.random.usize(..2)).take(size).collect();
                let answer = store.put(reference, bytes.clone(), retention).await?;
                self.log.push(format!("blob put {name:?}, {size} bytes, {retention:?} -> {answer:?}"));
                self.blobs.check_put(name, &bytes, retention, &answer)?
            }
            40..80 => {
                let answer = store.read(reference).await?;
                let now = self.blobs.check_read(name, &answer)?;
                self.log.push(format!("blob read {name:?} at {now:?}"));
                now
            }
            80..92 => {
                let answer = store.renew(reference, retention).await?;
                self.log.push(format!("blob renew {name:?}, {retention:?} -> {answer:?}"));
                self.blobs.check_renew(name, retention, &answer)?
            }
            _ => {
                store.delete(reference).await?;
                self.log.push(format!("blob delete {name:?}"));
                self.blobs.delete(name);
                return Ok(());
            }
        };
        self.passed(now)
    }
}
