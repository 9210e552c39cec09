//! The scripts that commit, what they are called with, and what they answer.

use bytes::{BufMut, Bytes, BytesMut};

use super::answer::{Fields, newer, unexpected};
use super::group::{Change, Expected, Group, Touched};
use super::layout::Layout;
use super::snapshots::{Entry, Known, entries};
use crate::contract::{Error, Retention, StoreTime};
use crate::engine::redis::client::{Prepared, Script};
use crate::engine::redis::transport::Reply;
use crate::engine::version::Stamp;

pub(super) static COMMIT: Script =
    Script::writing(concat!(include_str!("../failed.lua"), include_str!("common.lua"), include_str!("commit.lua")));
pub(super) static PUT: Script = Script::writing(concat!(include_str!("../failed.lua"), include_str!("put.lua")));

/// What a changing script answered.
pub(super) enum Answer {
    /// It did its work; the rest is its own.
    Done(Fields),
    /// It did nothing: it must be told of these snapshots, and that so many of the oldest are to be dropped.
    Again { drop: usize, entries: Vec<Entry> },
}

impl Answer {
    pub(super) fn of(reply: Reply) -> Result<Self, Error> {
        let mut fields = Fields::of(reply)?;
        match fields.int()? {
            1 => Ok(Self::Done(fields)),
            2 => {
                let drop = usize::try_from(fields.number()?).unwrap_or(usize::MAX);
                Ok(Self::Again { drop, entries: entries(&fields.rest()?)? })
            }
            3 => Err(newer()),
            _ => Err(unexpected(&Reply::Nil)),
        }
    }
}

/// What became of the groups of one call.
pub(super) struct Committed {
    pub(super) now: StoreTime,
    /// The sequence of the first group that was applied and puts something; the others follow.
    pub(super) sequence: u64,
    /// Whether any snapshot is live.
    pub(super) snapshots: bool,
    /// Whether anything is to be reaped.
    pub(super) due: bool,
    /// One for each group that has keys.
    pub(super) statuses: Vec<Status>,
}

/// What became of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Applied,
    Conflict,
    Foreign,
}

impl Committed {
    pub(super) fn of(mut fields: Fields) -> Result<Self, Error> {
        let now = fields.instant()?;
        let sequence = fields.number()?;
        let (snapshots, due) = (fields.int()? != 0, fields.int()? != 0);
        let statuses = fields.replies().map(|status| match status {
            Reply::Int(1) => Ok(Status::Applied),
            Reply::Int(0) => Ok(Status::Conflict),
            Reply::Int(-1) => Ok(Status::Foreign),
            other => Err(unexpected(&other)),
        });
        Ok(Self { now, sequence, snapshots, due, statuses: statuses.collect::<Result<_, _>>()? })
    }
}

/// The call that commits `groups`.
pub(super) fn commit<'a>(
    layout: &Layout,
    groups: impl Iterator<Item = &'a Group> + Clone,
    known: &Known,
    drop: usize,
) -> Prepared {
    if known.newest().is_none()
        && let Some(put) = single(groups.clone())
    {
        return put_alone(layout, put);
    }
    let touched = groups.clone().flat_map(|group| group.keys.iter());
    let count = touched.clone().count();
    let mut keys = Vec::with_capacity(6 + 2 * count + 2);
    let fixed = [&layout.format, &layout.sequence, &layout.index, &layout.due, &layout.snapshots, &layout.nothing];
    keys.extend(fixed.into_iter().cloned());
    keys.extend(touched.clone().map(|touched| layout.record(touched.key.as_bytes())));
    let mut args = Vec::with_capacity(8 + 2 * count);
    args.extend([number(count), number(layout.record(b"").len())]);
    if let Some(newest) = known.newest() {
        keys.extend(touched.map(|touched| layout.moved(&newest.id, touched.key.as_bytes())));
        keys.extend([layout.undo(&newest.id), layout.moved_names(&newest.id)]);
        args.push(Bytes::copy_from_slice(&newest.id));
    } else {
        args.push(Bytes::new());
    }
    known.declare(layout, drop, &mut keys, &mut args);
    for group in groups {
        let mut begins = b'+';
        for touched in &group.keys {
            args.push(asked(group, touched, begins));
            if let Change::Put { bytes, .. } = &touched.change {
                args.push(bytes.clone());
            }
            begins = b'-';
        }
    }
    Prepared { script: &COMMIT, keys, args }
}

/// What is asked of one record, as commit.lua reads it.
fn asked(group: &Group, touched: &Touched, begins: u8) -> Bytes {
    let mut what = BytesMut::with_capacity(48);
    what.put_u8(begins);
    what.put_u8(match touched.condition {
        Expected::Anything => b'-',
        Expected::Missing => b'm',
        Expected::Stamp(_) => b'v',
    });
    match &touched.change {
        Change::Nothing => what.put_u8(b'-'),
        Change::Delete => what.put_u8(b'd'),
        Change::Put { place, retention, .. } => {
            what.put_u8(if retention.is_some() { b'r' } else { b'p' });
            what.put_slice(&group.nonce);
            what.put_u16(*place);
        }
    }
    if let Expected::Stamp(stamp) = touched.condition {
        // A version that no store issued: no sequence is that high.
        what.put_slice(&stamp.map_or([0xff; Stamp::SIZE], Stamp::to_raw));
    }
    if let Change::Put { retention: Some(retention), .. } = &touched.change {
        what.put_slice(retention.as_ms().to_string().as_bytes());
    }
    what.freeze()
}

/// The only group and its only key, if it is put.
fn single<'a>(mut groups: impl Iterator<Item = &'a Group>) -> Option<(&'a Group, &'a Touched)> {
    let group = groups.next()?;
    match &group.keys[..] {
        [touched @ Touched { change: Change::Put { .. }, .. }] if groups.next().is_none() => Some((group, touched)),
        _ => None,
    }
}

fn put_alone(layout: &Layout, (group, touched): (&Group, &Touched)) -> Prepared {
    let fixed = [&layout.format, &layout.sequence, &layout.index, &layout.due, &layout.snapshots];
    let mut keys = Vec::with_capacity(6);
    keys.push(layout.record(touched.key.as_bytes()));
    keys.extend(fixed.into_iter().cloned());
    let mut args = Vec::with_capacity(5);
    args.push(Bytes::copy_from_slice(touched.key.as_bytes()));
    if let Change::Put { place, bytes, retention } = &touched.change {
        args.extend([mark(group, *place), bytes.clone(), retention.map_or_else(Bytes::new, milliseconds)]);
    }
    args.push(match touched.condition {
        Expected::Anything => Bytes::from_static(b"-"),
        Expected::Missing => Bytes::from_static(b"m"),
        Expected::Stamp(None) => Bytes::from_static(b"v"),
        Expected::Stamp(Some(stamp)) => Bytes::from([&b"v"[..], &stamp.to_raw()].concat()),
    });
    Prepared { script: &PUT, keys, args }
}

/// The commit's mark in the header of one of its puts.
fn mark(group: &Group, place: u16) -> Bytes {
    let mut mark = BytesMut::with_capacity(10);
    mark.put_slice(&group.nonce);
    mark.put_u16(place);
    mark.freeze()
}

fn milliseconds(retention: Retention) -> Bytes {
    Bytes::from(retention.as_ms().to_string())
}

fn number(count: usize) -> Bytes {
    Bytes::from(count.to_string())
}
