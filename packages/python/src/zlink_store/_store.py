"""What all stores have."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, TypeVar

from . import _native
from ._calls import Operation, call, run
from ._results import Stats

_Self = TypeVar("_Self", bound="Store")


class _NativeStore(Protocol):
    def ping(self) -> Operation[int]: ...

    def stats(self) -> _native.Stats: ...

    def begin_shutdown(self) -> Operation[None]: ...


class Store:
    """A store: an async context manager, which closes it at the end."""

    _native: _NativeStore

    async def ping(self) -> int:
        """Asks the engine for its clock, in Unix milliseconds: shows that it answers."""
        return await run(self._native.ping)

    def stats(self) -> Stats:
        """What it has counted so far."""
        stats = call(self._native.stats)
        return Stats(
            operations=stats.operations,
            errors=stats.errors,
            latency_us_log2=tuple(stats.latency_us_log2),
            in_flight=stats.in_flight,
            reconnects=stats.reconnects,
            commands_sent=stats.commands_sent,
        )

    async def close(self) -> None:
        """Fails new operations with `ClosedError`, waits for those under way (at most the operation timeout) and gives up the
        connection. It goes on if the wait for it is given up; closing again does nothing more."""
        await run(self._native.begin_shutdown, at_once=True)

    async def __aenter__(self: _Self) -> _Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
