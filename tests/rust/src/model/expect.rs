//! How a mismatch is told.

use std::fmt;

/// What an answer is not as the model has it.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// What went wrong.
    pub(crate) said: String,
    /// Keys, references or scans that it is about, as the log spells them.
    pub(crate) about: Vec<String>,
}

impl Mismatch {
    pub(crate) fn new(said: impl Into<String>, about: impl IntoIterator<Item = impl fmt::Debug>) -> Self {
        Self { said: said.into(), about: about.into_iter().map(|about| format!("{about:?}")).collect() }
    }
}

impl From<zlink_store::Error> for Mismatch {
    fn from(error: zlink_store::Error) -> Self {
        Self { said: format!("an operation failed: {error:?}"), about: Vec::new() }
    }
}

/// Fails unless `actual` is what the model has.
pub(crate) fn same<T: PartialEq + fmt::Debug>(
    what: &str,
    actual: T,
    expected: T,
    about: impl fmt::Debug,
) -> Result<(), Mismatch> {
    if actual == expected {
        return Ok(());
    }
    Err(Mismatch::new(format!("{what}: the store says {actual:?}, the model {expected:?}"), [about]))
}
