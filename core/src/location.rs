//! The Location Store: small records under opaque keys.

use std::fmt;
use std::sync::Arc;

use crate::call::{Gate, Kind, Operation, OperationTimeout, SMALL, StoreStats};
use crate::contract::{Error, Key, ReadResult, ScanRequest, ScanResult, StoreTime, WriteRequest, WriteResult, limits};
use crate::engine::{Endpoint, LocationEngine, StoreOptions};

/// Small records under opaque keys, with conditional atomic batches, snapshot scans and the engine's clock.
///
/// Clones share the store. Nothing connects before the first operation. When the last clone is dropped, or at
/// [`close`](Self::close), the store gives up its connection; stores with the same connection settings share one.
#[derive(Clone)]
pub struct LocationStore {
    engine: Arc<dyn LocationEngine>,
    gate: Arc<Gate>,
}

impl LocationStore {
    /// Makes a store on the engine that `endpoint` names (a URL, or an [`Endpoint`]), without I/O; only a folder is claimed at
    /// once, and its data are opened in the background. That another process has it, or that it is another program's, is a
    /// fault of the set-up, which a program is told at its start, at the line that names the folder, and not by its first
    /// request; and from then on nobody else can take it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a wrong URL or option (the message says which part); for `file:` also `UNAVAILABLE` if the
    /// folder is in use, `INCOMPATIBLE` if it holds something else.
    pub fn open<E>(endpoint: E, options: StoreOptions) -> Result<Self, Error>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        let endpoint = endpoint.try_into()?;
        // Before the engine, which takes a folder at once.
        let timeout = OperationTimeout::new(options.operation_timeout_ms)?;
        Ok(Self::on(endpoint.open_location(&options)?, timeout))
    }

    /// A store on an engine at hand.
    pub(crate) fn on(engine: Arc<dyn LocationEngine>, timeout: OperationTimeout) -> Self {
        let gate = Gate::new(timeout, engine.answers_inline());
        Self { engine, gate }
    }

    /// Reads one key: one observation of value, version, expiry and clock.
    pub fn read(&self, key: Key) -> Operation<ReadResult> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Read, &SMALL, key.as_bytes().len(), move |call| engine.read(key, call))
    }

    /// Checks all conditions and, if all hold, applies all mutations as one atomic commit.
    pub fn write(&self, request: WriteRequest) -> Operation<WriteResult> {
        let size = match request.validate() {
            Ok(size) => size,
            Err(error) => return Operation::rejected(error),
        };
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Write, &SMALL, size, move |call| engine.write(request, call))
    }

    /// Reads one page of a snapshot scan.
    pub fn scan(&self, request: ScanRequest) -> Operation<ScanResult> {
        if let Err(error) = request.validate() {
            return Operation::rejected(error);
        }
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Scan, &SMALL, limits::MAX_ENCODED, move |call| engine.scan(request, call))
    }

    /// Asks the engine for its clock: shows that it answers.
    pub fn ping(&self) -> Operation<StoreTime> {
        let engine = Arc::clone(&self.engine);
        self.gate.pass(Kind::Ping, &SMALL, 0, move |call| engine.ping(call))
    }

    /// Whether every operation is answered from memory at once, without blocking (see [`Operation::poll_now`]).
    pub fn answers_inline(&self) -> bool {
        self.gate.is_inline()
    }

    /// What this store has counted so far.
    pub fn stats(&self) -> StoreStats {
        self.gate.stats(self.engine.counters())
    }

    /// Fails new operations with `CLOSED`, waits for those under way (at most the operation timeout) and gives up the
    /// connection. Closing again does nothing more.
    pub async fn close(&self) {
        self.gate.close().await;
        self.engine.close().await;
    }
}

impl fmt::Debug for LocationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocationStore").finish_non_exhaustive()
    }
}
