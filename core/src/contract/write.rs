//! Conditional atomic batches.

use std::collections::HashSet;

use bytes::Bytes;

use super::{Error, Key, Retention, StoreTime, Version, limits};

/// What must hold before a write applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The key has no live record.
    Missing {
        /// The key.
        key: Key,
    },
    /// The key's live record has exactly this version.
    Version {
        /// The key.
        key: Key,
        /// The expected version.
        expected: Version,
    },
}

impl Condition {
    /// The key that is looked at.
    pub fn key(&self) -> &Key {
        match self {
            Self::Missing { key } | Self::Version { key, .. } => key,
        }
    }
}

/// What a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Puts a record. Without retention it is durable, also when it had an expiry before.
    Put {
        /// The key.
        key: Key,
        /// The value, at most 1 MiB.
        bytes: Bytes,
        /// How long it lives from the commit on.
        retention: Option<Retention>,
    },
    /// Deletes a record; deleting a missing one is fine.
    Delete {
        /// The key.
        key: Key,
    },
}

impl Mutation {
    /// A durable put.
    pub fn put(key: Key, bytes: impl Into<Bytes>) -> Self {
        Self::Put { key, bytes: bytes.into(), retention: None }
    }

    /// A put that expires `retention` after its commit.
    pub fn put_for(key: Key, bytes: impl Into<Bytes>, retention: Retention) -> Self {
        Self::Put { key, bytes: bytes.into(), retention: Some(retention) }
    }

    /// A delete.
    pub fn delete(key: Key) -> Self {
        Self::Delete { key }
    }

    /// The key that is changed.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// All conditions are checked first; if all hold, all mutations are applied as one atomic commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteRequest {
    /// The conditions; a key at most once.
    pub conditions: Vec<Condition>,
    /// The mutations; a key at most once.
    pub mutations: Vec<Mutation>,
}

impl WriteRequest {
    /// An empty request: applied, and tells the engine's time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Adds a mutation.
    #[must_use]
    pub fn mutation(mut self, mutation: Mutation) -> Self {
        self.mutations.push(mutation);
        self
    }

    /// Checks the limits of one write and returns its encoded size: the bytes of every unique key, of every expected version
    /// and of every value.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: a key twice among the conditions or twice among the mutations, a value over 1 MiB, more than
    /// 2,048 unique keys, or an encoded size over 4 MiB.
    pub fn validate(&self) -> Result<usize, Error> {
        let mut keys = HashSet::with_capacity(self.conditions.len() + self.mutations.len());
        let mut size = 0;
        for (index, condition) in self.conditions.iter().enumerate() {
            if !keys.insert(condition.key()) {
                return Err(Error::argument(format!("conditions[{index}].key"), "is in the conditions twice"));
            }
            size += condition.key().as_bytes().len();
            if let Condition::Version { expected, .. } = condition {
                size += expected.as_bytes().len();
            }
        }
        let mut mutated = HashSet::with_capacity(self.mutations.len());
        for (index, mutation) in self.mutations.iter().enumerate() {
            if !mutated.insert(mutation.key()) {
                return Err(Error::argument(format!("mutations[{index}].key"), "is in the mutations twice"));
            }
            if keys.insert(mutation.key()) {
                size += mutation.key().as_bytes().len();
            }
            if let Mutation::Put { bytes, .. } = mutation {
                if bytes.len() > limits::MAX_VALUE {
                    let said = format!("must be 0..={} bytes, got {}", limits::MAX_VALUE, bytes.len());
                    return Err(Error::argument(format!("mutations[{index}].bytes"), said));
                }
                size += bytes.len();
            }
        }
        if keys.len() > limits::MAX_WRITE_KEYS {
            let said = format!("must name at most {} unique keys, got {}", limits::MAX_WRITE_KEYS, keys.len());
            return Err(Error::argument("request", said));
        }
        if size > limits::MAX_ENCODED {
            let said = format!("must be at most {} bytes (keys, expected versions, values), got {size}", limits::MAX_ENCODED);
            return Err(Error::argument("request", said));
        }
        Ok(size)
    }
}

/// The version that one put got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutVersion {
    /// The key that was put.
    pub key: Key,
    /// Its new version.
    pub version: Version,
}

/// The answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// All conditions held and all mutations are in.
    Applied {
        /// The versions of the puts, in the order of the puts.
        put_versions: Vec<PutVersion>,
        /// The commit's instant.
        store_now: StoreTime,
    },
    /// A condition did not hold; nothing changed.
    Conflict {
        /// The instant of the check.
        store_now: StoreTime,
    },
}
