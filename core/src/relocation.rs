//! The Relocation Store: immutable blobs under references that the caller issues.

use std::fmt;
use std::sync::Arc;

use crate::call::{BLOBS, Gate, Kind, Operation, OperationTimeout, SMALL, StoreStats};
use crate::contract::{BlobPutResult, BlobReadResult, BlobReference, BlobRenewResult, Error, Payload, Retention, StoreTime};
use crate::engine::{Endpoint, RelocationEngine, StoreOptions};

/// Immutable blobs of up to 64 MiB + 23 bytes. Clones share the store; see [`LocationStore`](crate::LocationStore) for its life.
#[derive(Clone)]
pub struct RelocationStore {
    engine: Arc<dyn RelocationEngine>,
    gate: Arc<Gate>,
}

impl RelocationStore {
    /// Makes a store on the engine that `endpoint` names, as [`LocationStore::open`](crate::LocationStore::open) does.
    ///
    /// # Errors
    /// As [`LocationStore::open`](crate::LocationStore::open).
    pub fn open<E>(endpoint: E, options: StoreOptions) -> Result<Self, Error>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        let endpoint = endpoint.try_into()?;
        // Before the engine, which takes a folder at once.
        let timeout = OperationTimeout::new(options.operation_timeout_ms)?;
        Ok(Self::on(endpoint.open_relocation(&options)?, timeout))
    }

    /// A store on an engine at hand.
    pub(crate) fn on(engine: Arc<dyn RelocationEngine>, timeout: OperationTimeout) -> Self {
        let gate = Gate::new(timeout, engine.answers_inline());
        Self { engine, gate }
    }

    /// Puts a blob. Retention counts from the commit, not from the start of the upload.
    pub fn put(&self, reference: BlobReference, payload: impl Into<Payload>, retention: Retention) -> Operation<BlobPutResult> {
        let payload = payload.into();
        if let Err(error) = payload.validate() {
            return Operation::rejected(error);
        }
        let engine = Arc::clone(&self.engine);
        let size = payload.size();
        self.gate.pass(Kind::Put, &BLOBS, size, move |call| engine.put(reference, payload, retention, call))
    }

    /// Reads a blob: exactly the bytes that were put, or missing.
    pub fn read(&self, reference: BlobReference) -> Operation<BlobReadResult> {
        let engine = Arc::clone(&self.engine);
        // How much of the budget of blobs it needs is known only once the engine has found it.
        self.gate.pass(Kind::Read, &SMALL, 0, move |call| engine.read(reference, call))
    }

    /// Sets the expiry to the engine's now + `retention`, also when that is earlier.
    pub fn renew(&self, reference: BlobReference, retention: Retention) -> Operation<BlobRenewResult> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Renew, &SMALL, 0, move |call| engine.renew(reference, retention, call))
    }

    /// Deletes a blob; a missing one is fine.
    pub fn delete(&self, reference: BlobReference) -> Operation<()> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Delete, &SMALL, 0, move |call| engine.delete(reference, call))
    }

    /// Asks the engine for its clock: shows that it answers.
    pub fn ping(&self) -> Operation<StoreTime> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Ping, &SMALL, 0, move |call| engine.ping(call))
    }

    /// Whether every operation on bytes at hand is answered from memory at once, without blocking.
    pub fn answers_inline(&self) -> bool {
        self.gate.is_inline()
    }

    /// What this store has counted so far.
    pub fn stats(&self) -> StoreStats {
        self.gate.stats(self.engine.counters())
    }

    /// As [`LocationStore::close`](crate::LocationStore::close).
    pub async fn close(&self) {
        self.gate.close().await;
        self.engine.close().await;
    }
}

impl fmt::Debug for RelocationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelocationStore").finish_non_exhaustive()
    }
}
