//! The Location Store's logic, the same for both storages.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use futures_util::FutureExt;

use super::core::{Core, Store};
use super::expiry::reschedule;
use super::record::{Due, Record, Scope};
use super::snapshots::Kept;
use super::storage::{Draft, Storage, Table, View};
use crate::ambient;
use crate::call::Call;
use crate::contract::{
    Condition, Cursor, Error, Key, Mutation, PutVersion, ReadResult, ScanItem, ScanPage, ScanRequest, ScanResult, StoreTime,
    StoredValue, WriteRequest, WriteResult, limits,
};
use crate::engine::cursor::Position;
use crate::engine::version::Stamp;
use crate::engine::{LocationEngine, Pending};

impl<S: Storage> LocationEngine for Store<S, Scope> {
    fn read(&self, key: Key, call: Call) -> Pending<ReadResult> {
        let core = self.held.get();
        let key = self.scope.key(key.as_bytes());
        async move { core?.storage.observe(call, move |view, now| read(view, &key, now)).await }.boxed()
    }

    fn write(&self, request: WriteRequest, call: Call) -> Pending<WriteResult> {
        let core = self.held.get();
        let scope = self.scope.clone();
        async move {
            let core = core?;
            let expiring = request.mutations.iter().any(|put| matches!(put, Mutation::Put { retention: Some(_), .. }));
            let nonce = ambient::random(core.storage.ambient());
            let change = {
                let core = Arc::clone(&core);
                move |draft: &mut dyn Draft, now| write(draft, &scope, &request, now, nonce, &mut *core.snapshots())
            };
            let result = core.storage.commit(call, change).await?;
            if expiring {
                core.keep_up();
            }
            Ok(result)
        }
        .boxed()
    }

    fn scan(&self, request: ScanRequest, call: Call) -> Pending<ScanResult> {
        let core = self.held.get();
        let scope = self.scope.clone();
        async move {
            let core = core?;
            let look = {
                let core = Arc::clone(&core);
                move |view: &S::View, now| match &request.cursor {
                    None => first_page(&core, view, &scope, &request, now),
                    Some(cursor) => later_page(&core, view, &scope, &request, cursor, now),
                }
            };
            core.storage.observe(call, look).await
        }
        .boxed()
    }
}

fn read(view: &impl View, key: &[u8], now: StoreTime) -> Result<ReadResult, Error> {
    let record = view.get(Table::Records, key)?.map(Record::decode).transpose()?;
    Ok(match record.filter(|record| record.is_live(now)) {
        Some(record) => ReadResult::Found(stored(record, now)),
        None => ReadResult::Missing { store_now: now },
    })
}

fn stored(record: Record, now: StoreTime) -> StoredValue {
    let Record { stamp, expires_at, bytes } = record;
    StoredValue { bytes, version: stamp.version(), expires_at, store_now: now }
}

/// All that can fail comes before the first change.
fn write(
    draft: &mut dyn Draft,
    scope: &Scope,
    request: &WriteRequest,
    now: StoreTime,
    nonce: [u8; 8],
    kept: &mut dyn Kept,
) -> Result<WriteResult, Error> {
    for condition in &request.conditions {
        let record = draft.get(Table::Records, &scope.key(condition.key().as_bytes()))?.map(Record::decode).transpose()?;
        let live = record.filter(|record| record.is_live(now)).map(|record| record.stamp);
        let holds = match condition {
            Condition::Missing { .. } => live.is_none(),
            Condition::Version { expected, .. } => live.is_some() && live == Stamp::parse(expected),
        };
        if !holds {
            return Ok(WriteResult::Conflict { store_now: now });
        }
    }
    let mut changes = Vec::with_capacity(request.mutations.len());
    for mutation in &request.mutations {
        let key = scope.key(mutation.key().as_bytes());
        let old = draft.get(Table::Records, &key)?.map(Record::decode).transpose()?;
        changes.push((mutation, key, old));
    }
    let mut put_versions = Vec::new();
    let mut sequence = None;
    for (mutation, key, old) in changes {
        match mutation {
            Mutation::Put { key: name, bytes, retention } => {
                let sequence = *sequence.get_or_insert_with(|| draft.next_sequence());
                let place = u16::try_from(put_versions.len()).map_err(|_| Error::internal("too many puts in one write"))?;
                let stamp = Stamp { sequence, nonce, place };
                let expires_at = retention.map(|retention| now.plus(retention));
                let new = Record { stamp, expires_at, bytes: bytes.clone() };
                put(draft, &key, old.as_ref(), &new, kept);
                put_versions.push(PutVersion { key: name.clone(), version: stamp.version() });
            }
            Mutation::Delete { .. } => {
                if let Some(old) = &old {
                    remove(draft, &key, old, kept);
                }
            }
        }
    }
    Ok(WriteResult::Applied { put_versions, store_now: now })
}

fn put(draft: &mut dyn Draft, key: &[u8], old: Option<&Record>, new: &Record, kept: &mut dyn Kept) {
    if let Some(old) = old {
        kept.replaced(old.stamp.sequence, key.len() + old.bytes.len());
    }
    reschedule(draft, old.and_then(|old| Due::of_record(key, old)), Due::of_record(key, new));
    draft.weigh(weight(key, new) - old.map_or(0, |old| weight(key, old)));
    draft.set(Table::Records, key, new.encode());
}

/// Removes a record that is there.
pub(super) fn remove(draft: &mut dyn Draft, key: &[u8], old: &Record, kept: &mut dyn Kept) {
    kept.replaced(old.stamp.sequence, key.len() + old.bytes.len());
    reschedule(draft, Due::of_record(key, old), None);
    draft.weigh(-weight(key, old));
    draft.remove(Table::Records, key);
}

/// What a record takes, with its entry in the due table.
fn weight(key: &[u8], record: &Record) -> i64 {
    let due = if record.expires_at.is_some() { key.len() + 64 } else { 0 };
    i64::try_from(key.len() + record.bytes.len() + 64 + due).unwrap_or(i64::MAX)
}

fn first_page<S: Storage>(
    core: &Arc<Core<S>>,
    view: &S::View,
    scope: &Scope,
    request: &ScanRequest,
    now: StoreTime,
) -> Result<ScanResult, Error> {
    let id = ambient::random(core.storage.ambient());
    let sequence = view.sequence();
    // Counted from the start, so that nothing which is replaced while the page is read escapes.
    core.snapshots().start(id, scope.clone(), sequence, now, S::for_scan(view));
    let page = read_page(view, scope, request, None, now, now);
    let mut snapshots = core.snapshots();
    let Some(last) = page.as_ref().ok().and_then(|page| page.more.then(|| page.last()).flatten()) else {
        snapshots.forget(&id);
        return page.map(|page| page.result(now, None));
    };
    snapshots.keep(&id);
    drop(snapshots);
    core.keep_up();
    let position = Position { snapshot: id, sequence, last };
    let cursor = position.cursor(&store::<S>(view, scope), &request.prefix);
    page.map(|page| page.result(now, Some(cursor)))
}

fn later_page<S: Storage>(
    core: &Arc<Core<S>>,
    view: &S::View,
    scope: &Scope,
    request: &ScanRequest,
    cursor: &Cursor,
    now: StoreTime,
) -> Result<ScanResult, Error> {
    let store = store::<S>(view, scope);
    let Some(position) = Position::parse(cursor, &store, &request.prefix) else { return Ok(ScanResult::Expired) };
    let found = core.snapshots().find(&position.snapshot, scope, position.sequence, now);
    let Some(found) = found else { return Ok(ScanResult::Expired) };
    let page = read_page(&found.view, scope, request, Some(&position.last), found.start, now)?;
    let next = if page.more { page.last() } else { None };
    if next.is_none() {
        core.snapshots().finish(&position.snapshot);
    }
    let cursor = next.map(|last| Position { last, ..position }.cursor(&store, &request.prefix));
    Ok(page.result(now, cursor))
}

/// What a cursor is bound to: these data and this store's part of them.
fn store<S: Storage>(view: &S::View, scope: &Scope) -> Vec<u8> {
    [&S::identity(view)[..], scope.as_bytes()].concat()
}

struct Page {
    items: Vec<ScanItem>,
    more: bool,
}

impl Page {
    fn last(&self) -> Option<Key> {
        self.items.last().map(|item| item.key.clone())
    }

    fn result(self, store_now: StoreTime, next_cursor: Option<Cursor>) -> ScanResult {
        ScanResult::Page(ScanPage { items: self.items, next_cursor, store_now })
    }
}

/// The live records from `after` on, as far as a page goes, and whether another follows. Expiry is judged by the snapshot's
/// instant `start`.
fn read_page(
    view: &impl View,
    scope: &Scope,
    request: &ScanRequest,
    after: Option<&Key>,
    start: StoreTime,
    now: StoreTime,
) -> Result<Page, Error> {
    let prefix = scope.key(request.prefix.as_bytes());
    let after = after.map(|key| scope.key(key.as_bytes()));
    let from = after.as_ref().map_or(Bound::Included(&prefix[..]), |after| Bound::Excluded(&after[..]));
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let mut page = Page { items: Vec::new(), more: false };
    let mut size = 0;
    view.walk(Table::Records, from, &mut |key, raw| {
        if !key.starts_with(&prefix) {
            return Ok(ControlFlow::Break(()));
        }
        let record = Record::decode(raw)?;
        if !record.is_live(start) {
            return Ok(ControlFlow::Continue(()));
        }
        let name = scope.name(key).ok_or_else(|| Error::internal("a key outside its store"))?;
        let value = stored(record, now);
        size += name.len() + value.bytes.len() + value.version.as_bytes().len();
        if page.items.len() == limit || (size >= limits::MAX_ENCODED && !page.items.is_empty()) {
            page.more = true;
            return Ok(ControlFlow::Break(()));
        }
        let key = Key::from_utf8(name).map_err(|_| Error::internal("a stored key is damaged"))?;
        page.items.push(ScanItem { key, value });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}
