//! Work on the core's own threads.

use std::panic::AssertUnwindSafe;
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use zlink_store::{Error, spawn};

use crate::operation::panicked;

/// One task drives all, so that what was started first also goes first where several have waited for the same thing, such as a
/// connection. One that panics takes no other one along.
pub(crate) fn drive(work: impl Future<Output = ()> + Send + 'static) {
    static INBOX: OnceLock<mpsc::UnboundedSender<BoxFuture<'static, ()>>> = OnceLock::new();
    let inbox = INBOX.get_or_init(|| {
        let (inbox, mut came) = mpsc::unbounded_channel();
        spawn(async move {
            let mut under_way = FuturesUnordered::new();
            loop {
                tokio::select! {
                    biased;
                    work = came.recv() => match work {
                        Some(work) => under_way.push(work),
                        None => return,
                    },
                    Some(()) = under_way.next() => {}
                }
            }
        });
        inbox
    });
    // The receiver lives as long as the process.
    let _ = inbox.send(AssertUnwindSafe(work).catch_unwind().map(drop).boxed());
}

/// Lets `work` run to its end, whether the caller waits for it or not.
pub(crate) async fn finish(work: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    let (done, ended) = tokio::sync::oneshot::channel();
    spawn(async move {
        work.await;
        let _ = done.send(());
    });
    // It ended without a word only if it panicked.
    ended.await.map_err(|_| panicked())
}
