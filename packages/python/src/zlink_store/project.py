"""A project's state and locks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

from . import _native
from ._arguments import Milliseconds, optional, optional_milliseconds, text
from ._calls import call, opened, run
from ._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    LockLostError,
    LockUnavailableError,
    RateLimitError,
    StateConflictError,
    StoreError,
)
from ._store import Store
from ._times import MayExpire, moment


class Project(Store):
    """A project's state and locks: one connection, one life.

    `url` says which engine, as for a `LocationStore`. `workspace` and `project` name the project. Nothing connects before the
    first operation::

        async with Project("redis://localhost", workspace="acme", project="shop") as project:
            progress = project.state.namespace("inventory-sync")
            await progress.set("cursor", {"page": 1})
            async with project.locks().lock("INV-1") as lease:
                print(lease.fencing_token)
    """

    def __init__(self, url: str, *, workspace: str, project: str, operation_timeout_ms: Milliseconds | None = None) -> None:
        url, workspace, project = text("url", url), text("workspace", workspace), text("project", project)
        timeout = optional_milliseconds("operation_timeout_ms", operation_timeout_ms)
        options = _native.ProjectOptions(operation_timeout_ms=timeout)
        self._native: _native.Project = opened(lambda: _native.Project.open(url, workspace, project, options))
        self._state = ProjectState(self._native.state())

    @property
    def state(self) -> ProjectState:
        """The project's state."""
        return self._state

    def locks(self, *, within_ms: Milliseconds | None = None) -> DistributedLocks:
        """The project's locks, for one invocation: it holds at most 16 leases at a time.

        With `within_ms`, the invocation ends so many milliseconds from now, and no wait for a lock goes on past that.
        """
        within = optional_milliseconds("within_ms", within_ms)
        return DistributedLocks(call(lambda: self._native.locks(within)))


@dataclass(frozen=True)
class StateEntry(MayExpire):
    """A live entry."""

    #: The value's JSON text, in the form of JavaScript's ``JSON.stringify``.
    json: str
    #: Counts the writes since the entry was created: 1, 2, 3 … After a deletion or expiry it starts again at 1.
    version: int
    created_at_ms: int
    updated_at_ms: int
    expires_at_ms: int | None

    @property
    def value(self) -> Any:
        """The value: what ``json.loads`` makes of its text, a new one each time."""
        return json.loads(self.json)

    @property
    def created_at(self) -> datetime:
        """When its version 1 was written, in UTC."""
        return moment(self.created_at_ms)

    @property
    def updated_at(self) -> datetime:
        """When this version was written, in UTC."""
        return moment(self.updated_at_ms)


class ProjectState:
    """The state of one project: durable JSON entries under namespaces and keys. At most 100,000 live ones."""

    def __init__(self, native: _native.ProjectState) -> None:
        self._native = native

    def namespace(self, namespace: str) -> StateNamespace:
        """The entries of one namespace; no I/O."""
        namespace = text("namespace", namespace)
        return StateNamespace(call(lambda: self._native.namespace(namespace)), namespace)


class StateNamespace:
    """The entries of one namespace."""

    def __init__(self, native: _native.StateNamespace, name: str) -> None:
        self._native = native
        #: Its name.
        self.name = name

    async def get(self, key: str) -> StateEntry | None:
        """The live entry under `key`."""
        key = text("key", key)
        entry = await run(lambda: self._native.get(key))
        return None if entry is None else _entry(entry)

    async def set(
        self, key: str, value: Any, *, expected_version: int | None = None, ttl_seconds: int | None = None
    ) -> StateEntry:
        """Writes `value` (what ``json.dumps`` takes, at most 32,768 bytes as text) as one atomic step.

        `expected_version` 0: only if there is no entry; n > 0: only if the live entry has version n, else `StateConflictError`;
        left out: in any case. `ttl_seconds` (1..=31,536,000): how long the entry lives from this write on; left out: it does
        not expire.
        """
        return await self.set_json(key, _json(value), expected_version=expected_version, ttl_seconds=ttl_seconds)

    async def set_json(
        self, key: str, value: str, *, expected_version: int | None = None, ttl_seconds: int | None = None
    ) -> StateEntry:
        """As `set`, of a value that is JSON text already; its numbers stay as they are written."""
        key, value = text("key", key), text("value", value)
        expected = optional("expected_version", expected_version)
        ttl = optional("ttl_seconds", ttl_seconds, " of seconds")
        result = await run(lambda: self._native.set(key, value, expected, ttl))
        if isinstance(result, _native.StateSetResult.STORED):
            return _entry(result.entry)
        if isinstance(result, _native.StateSetResult.CONFLICT):
            raise _conflict()
        raise RateLimitError("the project has 100,000 live entries already; delete some first")

    async def delete(self, key: str, *, expected_version: int | None = None) -> bool:
        """Deletes the live entry under `key`: whether there was one.

        With `expected_version` n > 0 only version n, with 0 only if there is none, else `StateConflictError`.
        """
        key, expected = text("key", key), optional("expected_version", expected_version)
        result = await run(lambda: self._native.delete(key, expected))
        if result is _native.StateDeleteResult.CONFLICT:
            raise _conflict()
        return result is _native.StateDeleteResult.DELETED


class DistributedLocks:
    """The locks of one project, for one invocation: at most 16 leases at a time, pending acquires counted.

    A lock makes no transaction, and exactly-once of nothing: it says who is to work now.
    """

    def __init__(self, native: _native.DistributedLocks) -> None:
        self._native = native

    async def acquire(
        self,
        key: str,
        *,
        namespace: str | None = None,
        wait_ms: Milliseconds | None = None,
        lease_ms: Milliseconds | None = None,
    ) -> LockLease | None:
        """Takes the lock; ``None`` if it could not be had within `wait_ms` (0..=10,000; 0 by default).

        The lease lasts `lease_ms` (5,000..=60,000; 30,000 by default). The namespace is ``default`` by default. Who waits is
        served in order. A cancelled or failed acquire leaves no lease behind.
        """
        key = text("key", key)
        namespace = None if namespace is None else text("namespace", namespace)
        wait, length = optional_milliseconds("wait_ms", wait_ms), optional_milliseconds("lease_ms", lease_ms)
        lease = await run(lambda: self._native.acquire(key, namespace, wait, length))
        return None if lease is None else LockLease(lease)

    async def attach(self, id: str) -> LockLease:
        """The live lease of this id, whoever acquired it in this project; it takes no place of this invocation.

        Raises `LockLostError` if there is none.
        """
        id = text("id", id)
        lease = await run(lambda: self._native.attach(id))
        if lease is None:
            raise _lost("there is no live lease of this id")
        return LockLease(lease)

    def lock(
        self,
        key: str,
        *,
        namespace: str | None = None,
        wait_ms: Milliseconds | None = None,
        lease_ms: Milliseconds | None = None,
    ) -> AbstractAsyncContextManager[LockLease]:
        """Takes the lock for the body of ``async with``, and releases it at the end. Nothing is renewed by itself.

        Raises `LockUnavailableError` if it could not be had in time; the body is not begun then. An error of the body goes
        before one of the release, which is a `LockLostError` if the lease had ended before the body did. The release begins as
        soon as the body has ended, and goes on whatever happens to the task.
        """
        return _Held(lambda: self.acquire(key, namespace=namespace, wait_ms=wait_ms, lease_ms=lease_ms))


class _Held(AbstractAsyncContextManager["LockLease"]):
    """A lock during a body."""

    def __init__(self, acquire: Callable[[], Awaitable[LockLease | None]]) -> None:
        self._acquire = acquire
        self._leases: list[LockLease] = []

    async def __aenter__(self) -> LockLease:
        lease = await self._acquire()
        if lease is None:
            raise LockUnavailableError("the lock could not be had in time", retryable=True)
        self._leases.append(lease)
        return lease

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._leases.pop()._release()
        except StoreError:
            # The lease ends by expiry; what the body raised is what its caller is to know.
            if error is None:
                raise


class LockLease:
    """A lease: the lock is ours until it is released or expires. An object that is collected releases nothing.

    Only one lease of a lock is valid at a time, but a holder may be late: have what the lock guards refuse a `fencing_token`
    smaller than one it has seen.
    """

    def __init__(self, native: _native.LockLease) -> None:
        self._native = native
        #: Whoever knows it may renew and release the lease, from any process of the same project: keep it to yourself.
        self.id: str = native.id()
        #: The lock's key.
        self.key: str = native.key()
        #: The lock's namespace.
        self.namespace: str = native.namespace()
        #: Larger than that of every earlier lease of this lock; at most 2^53 - 1.
        self.fencing_token: int = native.fencing_token()

    @property
    def expires_at_ms(self) -> int:
        """When the lease expires, as last renewed through this object, in Unix milliseconds."""
        return call(self._native.expires_at_ms)

    @property
    def expires_at(self) -> datetime:
        """When the lease expires, as last renewed through this object, in UTC."""
        return moment(self.expires_at_ms)

    async def renew(self, lease_ms: Milliseconds | None = None) -> None:
        """From the engine's now on the lease lasts `lease_ms` (by default as long as it was acquired for).

        Raises `LockLostError` if it is lost or expired.
        """
        length = optional_milliseconds("lease_ms", lease_ms)
        result = await run(lambda: self._native.renew(length))
        if isinstance(result, _native.LeaseRenewResult.LOST):
            raise _lost("the lease was lost or had expired before it could be renewed")

    async def release(self) -> None:
        """Frees the lock. After a release that succeeded, doing it again through this object does nothing.

        Raises `LockLostError` if the lease was lost or had expired already. A release that has begun goes on when its task is
        cancelled.
        """
        # A task that is cancelled already sends nothing.
        await asyncio.sleep(0)
        await self._release()

    async def _release(self) -> None:
        result = await run(self._native.release, at_once=True)
        if result is _native.LeaseReleaseResult.LOST:
            raise _lost("the lease was lost or had expired before it was released")

    def __repr__(self) -> str:
        return f"<LockLease {self.namespace}/{self.key} fencing_token={self.fencing_token}>"


def _entry(entry: _native.StateEntry) -> StateEntry:
    return StateEntry(
        json=entry.json,
        version=entry.version,
        created_at_ms=entry.created_at_ms,
        updated_at_ms=entry.updated_at_ms,
        expires_at_ms=entry.expires_at_ms,
    )


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except TypeError as error:
        raise InvalidTypeError(f"value has no JSON text: {error}", argument="value") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"value has no JSON text: {error}", argument="value") from None


def _conflict() -> StateConflictError:
    return StateConflictError("the entry does not have the expected version")


def _lost(message: str) -> LockLostError:
    return LockLostError(message)
