//! The model of a Relocation Store.

use std::collections::HashMap;

use bytes::Bytes;
use zlink_store::{BlobPutResult, BlobReadResult, BlobRenewResult, Retention, StoreTime};

use super::expect::{Mismatch, same};

/// Blobs by reference, with their expiry; expired ones too.
#[derive(Debug, Default)]
pub(crate) struct Blobs(HashMap<String, (Bytes, StoreTime)>);

impl Blobs {
    fn live(&self, reference: &str, now: StoreTime) -> Option<&(Bytes, StoreTime)> {
        self.0.get(reference).filter(|(_, expires_at)| *expires_at > now)
    }

    pub(crate) fn check_put(
        &mut self,
        reference: &str,
        bytes: &Bytes,
        retention: Retention,
        answer: &BlobPutResult,
    ) -> Result<StoreTime, Mismatch> {
        let now = match answer {
            BlobPutResult::Stored { store_now, .. }
            | BlobPutResult::AlreadyStored { store_now, .. }
            | BlobPutResult::Conflict { store_now } => *store_now,
        };
        let expected = match self.live(reference, now) {
            None => BlobPutResult::Stored { expires_at: now.plus(retention), store_now: now },
            Some((there, expires_at)) if there == bytes => {
                BlobPutResult::AlreadyStored { expires_at: *expires_at, store_now: now }
            }
            Some(_) => BlobPutResult::Conflict { store_now: now },
        };
        same("blob put", answer, &expected, reference)?;
        if let BlobPutResult::Stored { expires_at, .. } = expected {
            self.0.insert(reference.to_owned(), (bytes.clone(), expires_at));
        }
        Ok(now)
    }

    pub(crate) fn check_read(&self, reference: &str, answer: &BlobReadResult) -> Result<StoreTime, Mismatch> {
        let (now, found) = match answer {
            BlobReadResult::Missing { store_now } => (*store_now, None),
            BlobReadResult::Found { bytes, expires_at, store_now } => (*store_now, Some((bytes.clone(), *expires_at))),
        };
        let expected = self.live(reference, now);
        if found.as_ref() != expected {
            let size = |blob: Option<&(Bytes, StoreTime)>| blob.map(|(bytes, expires_at)| (bytes.len(), *expires_at));
            let (found, expected) = (size(found.as_ref()), size(expected));
            let said = format!("blob read at {now:?}: the store says {found:?} (or other bytes), the model {expected:?}");
            return Err(Mismatch::new(said, [reference]));
        }
        Ok(now)
    }

    pub(crate) fn check_renew(
        &mut self,
        reference: &str,
        retention: Retention,
        answer: &BlobRenewResult,
    ) -> Result<StoreTime, Mismatch> {
        let now = match answer {
            BlobRenewResult::Missing { store_now } | BlobRenewResult::Renewed { store_now, .. } => *store_now,
        };
        let expected = match self.live(reference, now) {
            None => BlobRenewResult::Missing { store_now: now },
            Some(_) => BlobRenewResult::Renewed { expires_at: now.plus(retention), store_now: now },
        };
        same("blob renew", answer, &expected, reference)?;
        if let (BlobRenewResult::Renewed { expires_at, .. }, Some(blob)) = (expected, self.0.get_mut(reference)) {
            blob.1 = expires_at;
        }
        Ok(now)
    }

    pub(crate) fn delete(&mut self, reference: &str) {
        self.0.remove(reference);
    }
}
