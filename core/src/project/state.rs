//! Project state: JSON entries with compare-and-set.

use std::sync::Arc;

use super::Project;
use crate::call::{Kind, Operation, SMALL};
use crate::contract::{
    Error, JsonText, Name, Namespace, StateDeleteResult, StateEntry, StateSetResult, StateWriteOptions, check_expected_version,
};
use crate::engine::StateSet;

/// The state of one project: durable JSON entries under namespaces and keys.
///
/// At most 100,000 live entries; expired and deleted ones do not count.
#[derive(Clone, Debug)]
pub struct ProjectState(Project);

impl ProjectState {
    pub(super) fn new(project: Project) -> Self {
        Self(project)
    }

    /// The entries of one namespace; no I/O.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if `name` is no legal [`Namespace`].
    pub fn namespace(&self, name: impl Into<Arc<str>>) -> Result<StateNamespace, Error> {
        Ok(StateNamespace { project: self.0.clone(), name: Namespace::new(name)? })
    }
}

/// The entries of one namespace.
///
/// A key that is no legal [`Name`] is an `INVALID_ARGUMENT` of the operation; nothing is sent then.
#[derive(Clone, Debug)]
pub struct StateNamespace {
    project: Project,
    name: Namespace,
}

impl StateNamespace {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The live entry under `key`.
    pub fn get(&self, key: impl Into<Arc<str>>) -> Operation<Option<StateEntry>> {
        match Name::new(key) {
            Ok(key) => self.project.state_get(self.name.clone(), key),
            Err(error) => Operation::rejected(error),
        }
    }

    /// Writes `json` (any JSON text of at most 32,768 bytes in the form of `JSON.stringify`) as one atomic step.
    ///
    /// Without `expected_version` whatever is there is replaced. After a lost answer the engine is asked whether this very
    /// write was made.
    pub fn set(&self, key: impl Into<Arc<str>>, json: impl AsRef<[u8]>, options: StateWriteOptions) -> Operation<StateSetResult> {
        let set = || Ok(StateSet { namespace: self.name.clone(), key: Name::new(key)?, value: JsonText::new(json)?, options });
        match set() {
            Ok(set) => self.project.state_set(set),
            Err(error) => Operation::rejected(error),
        }
    }

    /// Deletes the live entry under `key`. With `expected_version` n > 0 only version n; with 0 a live entry is a conflict.
    pub fn delete(&self, key: impl Into<Arc<str>>, expected_version: Option<u64>) -> Operation<StateDeleteResult> {
        match Name::new(key) {
            Ok(key) => self.project.state_delete(self.name.clone(), key, expected_version),
            Err(error) => Operation::rejected(error),
        }
    }
}

/// The same with names that are checked already.
impl Project {
    pub(crate) fn state_get(&self, namespace: Namespace, key: Name) -> Operation<Option<StateEntry>> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Read, &SMALL, 0, move |call| engine.state_get(namespace, key, call))
    }

    pub(crate) fn state_set(&self, set: StateSet) -> Operation<StateSetResult> {
        if let Err(error) = set.options.validate() {
            return Operation::rejected(error);
        }
        let engine = Arc::clone(&self.engine);
        let size = set.value.as_bytes().len();
        self.gate.pass(Kind::Write, &SMALL, size, move |call| engine.state_set(set, call))
    }

    pub(crate) fn state_delete(&self, namespace: Namespace, key: Name, expected: Option<u64>) -> Operation<StateDeleteResult> {
        if let Err(error) = check_expected_version(expected) {
            return Operation::rejected(error);
        }
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Delete, &SMALL, 0, move |call| engine.state_delete(namespace, key, expected, call))
    }
}
