//! A project's state and locks, of some language.

use std::time::Duration;

use serde_json::{Value as Json, json};
use zlink_store::{
    DistributedLocks, Error, LockLease, LockOptions, ProjectId, ProjectOptions, ReleaseResult, StateDeleteResult, StateNamespace,
    StateSetResult, StateWriteOptions,
};

use super::participant::Remote;
use super::{Answer, Party, Store, ms, wire};

const WORKSPACE: &str = "acme";
const NAMESPACE: &str = "load";

/// A project.
pub type Project = Store<zlink_store::Project>;

/// One namespace of its state.
#[derive(Clone, Debug)]
pub enum State {
    /// The core's own.
    Core(StateNamespace),
    /// A binding's.
    Remote(Remote),
}

/// Its locks, for one invocation.
#[derive(Clone, Debug)]
pub enum Locks {
    /// The core's own.
    Core(DistributedLocks),
    /// A binding's, and the invocation's number.
    Remote(Remote, u64),
}

/// A lease.
#[derive(Debug)]
pub struct Grant {
    /// Its fencing token.
    pub token: u64,
    lease: Lease,
}

#[derive(Debug)]
enum Lease {
    Core(LockLease),
    Remote(Remote, u64),
}

/// An entry, as far as the load looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number that is its value.
    pub value: u64,
    /// Its version.
    pub version: u64,
}

/// What became of a `set` or `delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// It was done; with the entry's version, unless it was deleted.
    Done(Option<u64>),
    /// Nothing was there to delete.
    Missing,
    /// Another version was there.
    Conflict,
}

impl Party {
    /// A project on Redis.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn project(self, url: &str, name: &str, timeout: Duration) -> Project {
        match self.remote() {
            None => {
                let options = ProjectOptions::default().with_operation_timeout_ms(ms(timeout));
                let id = ProjectId::new(WORKSPACE, name).expect("a legal name");
                Project::Core(zlink_store::Project::open(url, id, options).expect("a legal URL"))
            }
            Some(remote) => {
                remote.open("project", url, &json!({ "workspace": WORKSPACE, "project": name }), timeout).await;
                Project::Remote(remote)
            }
        }
    }
}

impl Project {
    /// The namespace that the load uses.
    ///
    /// # Panics
    /// Never: the name is legal.
    pub fn state(&self) -> State {
        match self {
            Self::Core(project) => State::Core(project.state().namespace(NAMESPACE).expect("a legal name")),
            Self::Remote(remote) => State::Remote(*remote),
        }
    }

    /// The locks of a new invocation.
    pub fn locks(&self) -> Locks {
        match self {
            Self::Core(project) => Locks::Core(project.locks()),
            Self::Remote(remote) => Locks::Remote(*remote, remote.number()),
        }
    }
}

impl State {
    /// The entry, if it is there.
    pub fn get(&self, key: &str) -> Answer<Option<Entry>> {
        match self {
            Self::Core(state) => {
                let got = state.get(key);
                Box::pin(async move { got.await?.map(|entry| entry_of(entry.value.as_str(), entry.version)).transpose() })
            }
            Self::Remote(remote) => remote.ask("stateGet", json!({ "namespace": NAMESPACE, "key": key }), |form| {
                if wire::text(&form, "kind")? == "missing" {
                    return Ok(None);
                }
                entry_of(wire::text(&form, "json")?, wire::number(&form, "version")?).map(Some)
            }),
        }
    }

    /// Writes it.
    pub fn set(&self, key: &str, value: u64, expected_version: Option<u64>) -> Answer<Set> {
        let text = json!({ "id": value }).to_string();
        match self {
            Self::Core(state) => {
                let set = state.set(key, text, StateWriteOptions { expected_version, ttl_seconds: None });
                Box::pin(async move {
                    Ok(match set.await? {
                        StateSetResult::Stored(entry) => Set::Done(Some(entry.version)),
                        StateSetResult::Conflict => Set::Conflict,
                        StateSetResult::LimitReached => return Err(Error::internal("a few entries are too many")),
                    })
                })
            }
            Self::Remote(remote) => {
                let fields = json!({ "namespace": NAMESPACE, "key": key, "json": text });
                remote.ask("stateSet", expecting(fields, expected_version), |form| match wire::text(&form, "kind")? {
                    "stored" => wire::number(&form, "version").map(Some).map(Set::Done),
                    "conflict" => Ok(Set::Conflict),
                    _ => Err(wire::strange(&form)),
                })
            }
        }
    }

    /// Deletes it.
    pub fn delete(&self, key: &str, expected_version: Option<u64>) -> Answer<Set> {
        match self {
            Self::Core(state) => {
                let deleted = state.delete(key, expected_version);
                Box::pin(async move {
                    Ok(match deleted.await? {
                        StateDeleteResult::Deleted => Set::Done(None),
                        StateDeleteResult::Missing => Set::Missing,
                        StateDeleteResult::Conflict => Set::Conflict,
                    })
                })
            }
            Self::Remote(remote) => {
                let fields = json!({ "namespace": NAMESPACE, "key": key });
                remote.ask("stateDelete", expecting(fields, expected_version), |form| match wire::text(&form, "kind")? {
                    "deleted" => Ok(Set::Done(None)),
                    "missing" => Ok(Set::Missing),
                    "conflict" => Ok(Set::Conflict),
                    _ => Err(wire::strange(&form)),
                })
            }
        }
    }
}

fn expecting(mut fields: Json, version: Option<u64>) -> Json {
    if let Some(version) = version {
        fields["expectedVersion"] = json!(version);
    }
    fields
}

fn entry_of(text: &str, version: u64) -> Result<Entry, Error> {
    let value: Json = text.parse().map_err(|_| Error::internal("what was read is no JSON"))?;
    Ok(Entry { value: wire::number(&value, "id")?, version })
}

impl Locks {
    /// The lock, or `None` if it could not be had in time.
    pub fn acquire(&self, key: &str, wait_ms: u64, lease_ms: u64) -> Answer<Option<Grant>> {
        match self {
            Self::Core(locks) => {
                let acquired = locks.acquire(key, LockOptions { wait_ms, lease_ms, ..LockOptions::default() });
                Box::pin(async move {
                    let lease = acquired.await?;
                    Ok(lease.map(|lease| Grant { token: lease.fencing_token(), lease: Lease::Core(lease) }))
                })
            }
            Self::Remote(remote, invocation) => {
                let (remote, lease) = (*remote, remote.number());
                let fields =
                    json!({ "invocation": invocation, "lease": lease, "key": key, "waitMs": wait_ms, "leaseMs": lease_ms });
                remote.ask("lockAcquire", fields, move |form| match wire::text(&form, "kind")? {
                    "lease" => {
                        Ok(Some(Grant { token: wire::number(&form, "fencingToken")?, lease: Lease::Remote(remote, lease) }))
                    }
                    "unavailable" => Ok(None),
                    _ => Err(wire::strange(&form)),
                })
            }
        }
    }
}

impl Grant {
    /// Gives the lock back; whether the lease was still there.
    pub fn release(&self) -> Answer<bool> {
        match &self.lease {
            Lease::Core(lease) => {
                let released = lease.release();
                Box::pin(async move { Ok(released.await? == ReleaseResult::Released) })
            }
            Lease::Remote(remote, lease) => {
                remote.ask("lockRelease", json!({ "lease": lease }), |form| Ok(wire::text(&form, "kind")? == "released"))
            }
        }
    }
}
