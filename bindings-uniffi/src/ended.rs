//! Who waits for operations without being called.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::StoreError;

/// Operations that have ended, by the numbers that they were started with, for one reader: an event loop that watches a file
/// descriptor, or a thread that blocks. So no thread of this library ever runs, or waits for, code of the other language.
#[derive(uniffi::Object)]
pub struct EndedOperations {
    queue: Mutex<Queue>,
    came: Condvar,
    signal: Option<signal::Signal>,
}

#[derive(Default)]
struct Queue {
    numbers: Vec<u64>,
    /// The descriptor is readable.
    told: bool,
}

#[uniffi::export]
impl EndedOperations {
    /// Nothing has ended yet.
    #[uniffi::constructor]
    pub fn new() -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self { queue: Mutex::default(), came: Condvar::new(), signal: signal::open()? }))
    }

    /// What is readable while there are numbers to take; it is closed when this object is freed. Absent where event loops watch
    /// no descriptors.
    pub fn descriptor(&self) -> Option<i32> {
        self.signal.as_ref().map(signal::Signal::descriptor)
    }

    /// The numbers of those that have ended since the last call.
    pub fn take(&self) -> Vec<u64> {
        let mut queue = self.queue.lock();
        if std::mem::take(&mut queue.told)
            && let Some(signal) = &self.signal
        {
            signal.quiet();
        }
        std::mem::take(&mut queue.numbers)
    }

    /// Blocks until there is a number to take, at most `timeout_ms` milliseconds: for a thread of its own.
    pub fn block(&self, timeout_ms: u32) {
        let mut queue = self.queue.lock();
        if queue.numbers.is_empty() {
            self.came.wait_for(&mut queue, Duration::from_millis(timeout_ms.into()));
        }
    }
}

impl EndedOperations {
    pub(crate) fn push(&self, number: u64) {
        {
            let mut queue = self.queue.lock();
            queue.numbers.push(number);
            // Within the lock, so that what is taken and what is readable agree. One byte always fits.
            if !std::mem::replace(&mut queue.told, true)
                && let Some(signal) = &self.signal
            {
                signal.tell();
            }
        }
        self.came.notify_one();
    }
}

#[cfg(unix)]
mod signal {
    use std::io::{self, Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use zlink_store::{Code, Error, Outcome};

    /// Holds a byte while there is something.
    pub(super) struct Signal {
        teller: UnixStream,
        pub(super) told: UnixStream,
    }

    pub(super) fn open() -> Result<Option<Signal>, Error> {
        let pair = || -> io::Result<Signal> {
            let (teller, told) = UnixStream::pair()?;
            teller.set_nonblocking(true)?;
            told.set_nonblocking(true)?;
            Ok(Signal { teller, told })
        };
        pair().map(Some).map_err(|error| {
            let said = format!("the operating system gives no pair of sockets to wait for operations with: {error}");
            Error::new(Code::Unavailable, Outcome::NotApplied, said)
        })
    }

    impl Signal {
        pub(super) fn descriptor(&self) -> i32 {
            self.told.as_raw_fd()
        }

        pub(super) fn tell(&self) {
            let _ = (&self.teller).write(&[1]);
        }

        pub(super) fn quiet(&self) {
            let _ = (&self.told).read(&mut [0; 8]);
        }
    }
}

#[cfg(not(unix))]
mod signal {
    use zlink_store::Error;

    /// There is none.
    pub(super) enum Signal {}

    pub(super) fn open() -> Result<Option<Signal>, Error> {
        Ok(None)
    }

    impl Signal {
        pub(super) fn descriptor(&self) -> i32 {
            match *self {}
        }

        pub(super) fn tell(&self) {
            match *self {}
        }

        pub(super) fn quiet(&self) {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once_in_order() {
        let ended = EndedOperations::new().unwrap();
        assert!(ended.take().is_empty());
        for number in 0..1_000 {
            ended.push(number);
        }
        ended.block(60_000);
        assert_eq!(ended.take(), (0..1_000).collect::<Vec<_>>());
        assert!(ended.take().is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn one_byte_is_readable_exactly_while_there_is_something() {
        use std::io::Read;

        let ended = EndedOperations::new().unwrap();
        let waiting = || {
            let mut bytes = [0; 8];
            (&ended.signal.as_ref().unwrap().told).read(&mut bytes).ok()
        };
        assert_eq!((ended.descriptor().is_some(), waiting()), (true, None));
        for _ in 0..3 {
            ended.push(1);
            ended.push(2);
            assert_eq!(ended.take(), [1, 2]);
            assert_eq!(waiting(), None);
        }
        ended.push(1);
        ended.push(2);
        assert_eq!(waiting(), Some(1));
    }

    #[test]
    fn a_thread_that_blocks_goes_on_when_something_ends() {
        let ended = EndedOperations::new().unwrap();
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| {
                let mut taken = Vec::new();
                while taken.is_empty() {
                    ended.block(60_000);
                    taken = ended.take();
                }
                taken
            });
            ended.push(7);
            assert_eq!(blocked.join().unwrap(), [7]);
        });
    }
}
