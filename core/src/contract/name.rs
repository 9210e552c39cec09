//! Names of project state and locks (spec: project.md, Names).

use std::fmt;
use std::sync::Arc;

use super::text::checked_text;
use super::{Error, limits};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $argument:literal, $max:expr) => {
        checked_text! { $(#[$doc])* $name, "The name." }

        impl $name {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// `INVALID_ARGUMENT` if it is too short, too long or has a character that is not allowed.
            pub fn new(name: impl Into<Arc<str>>) -> Result<Self, Error> {
                let name = name.into();
                check($argument, &name, $max)?;
                Ok(Self(name))
            }
        }
    };
}

name! {
    /// A workspace: 1..=128 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit.
    Workspace, "workspace", limits::MAX_NAMESPACE
}
name! {
    /// A project of a workspace: 1..=128 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit.
    ProjectName, "project", limits::MAX_NAMESPACE
}
name! {
    /// A namespace of state entries or locks: 1..=128 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or digit.
    Namespace, "namespace", limits::MAX_NAMESPACE
}
name! {
    /// The key of a state entry or a lock in its namespace: 1..=255 of `A-Z a-z 0-9 . _ : / -`, beginning with a letter or
    /// digit.
    Name, "key", limits::MAX_NAME
}

impl Namespace {
    /// The namespace of locks for which none is said: `default`.
    pub fn of_locks() -> Self {
        Self("default".into())
    }
}

/// Whose state and locks: a project of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectId {
    /// The workspace.
    pub workspace: Workspace,
    /// The project.
    pub project: ProjectName,
}

impl ProjectId {
    /// Checks and takes both names.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the argument `workspace` or `project`.
    pub fn new(workspace: impl Into<Arc<str>>, project: impl Into<Arc<str>>) -> Result<Self, Error> {
        Ok(Self { workspace: Workspace::new(workspace)?, project: ProjectName::new(project)? })
    }
}

fn check(argument: &str, name: &str, max: usize) -> Result<(), Error> {
    let characters = name.chars().count();
    if !(1..=max).contains(&characters) {
        return Err(Error::argument(argument, format!("must have 1..={max} characters, got {characters}")));
    }
    if !name.as_bytes()[0].is_ascii_alphanumeric() {
        return Err(Error::argument(argument, "must begin with an ASCII letter or digit"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    if !name.bytes().all(allowed) {
        return Err(Error::argument(argument, "may only have ASCII letters, digits and . _ : / -"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_matches_or_none_of_it() {
        for good in ["a", "0", "a:b", "A/b.c-d_e", &"k".repeat(255)] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".a", "-a", ":", "_", "/", "a\n", "\na", "a b", "ä", "a\u{e9}", "a\0", "a{b}", &"k".repeat(256)] {
            let error = Name::new(bad).unwrap_err();
            assert_eq!(error.argument_name(), Some("key"), "{bad:?}");
        }
        assert_eq!(Namespace::new("n".repeat(129)).unwrap_err().argument_name(), Some("namespace"));
        assert_eq!(ProjectId::new("w", "").unwrap_err().argument_name(), Some("project"));
        assert_eq!(ProjectId::new("w w", "p").unwrap_err().argument_name(), Some("workspace"));
    }
}
