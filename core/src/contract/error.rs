//! Errors: a stable code, what became of the operation, and words for a person.

use std::fmt;

/// What kind of failure. The text form (`TIMEOUT` …) is stable and machine-readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// An argument is outside the contract's limits; the engine was not touched.
    InvalidArgument,
    /// The caller cancelled.
    Cancelled,
    /// The operation timeout passed.
    Timeout,
    /// No connection, connection lost, cluster down, failover under way, too few replicas acknowledged.
    Unavailable,
    /// Wrong credentials, or a command that the user may not run.
    Unauthenticated,
    /// The engine refused the write for want of memory or disk.
    OutOfMemory,
    /// Data of a newer layout, a foreign type under our key, or an engine that is too old.
    Incompatible,
    /// The store was disposed.
    Closed,
    /// A broken invariant of ours.
    Internal,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 9] = [
        Self::InvalidArgument,
        Self::Cancelled,
        Self::Timeout,
        Self::Unavailable,
        Self::Unauthenticated,
        Self::OutOfMemory,
        Self::Incompatible,
        Self::Closed,
        Self::Internal,
    ];

    /// The stable text form, such as `TIMEOUT`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Cancelled => "CANCELLED",
            Self::Timeout => "TIMEOUT",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::Incompatible => "INCOMPATIBLE",
            Self::Closed => "CLOSED",
            Self::Internal => "INTERNAL",
        }
    }
}

/// What became of the operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It surely changed nothing, and never will.
    NotApplied,
    /// It may have been applied, or may still be: read the key (or the reference) and compare.
    Unknown,
}

impl Outcome {
    /// The stable text form: `notApplied` or `unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplied => "notApplied",
            Self::Unknown => "unknown",
        }
    }
}

/// Why an operation gave no result. Closed results (missing, conflict, expired …) are never errors.
///
/// No message holds a password, a value's bytes, script text or an engine key.
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone)]
struct Parts {
    code: Code,
    outcome: Outcome,
    argument: Option<String>,
    message: String,
}

impl Error {
    /// An error with its outcome.
    pub fn new(code: Code, outcome: Outcome, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { code, outcome, argument: None, message: message.into() }))
    }

    /// An argument error: which argument, and what is wrong with it (`must be …, got …`).
    pub fn argument(argument: impl Into<String>, problem: impl fmt::Display) -> Self {
        let argument = argument.into();
        let message = format!("{argument} {problem}");
        Self(Box::new(Parts { code: Code::InvalidArgument, outcome: Outcome::NotApplied, argument: Some(argument), message }))
    }

    /// A broken invariant of ours; whether anything was applied is not known.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, Outcome::Unknown, message)
    }

    /// The store was disposed.
    pub fn closed() -> Self {
        Self::new(Code::Closed, Outcome::NotApplied, "the store is closed")
    }

    /// The caller cancelled.
    pub fn cancelled(outcome: Outcome) -> Self {
        Self::new(Code::Cancelled, outcome, "the operation was cancelled")
    }

    /// What kind of failure.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What became of the operation.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Whether the same call may succeed later without anybody mending anything. A write whose outcome is unknown is to be
    /// looked at before it is made again.
    pub fn retryable(&self) -> bool {
        matches!(self.0.code, Code::Timeout | Code::Unavailable | Code::OutOfMemory)
    }

    /// The argument that is wrong, such as `mutations[3].key`; only for `INVALID_ARGUMENT`.
    pub fn argument_name(&self) -> Option<&str> {
        self.0.argument.as_deref()
    }

    /// Words for a person.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The same error with another outcome.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    /// The same argument error, seen from outside: `key` inside `mutations[3]` becomes `mutations[3].key`.
    #[must_use]
    pub fn inside(mut self, place: &str) -> Self {
        if let Some(argument) = &mut self.0.argument {
            argument.insert_str(0, &format!("{place}."));
            self.0.message.insert_str(0, &format!("{place}."));
        }
        self
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({}, {}: {})", self.0.code.as_str(), self.0.outcome.as_str(), self.0.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
