//! The names of a project's keys: one hash tag, and so one slot of a Cluster, for all of them.

use bytes::Bytes;

use crate::contract::{LeaseId, LockName, Name, Namespace, ProjectId};

/// What every key of every project begins with. A store's keys begin with `{`, so no prefix of a store reaches here.
const SPACE: &str = "zlink-project";

/// The keys of one project.
///
/// The tag holds both names, the first with its length in front, so that no two projects meet; names have no braces.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    tag: String,
    /// The layout's format number.
    pub(super) format: Bytes,
    /// ZSET: names of state entries by expiry.
    pub(super) expiries: Bytes,
    /// What every script that changes something about locks is given first: see locks.lua.
    pub(super) locks: [Bytes; 7],
    /// For nothing else: it is written so that WAIT has something to wait for.
    pub(super) witness: Bytes,
}

impl Keys {
    pub(super) fn new(id: &ProjectId) -> Self {
        let (workspace, project) = (id.workspace.as_str(), id.project.as_str());
        let tag = format!("{SPACE}{{{}:{workspace}:{project}}}", workspace.len());
        let key = |name: &str| Bytes::from(format!("{tag}:{name}"));
        let format = key("f");
        // Leases, locks by expiry, queues, places, waiters by when they were heard, the last token.
        let locks = [format.clone(), key("l"), key("d"), key("q"), key("w"), key("h"), key("t")];
        Self { expiries: key("x"), witness: key("n"), format, locks, tag }
    }

    /// A state entry.
    pub(super) fn entry(&self, name: &[u8]) -> Bytes {
        [self.tag.as_bytes(), b":s:", name].concat().into()
    }

    /// What says for a minute that an acquire was given up.
    pub(super) fn cancelled(&self, id: LeaseId) -> Bytes {
        format!("{}:c:{id}", self.tag).into()
    }

    /// The keys of a read-only script on leases.
    pub(super) fn leases(&self) -> &[Bytes] {
        &self.locks[..2]
    }
}

/// What a state entry or a lock is called within its project: no two of them meet either.
pub(super) fn name(namespace: &Namespace, key: &Name) -> Bytes {
    format!("{}:{namespace}:{key}", namespace.as_str().len()).into()
}

/// The names in what [`name`] made.
pub(super) fn names(name: &[u8]) -> Option<LockName> {
    let (length, rest) = std::str::from_utf8(name).ok()?.split_once(':')?;
    let (namespace, key) = rest.split_at_checked(length.parse().ok()?)?;
    Some(LockName { namespace: Namespace::new(namespace).ok()?, key: Name::new(key.strip_prefix(':')?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_projects_and_no_two_names_meet() {
        let keys = |workspace, project| Keys::new(&ProjectId::new(workspace, project).unwrap());
        let name = |namespace, key| name(&Namespace::new(namespace).unwrap(), &Name::new(key).unwrap());
        assert_eq!(keys("acme", "shop").format, "zlink-project{4:acme:shop}:f");
        assert_ne!(keys("a:b", "c").format, keys("a", "b:c").format);
        assert_ne!(keys("1:a", "b").format, keys("1", "a:b").format);
        assert_ne!(name("a:b", "c"), name("a", "b:c"));
        let keys = keys("w", "p");
        assert_eq!(keys.entry(&name("n/s", "k:1")), "zlink-project{1:w:p}:s:3:n/s:k:1");
        let back = names(&name("a:b", "c:d")).unwrap();
        assert_eq!((back.namespace.as_str(), back.key.as_str()), ("a:b", "c:d"));
        for damaged in ["", "9:a:b", "1:ab", "x:a:b", "1:a:"] {
            assert_eq!(names(damaged.as_bytes()), None, "{damaged}");
        }
    }
}
