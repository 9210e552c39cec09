//! The model of a Location Store: a map, judged at the times that the answers tell.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use zlink_store::{Condition, Mutation, PutVersion, ReadResult, Retention, StoreTime, Version, WriteRequest, WriteResult};

use super::expect::{Mismatch, same};

/// A record as it was put.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) bytes: Bytes,
    pub(crate) version: Version,
    pub(crate) expires_at: Option<StoreTime>,
}

impl Record {
    pub(crate) fn live(&self, now: StoreTime) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at > now)
    }
}

/// All records that were put and not deleted, expired ones too.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) by_key: BTreeMap<String, Record>,
    /// Every version that was ever given out.
    versions: HashSet<Version>,
    /// Versions of former lives, by key.
    pub(crate) former: BTreeMap<String, Version>,
}

impl Records {
    pub(crate) fn live(&self, key: &str, now: StoreTime) -> Option<&Record> {
        self.by_key.get(key).filter(|record| record.live(now))
    }

    /// The next expiry after `now`, and its key.
    pub(crate) fn next_expiry(&self, now: StoreTime) -> Option<(StoreTime, String)> {
        let expiries = self.by_key.iter().filter_map(|(key, record)| Some((record.expires_at?, key.clone())));
        expiries.filter(|(expires_at, _)| *expires_at > now).min()
    }

    pub(crate) fn check_read(&self, key: &str, answer: &ReadResult) -> Result<StoreTime, Mismatch> {
        let (now, found) = match answer {
            ReadResult::Missing { store_now } => (*store_now, None),
            ReadResult::Found(value) => {
                let found = Record { bytes: value.bytes.clone(), version: value.version.clone(), expires_at: value.expires_at };
                (value.store_now, Some(found))
            }
        };
        same(&format!("read at {now:?}"), found.as_ref(), self.live(key, now), key)?;
        Ok(now)
    }

    /// Judges a write at the time of its answer and, if it was applied, applies it.
    pub(crate) fn check_write(&mut self, request: &WriteRequest, answer: &WriteResult) -> Result<StoreTime, Mismatch> {
        let now = match answer {
            WriteResult::Applied { store_now, .. } | WriteResult::Conflict { store_now } => *store_now,
        };
        let keys = || request.conditions.iter().map(Condition::key).chain(request.mutations.iter().map(Mutation::key));
        let broken = request.conditions.iter().find(|condition| !self.holds(condition, now));
        match (answer, broken) {
            (WriteResult::Conflict { .. }, Some(_)) => Ok(now),
            (WriteResult::Applied { put_versions, .. }, None) => self.apply(request, put_versions, now).map(|()| now),
            (WriteResult::Conflict { .. }, None) => Err(Mismatch::new(format!("a conflict at {now:?} that is none"), keys())),
            (WriteResult::Applied { .. }, Some(broken)) => {
                Err(Mismatch::new(format!("applied at {now:?}, though this does not hold: {broken:?}"), keys()))
            }
        }
    }

    fn holds(&self, condition: &Condition, now: StoreTime) -> bool {
        match condition {
            Condition::Missing { key } => self.live(key.as_str(), now).is_none(),
            Condition::Version { key, expected } => {
                self.live(key.as_str(), now).is_some_and(|record| record.version == *expected)
            }
        }
    }

    fn apply(&mut self, request: &WriteRequest, put_versions: &[PutVersion], now: StoreTime) -> Result<(), Mismatch> {
        let puts = request.mutations.iter().filter(|mutation| matches!(mutation, Mutation::Put { .. })).map(Mutation::key);
        if !put_versions.iter().map(|put| &put.key).eq(puts) {
            return Err(Mismatch::new("putVersions are not the puts in their order", [put_versions]));
        }
        let mut put_versions = put_versions.iter();
        for mutation in &request.mutations {
            if let Some(former) = self.by_key.remove(mutation.key().as_str()) {
                self.former.insert(mutation.key().as_str().to_owned(), former.version);
            }
            let (Mutation::Put { key, bytes, retention }, Some(put)) = (mutation, next_if_put(mutation, &mut put_versions))
            else {
                continue;
            };
            if !self.versions.insert(put.version.clone()) {
                return Err(Mismatch::new(format!("version {} came twice", put.version), [key]));
            }
            let expires_at = retention.map(|retention: Retention| now.plus(retention));
            let record = Record { bytes: bytes.clone(), version: put.version.clone(), expires_at };
            self.by_key.insert(key.as_str().to_owned(), record);
        }
        Ok(())
    }
}

fn next_if_put<'a>(mutation: &Mutation, puts: &mut impl Iterator<Item = &'a PutVersion>) -> Option<&'a PutVersion> {
    matches!(mutation, Mutation::Put { .. }).then(|| puts.next()).flatten()
}
