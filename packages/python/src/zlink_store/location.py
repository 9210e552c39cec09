"""The Location Store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from . import _native
from ._arguments import BytesLike, Milliseconds, content, each, optional_milliseconds, text, whole
from ._calls import opened, run
from ._errors import InvalidTypeError, ScanExpiredError, StoreError
from ._results import (
    Applied,
    Conflict,
    Expired,
    Found,
    Missing,
    Page,
    PutVersion,
    ReadResult,
    ScanItem,
    ScanResult,
    WriteResult,
)
from ._store import Store


@dataclass(frozen=True)
class IfMissing:
    """Holds if the key has no live record."""

    key: str


@dataclass(frozen=True)
class IfVersion:
    """Holds if the key's live record has exactly this version."""

    key: str
    version: str


Condition = IfMissing | IfVersion


@dataclass(frozen=True)
class Put:
    """Puts a record, of at most 1 MiB. Without `retention_ms` it is durable, also when it had an expiry before."""

    key: str
    bytes: BytesLike
    retention_ms: Milliseconds | None = None


@dataclass(frozen=True)
class Delete:
    """Deletes a record; deleting a missing one is fine."""

    key: str


Mutation = Put | Delete


class LocationStore(Store):
    """Small records under opaque keys, with conditional atomic batches, snapshot scans and the engine's clock.

    `url` says which engine: ``memory:`` (private), ``memory:name`` (shared in the process), ``file:/path/to/folder``,
    ``redis://…`` and its kin. `key_prefix` is the store's name space; it is needed on Redis. Nothing connects before the first
    operation, and stores with the same connection settings share one connection. Any event loop of any thread may use it::

        async with LocationStore("redis://localhost", key_prefix="app") as store:
            await store.write(mutations=[Put("actor/7", b"node-1")], conditions=[IfMissing("actor/7")])

    Cancelling a task ends its operation at once: what was not yet sent is never sent, what was sent may or may not happen.
    """

    def __init__(self, url: str, *, key_prefix: str = "", operation_timeout_ms: Milliseconds | None = None) -> None:
        url, options = text("url", url), store_options(key_prefix, operation_timeout_ms)
        self._native: _native.LocationStore = opened(lambda: _native.LocationStore.open(url, options))

    async def read(self, key: str) -> ReadResult:
        """Reads one key: one observation of value, version, expiry and clock."""
        key = text("key", key)
        result = await run(lambda: self._native.read(key))
        if isinstance(result, _native.ReadResult.MISSING):
            return Missing(result.store_now_ms)
        assert isinstance(result, _native.ReadResult.FOUND)
        value = result.value
        return Found(value.bytes, value.version, value.expires_at_ms, value.store_now_ms)

    async def write(self, *, conditions: Iterable[Condition] = (), mutations: Iterable[Mutation] = ()) -> WriteResult:
        """Checks all conditions and, if all hold, applies all mutations as one atomic commit.

        A key may stand once among the conditions and once among the mutations; at most 2,048 keys and 4 MiB in all.
        """
        native_conditions = [_condition(place, one) for place, one in each("conditions", conditions, "IfMissing and IfVersion")]
        native_mutations = [_mutation(place, one) for place, one in each("mutations", mutations, "Put and Delete")]
        result = await run(lambda: self._native.write(native_conditions, native_mutations))
        if isinstance(result, _native.WriteResult.CONFLICT):
            return Conflict(result.store_now_ms)
        assert isinstance(result, _native.WriteResult.APPLIED)
        return Applied(tuple(PutVersion(put.key, put.version) for put in result.put_versions), result.store_now_ms)

    async def scan(self, prefix: str = "", *, cursor: str | None = None, limit: int = 1_000) -> ScanResult:
        """Reads one page of a snapshot scan: keys that start with `prefix`, at most `limit` (1..=1,000) items.

        Without a cursor it is the first page, which fixes the snapshot; then `cursor` is the page before's `next_cursor`. A
        snapshot lives 5 minutes.
        """
        prefix = text("prefix", prefix)
        cursor = None if cursor is None else text("cursor", cursor)
        limit = whole("limit", limit)
        result = await run(lambda: self._native.scan(prefix, cursor, limit))
        if isinstance(result, _native.ScanResult.EXPIRED):
            return Expired()
        assert isinstance(result, _native.ScanResult.PAGE)
        items = tuple(
            ScanItem(item.key, item.value.bytes, item.value.version, item.value.expires_at_ms) for item in result.items
        )
        return Page(items, result.next_cursor, result.store_now_ms)

    async def items(self, prefix: str = "", *, limit: int = 1_000) -> AsyncIterator[ScanItem]:
        """All records whose keys start with `prefix`, as they stood at one instant; `limit` is the size of a page.

        Raises `ScanExpiredError` if the snapshot is gone before the end (it lives 5 minutes).
        """
        cursor: str | None = None
        while True:
            page = await self.scan(prefix, cursor=cursor, limit=limit)
            if isinstance(page, Expired):
                raise ScanExpiredError("the snapshot of this scan is gone; drop what was read and start again")
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return


def store_options(key_prefix: str, operation_timeout_ms: Milliseconds | None) -> _native.StoreOptions:
    """The options of a store as the native library has them."""
    return _native.StoreOptions(
        key_prefix=text("key_prefix", key_prefix),
        operation_timeout_ms=optional_milliseconds("operation_timeout_ms", operation_timeout_ms),
    )


def _condition(place: str, condition: Condition) -> Any:
    if isinstance(condition, IfMissing):
        return _native.Condition.MISSING(text(f"{place}.key", condition.key))
    if isinstance(condition, IfVersion):
        key, version = text(f"{place}.key", condition.key), text(f"{place}.version", condition.version)
        return _native.Condition.VERSION(key, version)
    raise _no_such(place, condition, "an IfMissing or an IfVersion")


def _mutation(place: str, mutation: Mutation) -> Any:
    if isinstance(mutation, Put):
        key, value = text(f"{place}.key", mutation.key), content(f"{place}.bytes", mutation.bytes)
        return _native.Mutation.PUT(key, value, optional_milliseconds(f"{place}.retention_ms", mutation.retention_ms))
    if isinstance(mutation, Delete):
        return _native.Mutation.DELETE(text(f"{place}.key", mutation.key))
    raise _no_such(place, mutation, "a Put or a Delete")


def _no_such(place: str, value: object, what: str) -> StoreError:
    return InvalidTypeError(f"{place} must be {what}, got {type(value).__name__}", argument=place)
