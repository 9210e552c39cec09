//! Project state.

use std::sync::Arc;

use zlink_store::{StateWriteOptions, limits};

use crate::error::StoreError;
use crate::operation::{Running, Unwanted, operation};
use crate::options::{ProjectOptions, optional};
use crate::project::Project;
use crate::time::ms;

/// A live entry.
#[derive(Clone, Debug, uniffi::Record)]
pub struct StateEntry {
    /// The value's JSON text, in the form of `JSON.stringify`.
    pub json: String,
    /// Counts the writes since the entry was created: 1, 2, 3 … After a deletion or expiry it starts again at 1.
    pub version: i64,
    /// When it stops being there, if ever, in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
    /// When its version 1 was written, in Unix milliseconds.
    pub created_at_ms: i64,
    /// When this version was written, in Unix milliseconds.
    pub updated_at_ms: i64,
}

/// What became of a `set`.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum StateSetResult {
    /// Written.
    Stored {
        /// The entry as it stands now.
        entry: StateEntry,
    },
    /// The expected version was not there; nothing changed.
    Conflict,
    /// The project has 100,000 live entries and this would be one more; nothing changed.
    LimitReached,
}

/// What became of a `delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum StateDeleteResult {
    /// There was an entry, and it is gone.
    Deleted,
    /// There was none.
    Missing,
    /// The expected version was not there; nothing changed.
    Conflict,
}

operation! {
    /// A `get`; absent: there is no live entry.
    StateGetOperation: Option<zlink_store::StateEntry> => [Option<StateEntry>], |entry| entry.map(StateEntry::from)
}
operation! {
    /// A `set`.
    StateSetOperation: zlink_store::StateSetResult => [StateSetResult], StateSetResult::from
}
operation! {
    /// A `delete`.
    StateDeleteOperation: zlink_store::StateDeleteResult => [StateDeleteResult], StateDeleteResult::from
}

/// The state of one project: durable JSON entries under namespaces and keys, with compare-and-set.
#[derive(uniffi::Object)]
pub struct ProjectState {
    pub(crate) state: zlink_store::ProjectState,
    pub(crate) project: zlink_store::Project,
}

#[uniffi::export]
impl ProjectState {
    /// Makes a project at the URL, without I/O, and gives its state.
    #[uniffi::constructor]
    pub fn open(url: &str, workspace: &str, project: &str, options: ProjectOptions) -> Result<Arc<Self>, StoreError> {
        Ok(Project::open(url, workspace, project, options)?.state())
    }

    /// The entries of one namespace; no I/O.
    pub fn namespace(&self, name: &str) -> Result<Arc<StateNamespace>, StoreError> {
        Ok(Arc::new(StateNamespace(self.state.namespace(name)?)))
    }

    /// The project that this is the state of: `ping`, `stats`, `shutdown`.
    pub fn project(&self) -> Arc<Project> {
        Arc::new(self.project.clone().into())
    }
}

/// The entries of one namespace.
#[derive(uniffi::Object)]
pub struct StateNamespace(zlink_store::StateNamespace);

#[uniffi::export]
impl StateNamespace {
    /// Its name.
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// The live entry under `key`.
    pub fn get(&self, key: &str) -> Result<Arc<StateGetOperation>, StoreError> {
        Ok(Arc::new(StateGetOperation(Running::new(self.0.get(key), Unwanted::Drop)?)))
    }

    /// Writes `json` (any JSON text of at most 32,768 bytes in the form of `JSON.stringify`) as one atomic step.
    ///
    /// `expected_version` 0: only if there is no entry; n > 0: only if the live entry has version n; left out: in any case.
    /// `ttl_seconds` (1..=31,536,000): how long the entry lives from this write on; left out: it does not expire.
    #[uniffi::method(default(expected_version = None, ttl_seconds = None))]
    pub fn set(
        &self,
        key: &str,
        json: &str,
        expected_version: Option<i64>,
        ttl_seconds: Option<i64>,
    ) -> Result<Arc<StateSetOperation>, StoreError> {
        let options = StateWriteOptions {
            expected_version: expected(expected_version)?,
            ttl_seconds: optional("ttlSeconds", ttl_seconds, within_ttl())?,
        };
        let set = self.0.set(key, json, options);
        Ok(Arc::new(StateSetOperation(Running::new(set, Unwanted::Drop)?)))
    }

    /// Deletes the live entry under `key`. With `expected_version` n > 0 only version n; with 0 a live entry is a conflict.
    #[uniffi::method(default(expected_version = None))]
    pub fn delete(&self, key: &str, expected_version: Option<i64>) -> Result<Arc<StateDeleteOperation>, StoreError> {
        let delete = self.0.delete(key, expected(expected_version)?);
        Ok(Arc::new(StateDeleteOperation(Running::new(delete, Unwanted::Drop)?)))
    }
}

fn within_ttl() -> String {
    format!("a whole number of seconds in 1..={}", limits::MAX_TTL_SECONDS)
}

fn expected(version: Option<i64>) -> Result<Option<u64>, zlink_store::Error> {
    optional("expectedVersion", version, format_args!("a whole number in 0..={}", limits::MAX_SAFE_INTEGER))
}

impl From<zlink_store::StateEntry> for StateEntry {
    fn from(entry: zlink_store::StateEntry) -> Self {
        Self {
            json: entry.value.as_str().to_owned(),
            // At most 2^53 − 1.
            version: i64::try_from(entry.version).unwrap_or(i64::MAX),
            expires_at_ms: entry.expires_at.map(ms),
            created_at_ms: ms(entry.created_at),
            updated_at_ms: ms(entry.updated_at),
        }
    }
}

impl From<zlink_store::StateSetResult> for StateSetResult {
    fn from(result: zlink_store::StateSetResult) -> Self {
        match result {
            zlink_store::StateSetResult::Stored(entry) => Self::Stored { entry: entry.into() },
            zlink_store::StateSetResult::Conflict => Self::Conflict,
            zlink_store::StateSetResult::LimitReached => Self::LimitReached,
        }
    }
}

impl From<zlink_store::StateDeleteResult> for StateDeleteResult {
    fn from(result: zlink_store::StateDeleteResult) -> Self {
        match result {
            zlink_store::StateDeleteResult::Deleted => Self::Deleted,
            zlink_store::StateDeleteResult::Missing => Self::Missing,
            zlink_store::StateDeleteResult::Conflict => Self::Conflict,
        }
    }
}
