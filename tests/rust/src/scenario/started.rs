//! Calls that go on while the steps behind them run.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;

use tokio::task::JoinHandle;
use zlink_store::Cancellation;

use super::calls::Calling;
use super::value::{Fault, Val};

#[derive(Default)]
pub(crate) struct Started(HashMap<String, One>);

struct One {
    cancellation: Cancellation,
    task: JoinHandle<Result<Val, Fault>>,
}

impl Started {
    /// Starts a call. It is under way, and before those that are started after it, when this is done.
    pub(crate) async fn start(&mut self, name: String, mut calling: Calling, cancellation: Cancellation) {
        let first = poll_fn(|context| Poll::Ready(calling.as_mut().poll(context))).await;
        let task = tokio::spawn(async move {
            match first {
                Poll::Ready(result) => result,
                Poll::Pending => calling.await,
            }
        });
        self.0.insert(name, One { cancellation, task });
    }

    pub(crate) fn cancel(&self, name: &str) -> Result<(), Fault> {
        self.0.get(name).ok_or_else(|| unknown(name))?.cancellation.cancel();
        Ok(())
    }

    /// Fails if the call is done.
    pub(crate) fn pending(&self, name: &str) -> Result<(), Fault> {
        let done = self.0.get(name).ok_or_else(|| unknown(name))?.task.is_finished();
        if done { Err(format!("{name} is done already")) } else { Ok(()) }
    }

    pub(crate) async fn result(&mut self, name: &str) -> Result<Val, Fault> {
        let one = self.0.remove(name).ok_or_else(|| unknown(name))?;
        one.task.await.map_err(|error| error.to_string())?
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.0.values().for_each(|one| one.task.abort());
    }
}

fn unknown(name: &str) -> Fault {
    format!("no call {name} was started")
}
