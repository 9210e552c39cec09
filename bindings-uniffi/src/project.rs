//! A project: one connection for its state and locks.

use std::sync::Arc;
use std::time::Duration;

use zlink_store::{Error, ProjectId};

use crate::error::StoreError;
use crate::locks::DistributedLocks;
use crate::options::{ProjectOptions, whole};
use crate::state::ProjectState;
use crate::store::store;

/// A project's state and locks: one connection, one life. Nothing connects before the first operation.
#[derive(uniffi::Object)]
pub struct Project(zlink_store::Project);

#[uniffi::export]
impl Project {
    /// Makes a project at the URL, without I/O.
    #[uniffi::constructor]
    pub fn open(url: &str, workspace: &str, project: &str, options: ProjectOptions) -> Result<Arc<Self>, StoreError> {
        let options = options.into_core()?;
        Ok(Arc::new(Self(zlink_store::Project::open(url, ProjectId::new(workspace, project)?, options)?)))
    }

    /// The project's state.
    pub fn state(&self) -> Arc<ProjectState> {
        Arc::new(ProjectState { state: self.0.state(), project: self.0.clone() })
    }

    /// The project's locks, for one invocation: it holds at most 16 leases at a time. With `within_ms`, the invocation ends so
    /// many milliseconds from now, and no wait for a lock goes on past that.
    #[uniffi::method(default(within_ms = None))]
    pub fn locks(&self, within_ms: Option<i64>) -> Result<Arc<DistributedLocks>, StoreError> {
        let locks = match within_ms {
            Some(ms) => self.0.locks_within(within(ms)?),
            None => self.0.locks(),
        };
        Ok(Arc::new(DistributedLocks { locks, project: self.0.clone() }))
    }
}

store! {
    ///
    /// Who waits for a lock is told `Closed` at once. Leases that are held stay until they expire.
    Project
}

impl From<zlink_store::Project> for Project {
    fn from(project: zlink_store::Project) -> Self {
        Self(project)
    }
}

fn within(ms: i64) -> Result<Duration, Error> {
    whole("withinMs", ms, "a whole number of ms, 0 or more").map(Duration::from_millis)
}
