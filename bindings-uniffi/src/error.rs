//! Errors as the other languages see them.

use std::fmt;

use zlink_store::{Code, Error};

/// What became of an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Outcome {
    /// It surely changed nothing, and never will.
    NotApplied,
    /// It may have been applied, or may still be: read the key (or the reference) and compare.
    Unknown,
}

/// Why an operation gave no result: a variant for each code. `detail` has words for a person. Closed results (missing, conflict,
/// expired …) are never errors.
#[derive(Clone, Debug, uniffi::Error)]
pub enum StoreError {
    /// An argument is outside the contract's limits; the engine was not touched.
    InvalidArgument {
        /// The argument, such as `mutations[3].key`.
        argument: String,
        /// Which argument, and what is wrong with it.
        detail: String,
    },
    /// The caller cancelled.
    Cancelled {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// The operation timeout passed.
    Timeout {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// No connection, connection lost, cluster down, failover under way, too few replicas acknowledged.
    Unavailable {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// Wrong credentials, or a command that the user may not run.
    Unauthenticated {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// The engine refused the write for want of memory or disk.
    OutOfMemory {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// Data of a newer layout, a foreign type under our key, or an engine that is too old.
    Incompatible {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// The store was shut down.
    Closed {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
    /// A broken invariant of ours.
    Internal {
        /// What became of the operation.
        outcome: Outcome,
        /// Words for a person.
        detail: String,
    },
}

#[uniffi::export]
impl StoreError {
    /// The stable, machine-readable code, such as `TIMEOUT`; the same in every language.
    pub fn code(&self) -> String {
        self.core_code().as_str().to_owned()
    }

    /// What became of the operation.
    pub fn result_outcome(&self) -> Outcome {
        self.parts().0
    }

    /// Words for a person.
    pub fn text(&self) -> String {
        self.parts().1.to_owned()
    }

    /// Whether the same call may succeed later without anybody mending anything. A write whose outcome is unknown is to be
    /// looked at before it is made again.
    pub fn retryable(&self) -> bool {
        let (outcome, detail) = self.parts();
        let outcome = match outcome {
            Outcome::NotApplied => zlink_store::Outcome::NotApplied,
            Outcome::Unknown => zlink_store::Outcome::Unknown,
        };
        Error::new(self.core_code(), outcome, detail).retryable()
    }
}

impl StoreError {
    fn core_code(&self) -> Code {
        match self {
            Self::InvalidArgument { .. } => Code::InvalidArgument,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::Timeout { .. } => Code::Timeout,
            Self::Unavailable { .. } => Code::Unavailable,
            Self::Unauthenticated { .. } => Code::Unauthenticated,
            Self::OutOfMemory { .. } => Code::OutOfMemory,
            Self::Incompatible { .. } => Code::Incompatible,
            Self::Closed { .. } => Code::Closed,
            Self::Internal { .. } => Code::Internal,
        }
    }

    fn parts(&self) -> (Outcome, &str) {
        match self {
            Self::InvalidArgument { detail, .. } => (Outcome::NotApplied, detail),
            Self::Cancelled { outcome, detail }
            | Self::Timeout { outcome, detail }
            | Self::Unavailable { outcome, detail }
            | Self::Unauthenticated { outcome, detail }
            | Self::OutOfMemory { outcome, detail }
            | Self::Incompatible { outcome, detail }
            | Self::Closed { outcome, detail }
            | Self::Internal { outcome, detail } => (*outcome, detail),
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let detail = error.message().to_owned();
        let outcome = match error.outcome() {
            zlink_store::Outcome::NotApplied => Outcome::NotApplied,
            zlink_store::Outcome::Unknown => Outcome::Unknown,
        };
        match error.code() {
            Code::InvalidArgument => {
                Self::InvalidArgument { argument: error.argument_name().unwrap_or_default().to_owned(), detail }
            }
            Code::Cancelled => Self::Cancelled { outcome, detail },
            Code::Timeout => Self::Timeout { outcome, detail },
            Code::Unavailable => Self::Unavailable { outcome, detail },
            Code::Unauthenticated => Self::Unauthenticated { outcome, detail },
            Code::OutOfMemory => Self::OutOfMemory { outcome, detail },
            Code::Incompatible => Self::Incompatible { outcome, detail },
            Code::Closed => Self::Closed { outcome, detail },
            _ => Self::Internal { outcome, detail },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.parts().1)
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_variant_and_keeps_what_the_core_said() {
        for code in Code::ALL {
            for outcome in [zlink_store::Outcome::NotApplied, zlink_store::Outcome::Unknown] {
                let error = Error::new(code, outcome, "what, where and what to do");
                let seen = StoreError::from(error.clone());
                assert_eq!(seen.code(), code.as_str());
                assert_eq!(seen.retryable(), error.retryable());
                assert_eq!(seen.text(), error.message());
                if code != Code::InvalidArgument {
                    assert_eq!(seen.result_outcome() == Outcome::Unknown, outcome == zlink_store::Outcome::Unknown);
                }
            }
        }
    }
}
