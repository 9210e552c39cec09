//! Locks: leases with fencing tokens.

use std::fmt;
use std::time::Instant;

use super::{Error, Name, Namespace, StoreTime, limits};

/// How a lock is acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOptions {
    /// The lock's namespace; `default` by default.
    pub namespace: Namespace,
    /// How long to wait for it, 0..=10,000 ms; 0 by default: it is taken only if it is free and nobody waits.
    pub wait_ms: u64,
    /// How long the lease lasts, 5,000..=60,000 ms; 30,000 by default.
    pub lease_ms: u64,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self { namespace: Namespace::of_locks(), wait_ms: 0, lease_ms: limits::DEFAULT_LEASE_MS }
    }
}

impl LockOptions {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        if self.wait_ms > limits::MAX_LOCK_WAIT_MS {
            let said = format!("must be a whole number of ms in 0..={}, got {}", limits::MAX_LOCK_WAIT_MS, self.wait_ms);
            return Err(Error::argument("waitMs", said));
        }
        check_lease_ms(self.lease_ms)
    }
}

pub(crate) fn check_lease_ms(lease_ms: u64) -> Result<(), Error> {
    if (limits::MIN_LEASE_MS..=limits::MAX_LEASE_MS).contains(&lease_ms) {
        return Ok(());
    }
    let said = format!("must be a whole number of ms in {}..={}, got {lease_ms}", limits::MIN_LEASE_MS, limits::MAX_LEASE_MS);
    Err(Error::argument("leaseMs", said))
}

/// Which lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LockName {
    pub(crate) namespace: Namespace,
    pub(crate) key: Name,
}

/// Names one lease: 128 random bits, 32 hexadecimal digits as text. Whoever knows it may renew and release the lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LeaseId(pub(crate) [u8; 16]);

impl LeaseId {
    /// `None`: no lease has this id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if text.len() != 32 || !text.as_bytes().iter().all(digits) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// An id lets its bearer release the lease, so it is not for logs.
impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseId(…)")
    }
}

/// A lease as an engine grants or finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) lock: LockName,
    pub(crate) id: LeaseId,
    pub(crate) token: u64,
    pub(crate) expires_at: StoreTime,
    /// How long it was asked for: the length of a renewal for which none is said.
    pub(crate) lease_ms: u64,
    /// When what brought it was sent, by the monotonic clock: it has expired at most its length after that.
    pub(crate) sent: Instant,
}

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RenewResult {
    /// The lease lasts until then.
    Renewed {
        /// The engine's now + the length.
        expires_at: StoreTime,
    },
    /// The lease is lost or expired.
    Lost,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReleaseResult {
    /// The lock is free, or was released before through the same object.
    Released,
    /// The lease was lost or had expired already.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_from_its_text_and_from_no_other() {
        let id = LeaseId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(LeaseId::parse(&id.to_string()), Some(id));
        for other in ["", "0", &id.to_string().to_uppercase(), &"g".repeat(32), &"+".repeat(32), &"0".repeat(33)] {
            assert_eq!(LeaseId::parse(other), None, "{other}");
        }
        assert!(!format!("{id:?}").contains("0eff"));
    }
}
