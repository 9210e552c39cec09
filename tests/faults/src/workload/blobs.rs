//! A client of a Relocation Store. Two contents compete for each reference.

use std::sync::Arc;

use zlink_store::{BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Retention};

use super::value::blob;
use super::{Asked, RETENTION_MS, Shared};
use crate::history::Lost;
use crate::linear::{Guard, Op, State};
use crate::party::Relocation;
use crate::verdict::Problem;

pub(super) struct Client {
    number: u32,
    store: Relocation,
    at: Arc<Shared>,
    random: fastrand::Rng,
}

impl Client {
    pub(super) fn new(number: u32, store: Relocation, at: Arc<Shared>) -> Self {
        Self { number, store, at, random: fastrand::Rng::with_seed(u64::from(number)) }
    }

    pub(super) async fn run(mut self) {
        while self.at.goes_on(&mut self.random).await {
            let reference = self.random.usize(..self.at.plan.blobs.len());
            match self.random.u8(..10) {
                0..=3 => {
                    let variant = if self.random.u8(..5) == 0 { 2 } else { 1 };
                    self.put(reference, variant).await;
                }
                4..=6 => self.read(reference).await,
                7 => self.renew(reference).await,
                _ => self.delete(reference).await,
            }
        }
    }

    async fn put(&self, reference: usize, variant: u64) {
        let bytes = blob(reference, variant, self.at.plan.blobs[reference]);
        let Asked { begun, ended, answer } =
            self.at.ask("a blob put", self.store.put(named(reference), bytes, retention())).await;
        let (ended, guard, set) = match answer {
            Ok(BlobPutResult::Stored { .. }) => (Some(ended), Guard::Is(None), Some(Some(variant))),
            Ok(BlobPutResult::AlreadyStored { .. }) => (Some(ended), Guard::Is(Some(variant)), None),
            Ok(BlobPutResult::Conflict { .. }) => {
                self.at.history.with(|log| log.counts.conflicts += 1);
                return self.log(reference, Guard::Another(variant), None, begun, Some(ended));
            }
            Err(Lost::NotApplied) => return,
            Err(Lost::Unknown) => (None, Guard::Is(None), Some(Some(variant))),
        };
        self.acknowledged(ended);
        self.log(reference, guard, set, begun, ended);
    }

    async fn read(&self, reference: usize) {
        let Asked { begun, ended, answer } = self.at.ask("a blob read", self.store.read(named(reference))).await;
        let Ok(answer) = answer else { return };
        self.at.history.with(|log| log.counts.read += 1);
        let state: State = match answer {
            BlobReadResult::Missing { .. } => None,
            BlobReadResult::Found { bytes, .. } => {
                let size = self.at.plan.blobs[reference];
                let variant = [1, 2].into_iter().find(|&variant| blob(reference, variant, size) == bytes);
                if variant.is_none() {
                    return self.at.history.problem(Problem::Wrong, format!("blob {reference} holds what nobody put"));
                }
                variant
            }
        };
        self.log(reference, Guard::Is(state), None, begun, Some(ended));
    }

    async fn renew(&self, reference: usize) {
        let Asked { begun, ended, answer } = self.at.ask("a blob renewal", self.store.renew(named(reference), retention())).await;
        let guard = match answer {
            Ok(BlobRenewResult::Renewed { .. }) => Guard::Not(None),
            Ok(BlobRenewResult::Missing { .. }) => Guard::Is(None),
            Err(_) => return,
        };
        self.acknowledged(Some(ended));
        self.log(reference, guard, None, begun, Some(ended));
    }

    async fn delete(&self, reference: usize) {
        let Asked { begun, ended, answer } = self.at.ask("a blob delete", self.store.delete(named(reference))).await;
        let ended = match answer {
            Ok(()) => Some(ended),
            Err(Lost::NotApplied) => return,
            Err(Lost::Unknown) => None,
        };
        self.acknowledged(ended);
        self.log(reference, Guard::Any, Some(None), begun, ended);
    }

    fn acknowledged(&self, ended: Option<u64>) {
        if ended.is_some() {
            self.at.history.with(|log| log.counts.acknowledged += 1);
        }
    }

    fn log(&self, reference: usize, guard: Guard, set: Option<State>, begun: u64, ended: Option<u64>) {
        let op = Op { client: self.number, guard, set, begun, ended };
        self.at.history.with(|log| log.op(named(reference).as_str(), op));
    }

    /// Looks at everything.
    pub(super) async fn end(self) {
        for reference in 0..self.at.plan.blobs.len() {
            self.read(reference).await;
        }
    }
}

fn named(reference: usize) -> BlobReference {
    BlobReference::new(format!("blob/{reference}")).expect("a legal reference")
}

fn retention() -> Retention {
    Retention::from_ms(RETENTION_MS).expect("a legal retention")
}
