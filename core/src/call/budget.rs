//! The bound on bytes in flight. Past it operations wait (and the wait counts against their timeout), they don't pile up.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::contract::Error;

const UNIT: usize = 1_024;

/// For everything but blobs: 128 MiB in one process.
pub(crate) static SMALL: Budget = Budget(Semaphore::const_new(128 * 1_024));
/// For blobs, so that neither kind starves the other: 128 MiB in one process.
pub(crate) static BLOBS: Budget = Budget(Semaphore::const_new(128 * 1_024));

/// One bound, in units of 1 KiB.
pub(crate) struct Budget(Semaphore);

impl Budget {
    /// Waits for room for `bytes`; the permit gives it back.
    pub(crate) async fn room(&'static self, bytes: usize) -> Result<SemaphorePermit<'static>, Error> {
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).map_err(|_| Error::internal("an operation over 4 TiB"))?;
        match self.0.try_acquire_many(units) {
            Ok(permit) => Ok(permit),
            Err(_) => self.0.acquire_many(units).await.map_err(|_| Error::internal("the budget was closed")),
        }
    }
}
