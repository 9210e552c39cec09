//! The scripts that commit, what they are called with, and what they answer.

use bytes::{BufMut, Bytes, BytesMut};

use super::answer::{Fields, newer, unexpected};
use super::group::{Change, Expected, Group, Touched};
use super::layout::Layout;
use super::snapshots::{Entry, Known, entries};
use crate::contract::{Error, Retention, StoreTime};
use crate::engine::redis::client::{Prepared, Script};
use crate::engine::redis::transport::Reply;

pub(super) static COMMIT: Script = Script::writing(concat!(include_str!("common.lua"), include_str!("commit.lua")));
pub(super) static PUT: Script = Script::writing(include_str!("put.lua"));

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
    /// One for each group.
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
    let mut args = Vec::with_capacity(8 + 5 * count);
    args.push(number(count));
    if let Some(newest) = known.newest() {
        keys.extend(touched.map(|touched| layout.moved(&newest.id, touched.key.as_bytes())));
        keys.extend([layout.undo(&newest.id), layout.moved_names(&newest.id)]);
        args.push(Bytes::copy_from_slice(&newest.id));
    } else {
        args.push(Bytes::new());
    }
    known.declare(layout, drop, &mut keys, &mut args);
    args.push(number(groups.clone().count()));
    for group in groups {
        args.push(number(group.keys.len()));
        for touched in &group.keys {
            args.push(Bytes::copy_from_slice(touched.key.as_bytes()));
            args.push(Bytes::from_static(code(touched)));
            if let Expected::Stamp(stamp) = touched.condition {
                args.push(stamp.map_or_else(Bytes::new, |stamp| Bytes::copy_from_slice(&stamp.to_raw())));
            }
            if let Change::Put { place, bytes, retention } = &touched.change {
                args.push(mark(group, *place));
                args.push(bytes.clone());
                args.extend(retention.map(milliseconds));
            }
        }
    }
    Prepared { script: &COMMIT, keys, args }
}

fn code(touched: &Touched) -> &'static [u8] {
    match (touched.condition, &touched.change) {
        (Expected::Anything, Change::Nothing) => b"--",
        (Expected::Anything, Change::Delete) => b"-d",
        (Expected::Anything, Change::Put { retention: None, .. }) => b"-p",
        (Expected::Anything, Change::Put { .. }) => b"-r",
        (Expected::Missing, Change::Nothing) => b"m-",
        (Expected::Missing, Change::Delete) => b"md",
        (Expected::Missing, Change::Put { retention: None, .. }) => b"mp",
        (Expected::Missing, Change::Put { .. }) => b"mr",
        (Expected::Stamp(_), Change::Nothing) => b"v-",
        (Expected::Stamp(_), Change::Delete) => b"vd",
        (Expected::Stamp(_), Change::Put { retention: None, .. }) => b"vp",
        (Expected::Stamp(_), Change::Put { .. }) => b"vr",
    }
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
