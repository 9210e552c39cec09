//! The process's own runtime: sockets, timers and background work of all stores live here, so that a store works under
//! any executor of its caller and outlives any of them.

use std::cell::RefCell;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, Timeout};

use crate::contract::Error;

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// A handle to the runtime, which starts at the first call and lives as long as the process.
pub(crate) fn handle() -> &'static Handle {
    RUNTIME
        .get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("zlink-store")
                .enable_all()
                .build()
                .unwrap_or_else(|error| panic!("the operating system gives no threads: {error}"))
        })
        .handle()
}

/// Runs `future` on the stores' own threads, for callers without an executor, such as bindings to other languages. It must not
/// block, and ends only by itself.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    // A future that drives many operations at once would be held up by tokio's budget for one.
    handle().spawn(tokio::task::unconstrained(future));
}

thread_local! {
    static GATHERED: RefCell<Option<Vec<BoxFuture<'static, ()>>>> = const { RefCell::new(None) };
}

/// Runs `future` on our own threads, or hands it to whoever [`gather`]s on this one.
pub(crate) fn start(future: impl Future<Output = ()> + Send + 'static) {
    let left = GATHERED.with_borrow_mut(|gathered| match gathered {
        Some(gathered) => {
            // One that panics takes no other one along.
            gathered.push(Box::pin(AssertUnwindSafe(future).catch_unwind().map(drop)));
            None
        }
        None => Some(future),
    });
    if let Some(future) = left {
        handle().spawn(future);
    }
}

/// Does `work`, and gives back what it has [`start`]ed, which the caller is to drive: so that what many operations share begins
/// when all of them have joined, and without another thread.
pub(crate) fn gather<T>(work: impl FnOnce() -> T) -> (T, Vec<BoxFuture<'static, ()>>) {
    struct Before(Option<Vec<BoxFuture<'static, ()>>>);
    impl Drop for Before {
        fn drop(&mut self) {
            GATHERED.set(self.0.take());
        }
    }
    let _before = Before(GATHERED.replace(Some(Vec::new())));
    let done = work();
    (done, GATHERED.take().unwrap_or_default())
}

/// `future`, ended at `deadline`. It may be polled from any executor.
pub(crate) fn timeout_at<F: Future>(deadline: Instant, future: F) -> Timeout<F> {
    let _timers = handle().enter();
    tokio::time::timeout_at(deadline.into(), future)
}

/// Waits until `instant`. It may be polled from any executor.
pub(crate) fn sleep_until(instant: Instant) -> Sleep {
    let _timers = handle().enter();
    tokio::time::sleep_until(instant.into())
}

/// Runs `future` on our own runtime; dropping the result cancels it at its next await.
pub(crate) fn spawn_scoped<T, F>(future: F) -> Scoped<T>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    Scoped(handle().spawn(future))
}

/// A task that ends with its handle.
pub(crate) struct Scoped<T>(JoinHandle<Result<T, Error>>);

impl<T> Future for Scoped<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|joined| match joined {
            Ok(result) => result,
            Err(error) => Err(Error::internal(format!("a background task ended early: {error}"))),
        })
    }
}

impl<T> Drop for Scoped<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
