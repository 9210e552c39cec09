//! The one place where time and random numbers come from, so that a test can put its own in their place.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::contract::{StoreTime, limits};

/// Where an engine takes the time of day and random bytes from.
pub(crate) trait Ambient: Send + Sync + fmt::Debug {
    /// The time of day.
    fn now(&self) -> StoreTime;
    /// Fills `buffer` with bytes that nobody can guess.
    fn fill_random(&self, buffer: &mut [u8]);
}

/// The machine's own clock and random source.
pub(crate) fn system() -> Arc<dyn Ambient> {
    Arc::new(System)
}

/// `N` random bytes from `ambient`.
pub(crate) fn random<const N: usize>(ambient: &dyn Ambient) -> [u8; N] {
    let mut bytes = [0; N];
    ambient.fill_random(&mut bytes);
    bytes
}

/// Between half and all of `time`, so that those who met once do not meet again.
pub(crate) fn jittered(time: Duration, ambient: &dyn Ambient) -> Duration {
    let [dice] = random(ambient);
    time / 2 + time * u32::from(dice) / 512
}

/// The monotonic clock: for deadlines and latencies only, never for expiry.
#[expect(clippy::disallowed_methods, reason = "this is the module that may")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

#[derive(Debug)]
struct System;

impl Ambient for System {
    #[expect(clippy::disallowed_methods, reason = "this is the module that may")]
    fn now(&self) -> StoreTime {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        StoreTime::from_unix_ms(u64::try_from(since.as_millis()).unwrap_or(limits::MAX_TIME_MS))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the module that may")]
    fn fill_random(&self, buffer: &mut [u8]) {
        // Without random bytes versions and ids could come twice, which nothing above could notice.
        if let Err(error) = getrandom::fill(buffer) {
            panic!("the operating system gives no random bytes: {error}");
        }
    }
}
