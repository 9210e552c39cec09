//! How keys and values of a project's tables are encoded.

use bytes::Bytes;

use super::super::record::{Due, damaged};
use super::super::storage::{Draft, Table};
use crate::contract::{Error, JsonText, LeaseId, LockName, Name, Namespace, ProjectId, StateEntry, StoreTime};

/// The name space of one project: its two names, each with its length in front, so that no two scopes overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::embedded) struct Scope(Vec<u8>);

impl Scope {
    pub(in crate::engine::embedded) fn new(id: &ProjectId) -> Self {
        let mut bytes = Vec::new();
        append(&mut bytes, id.workspace.as_str());
        append(&mut bytes, id.project.as_str());
        Self(bytes)
    }

    /// The scope of a key that [`key`](Self::key) made.
    pub(super) fn of_key(key: &[u8]) -> Result<Self, Error> {
        let rest = split(key).and_then(|(_, rest)| split(rest)).ok_or_else(|| damaged("key"))?.1;
        Ok(Self(key[..key.len() - rest.len()].to_vec()))
    }

    pub(super) fn key(&self, namespace: &Namespace, key: &Name) -> Vec<u8> {
        let mut bytes = self.0.clone();
        append(&mut bytes, namespace.as_str());
        bytes.extend_from_slice(key.as_str().as_bytes());
        bytes
    }

    pub(super) fn lease(&self, id: LeaseId) -> Vec<u8> {
        [&self.0[..], &id.0].concat()
    }

    /// The names in a key of this scope.
    pub(super) fn lock(&self, key: &[u8]) -> Result<LockName, Error> {
        let names = || {
            let (namespace, key) = split(key.strip_prefix(&self.0[..])?)?;
            let text = |bytes| std::str::from_utf8(bytes).ok();
            Some(LockName { namespace: Namespace::new(text(namespace)?).ok()?, key: Name::new(text(key)?).ok()? })
        };
        names().ok_or_else(|| damaged("lock's name"))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn append(bytes: &mut Vec<u8>, name: &str) {
    bytes.push(u8::try_from(name.len()).unwrap_or_else(|_| unreachable!("a namespace has at most 128 characters")));
    bytes.extend_from_slice(name.as_bytes());
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// What is kept of a project as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// State entries that are there, those among them that have expired and are not yet removed.
    pub(super) entries: u64,
    /// The last fencing token.
    pub(super) token: u64,
}

impl Totals {
    pub(super) fn of(draft: &dyn Draft, scope: &Scope) -> Result<Self, Error> {
        draft.get(Table::Projects, scope.as_bytes())?.map_or(Ok(Self::default()), |raw| Self::decode(&raw))
    }

    pub(super) fn set(self, draft: &mut dyn Draft, scope: &Scope) {
        let raw = [self.entries.to_be_bytes(), self.token.to_be_bytes()].concat();
        draft.set(Table::Projects, scope.as_bytes(), raw.into());
    }

    pub(super) fn decode(raw: &[u8]) -> Result<Self, Error> {
        match raw.as_chunks() {
            ([entries, token], []) => Ok(Self { entries: u64::from_be_bytes(*entries), token: u64::from_be_bytes(*token) }),
            _ => Err(damaged("project")),
        }
    }
}

const NEVER: u64 = u64::MAX;

/// Whether an entry or lease that expires then is there now.
pub(super) fn is_live(expires_at: Option<StoreTime>, now: StoreTime) -> bool {
    expires_at.is_none_or(|expires_at| expires_at > now)
}

pub(super) fn encode_entry(entry: &StateEntry) -> Bytes {
    let expires_at = entry.expires_at.map_or(NEVER, StoreTime::unix_ms);
    let numbers = [entry.version, expires_at, entry.created_at.unix_ms(), entry.updated_at.unix_ms()];
    let mut raw = Vec::with_capacity(32 + entry.value.as_bytes().len());
    numbers.into_iter().for_each(|number| raw.extend_from_slice(&number.to_be_bytes()));
    raw.extend_from_slice(entry.value.as_bytes());
    raw.into()
}

pub(super) fn decode_entry(raw: Bytes) -> Result<StateEntry, Error> {
    let Some((numbers, _)) = raw.split_first_chunk::<32>() else { return Err(damaged("state entry")) };
    let (numbers, _) = numbers.as_chunks();
    let [version, expires_at, created_at, updated_at] = [0, 1, 2, 3].map(|at| u64::from_be_bytes(numbers[at]));
    Ok(StateEntry {
        version,
        expires_at: (expires_at != NEVER).then(|| StoreTime::from_unix_ms(expires_at)),
        created_at: StoreTime::from_unix_ms(created_at),
        updated_at: StoreTime::from_unix_ms(updated_at),
        value: JsonText::stored(raw.slice(32..))?,
    })
}

/// A lock that is held, or was until it expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) id: LeaseId,
    pub(super) token: u64,
    pub(super) expires_at: StoreTime,
    pub(super) lease_ms: u64,
}

impl Lease {
    pub(super) fn encode(&self) -> Bytes {
        let mut raw = self.id.0.to_vec();
        for number in [self.token, self.expires_at.unix_ms(), self.lease_ms] {
            raw.extend_from_slice(&number.to_be_bytes());
        }
        raw.into()
    }

    pub(super) fn decode(raw: &[u8]) -> Result<Self, Error> {
        let parts = || {
            let (id, numbers) = raw.split_first_chunk()?;
            let ([token, expires_at, lease_ms], []) = numbers.as_chunks() else { return None };
            Some(Self {
                id: LeaseId(*id),
                token: u64::from_be_bytes(*token),
                expires_at: StoreTime::from_unix_ms(u64::from_be_bytes(*expires_at)),
                lease_ms: u64::from_be_bytes(*lease_ms),
            })
        };
        parts().ok_or_else(|| damaged("lease"))
    }
}

/// When an entry or lock is to be removed. What is there then and expires then is what is meant: a mark is not needed.
pub(super) fn due(table: Table, key: &[u8], at: StoreTime) -> Due {
    Due { at, table, key: key.to_vec(), mark: Bytes::new() }
}

/// What a table holds is damaged, or is written and read again as what it was read as (an instant past the last one is that).
#[cfg(any(test, fuzzing))]
pub(in crate::engine) fn fuzz(raw: &[u8]) {
    if let Ok(entry) = decode_entry(Bytes::copy_from_slice(raw)) {
        assert_eq!(decode_entry(encode_entry(&entry)).ok(), Some(entry));
    }
    if let Ok(lease) = Lease::decode(raw) {
        assert_eq!(Lease::decode(&lease.encode()).ok(), Some(lease));
    }
    if let Ok(totals) = Totals::decode(raw) {
        assert_eq!([totals.entries.to_be_bytes(), totals.token.to_be_bytes()].concat(), raw);
    }
    if let Ok(scope) = Scope::of_key(raw) {
        assert!(raw.starts_with(scope.as_bytes()));
        if let Ok(lock) = scope.lock(raw) {
            assert_eq!(scope.key(&lock.namespace, &lock.key), raw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_scopes_and_no_two_names_meet() {
        let scope = |workspace, project| Scope::new(&ProjectId::new(workspace, project).unwrap());
        let key = |scope: &Scope, namespace, key| scope.key(&Namespace::new(namespace).unwrap(), &Name::new(key).unwrap());
        assert_ne!(scope("a:b", "c"), scope("a", "b:c"));
        let s = scope("w", "p");
        assert_ne!(key(&s, "a:b", "c"), key(&s, "a", "b:c"));
        assert_ne!(key(&s, "a", "bc"), key(&s, "ab", "c"));
        let made = key(&s, "ns", "k");
        assert_eq!(Scope::of_key(&made).unwrap(), s);
        let lock = s.lock(&made).unwrap();
        assert_eq!((lock.namespace.as_str(), lock.key.as_str()), ("ns", "k"));
        assert!(scope("w", "q").lock(&made).is_err());
    }

    #[test]
    fn what_is_encoded_comes_back_and_damage_is_an_error() {
        let time = StoreTime::from_unix_ms;
        for expires_at in [None, Some(time(9))] {
            let value = JsonText::new("{}").unwrap();
            let entry = StateEntry { value, version: 3, expires_at, created_at: time(1), updated_at: time(2) };
            assert_eq!(decode_entry(encode_entry(&entry)).unwrap(), entry);
        }
        let lease = Lease { id: LeaseId([7; 16]), token: 8, expires_at: time(9), lease_ms: 10 };
        let raw = lease.encode();
        assert_eq!(Lease::decode(&raw).unwrap(), lease);
        for length in 0..raw.len() {
            assert!(Lease::decode(&raw[..length]).is_err());
            assert!(length >= 32 || decode_entry(raw.slice(..length)).is_err());
            assert!(Totals::decode(&raw[..length]).is_err() || length == 16);
            assert!(Scope::of_key(&[200, 1]).is_err());
        }
    }
}
