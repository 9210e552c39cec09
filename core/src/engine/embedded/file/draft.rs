//! One round of commits: what has been accepted and not yet been synced lies over the state before it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::blobs::Upload;
use super::database::{Change, FileView, full_key};
use crate::contract::Error;
use crate::engine::embedded::record::UploadId;
use crate::engine::embedded::storage::{Draft, Table, View};

/// What a round will write.
pub(super) struct Round {
    pub(super) view: Arc<FileView>,
    changes: HashMap<Vec<u8>, Option<Bytes>>,
    /// Bytes to write.
    pub(super) size: usize,
    pub(super) sequence: u64,
    pub(super) grown: i64,
    pub(super) uploads: Vec<Upload>,
    pub(super) discarded: Vec<UploadId>,
}

/// What one operation changes; taken into the round if it succeeds.
#[derive(Default)]
pub(super) struct Drafted {
    changes: HashMap<Vec<u8>, Option<Bytes>>,
    sequences: u64,
    grown: i64,
    uploads: Vec<Upload>,
    discarded: Vec<UploadId>,
}

/// What one operation sees: its own changes over the round's over the view.
pub(super) struct OneDraft<'a> {
    round: &'a Round,
    pub(super) drafted: Drafted,
}

impl Round {
    pub(super) fn new(view: Arc<FileView>) -> Self {
        let sequence = view.meta.sequence;
        Self { view, changes: HashMap::new(), size: 0, sequence, grown: 0, uploads: vec![], discarded: vec![] }
    }

    pub(super) fn draft(&self) -> OneDraft<'_> {
        OneDraft { round: self, drafted: Drafted::default() }
    }

    pub(super) fn accept(&mut self, drafted: Drafted) {
        for (key, value) in &drafted.changes {
            self.size += key.len() + value.as_ref().map_or(0, Bytes::len);
        }
        self.changes.extend(drafted.changes);
        self.sequence += drafted.sequences;
        self.grown += drafted.grown;
        self.uploads.extend(drafted.uploads);
        self.discarded.extend(drafted.discarded);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn take_changes(&mut self) -> impl Iterator<Item = Change> + use<> {
        std::mem::take(&mut self.changes).into_iter()
    }
}

impl Drafted {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether it needs room on the disk. What makes the data smaller is let through when there is none.
    pub(super) fn needs_room(&self) -> bool {
        self.grown >= 0 && self.changes.values().any(Option::is_some)
    }
}

impl Draft for OneDraft<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let full = full_key(table, key);
        match self.drafted.changes.get(&full).or_else(|| self.round.changes.get(&full)) {
            Some(changed) => Ok(changed.clone()),
            None => self.round.view.get(table, key),
        }
    }

    fn set(&mut self, table: Table, key: &[u8], value: Bytes) {
        self.drafted.changes.insert(full_key(table, key), Some(value));
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        self.drafted.changes.insert(full_key(table, key), None);
    }

    fn next_sequence(&mut self) -> u64 {
        self.drafted.sequences += 1;
        self.round.sequence + self.drafted.sequences
    }

    fn weigh(&mut self, bytes: i64) {
        self.drafted.grown += bytes;
    }

    fn adopt(&mut self, upload: Upload) {
        self.drafted.uploads.push(upload);
    }

    fn discard(&mut self, upload: UploadId) {
        self.drafted.discarded.push(upload);
    }
}
