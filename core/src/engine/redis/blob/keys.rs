//! The names of one blob's keys. A blob has a hash tag, and so a slot of a Cluster, of its own.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::ambient::{self, Ambient};
use crate::contract::{BlobReference, KeyPrefix};

/// Names one upload of a blob; its segments carry it, so that two uploads of one reference never mix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Upload(pub(super) [u8; Self::LEN]);

impl Upload {
    pub(super) const LEN: usize = 22;

    pub(super) fn new(ambient: &dyn Ambient) -> Self {
        Self(token::<16, { Self::LEN }>(ambient))
    }
}

impl fmt::Display for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Names one change of a manifest, so that whoever made it knows it again after a lost answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub(super) [u8; Self::LEN]);

impl Mark {
    pub(super) const LEN: usize = 11;

    pub(super) fn new(ambient: &dyn Ambient) -> Self {
        Self(token::<8, { Self::LEN }>(ambient))
    }
}

/// `RAW` random bytes as `TEXT` characters.
fn token<const RAW: usize, const TEXT: usize>(ambient: &dyn Ambient) -> [u8; TEXT] {
    let mut text = [0; TEXT];
    let written = URL_SAFE_NO_PAD.encode_slice(ambient::random::<RAW>(ambient), &mut text);
    debug_assert_eq!(written.ok(), Some(TEXT));
    text
}

/// The keys of one reference.
///
/// The tag is the store's prefix, a colon and the reference's hash, whose length is fixed: two stores of different prefixes
/// never share a tag. A Location Store whose prefix happens to look like that shares the tag but none of the names behind it.
#[derive(Clone)]
pub(super) struct Keys {
    tag: String,
}

impl Keys {
    pub(super) fn new(prefix: &KeyPrefix, reference: &BlobReference) -> Self {
        let hash = URL_SAFE_NO_PAD.encode(blake3::hash(reference.as_bytes()).as_bytes());
        Self { tag: format!("{{{}:{hash}}}", prefix.as_str()) }
    }

    /// What makes the blob visible.
    pub(super) fn manifest(&self) -> Bytes {
        format!("{}:b", self.tag).into()
    }

    /// The first segment of the visible blob: its name is known to a reader who does not know the manifest yet.
    pub(super) fn first(&self) -> Bytes {
        format!("{}:b0", self.tag).into()
    }

    /// The first segment of an upload, until that is finished. An upload can be finished once only, since finishing it takes
    /// this key away.
    pub(super) fn staged(&self, upload: Upload) -> Bytes {
        format!("{}:bu:{upload}", self.tag).into()
    }

    /// The segments of a visible blob behind its first.
    pub(super) fn others(&self, upload: Upload, count: usize) -> impl Iterator<Item = Bytes> {
        (1..count).map(move |index| format!("{}:bs:{upload}:{index}", self.tag).into())
    }

    /// All segments of a visible blob.
    pub(super) fn segments(&self, upload: Upload, count: usize) -> impl Iterator<Item = Bytes> {
        std::iter::once(self.first()).chain(self.others(upload, count))
    }

    /// All segments of an upload that is not finished.
    pub(super) fn uploaded(&self, upload: Upload, count: usize) -> impl Iterator<Item = Bytes> {
        std::iter::once(self.staged(upload)).chain(self.others(upload, count))
    }

    /// A key for nothing else, which is written so that WAIT has something to wait for.
    pub(super) fn witness(&self) -> Bytes {
        format!("{}:bw", self.tag).into()
    }
}
