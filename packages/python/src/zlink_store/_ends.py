"""How coroutines wait for operations: the native library calls nobody.

An operation that ends puts its number into the queue of the event loop that waits for it, and makes a descriptor readable
which that loop watches. So no thread of the library ever asks for the interpreter's lock: it need not wait for whoever holds
it, and the end of the interpreter can not meet it in the middle of a callback, which ended the process with SIGABRT.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Iterable
from typing import Any, Protocol

from . import _native

# The generated module has no types.
_make_queue: Any = _native.EndedOperations

_PATIENCE_MS = 1_000


class Ending(Protocol):
    """What can be started and has an end."""

    def start_into(self, ended: _native.EndedOperations, number: int) -> bool: ...


class Ends:
    """The ends that one event loop waits for."""

    __slots__ = ("__weakref__", "_alive", "_last", "_queue", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._queue: _native.EndedOperations = _make_queue()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._last = 0
        self._alive = True
        try:
            descriptor = self._queue.descriptor()
            if descriptor is None:
                raise NotImplementedError
            loop.add_reader(descriptor, self._drain)
        except NotImplementedError:
            # The loop watches no descriptors.
            _watched.add(self)
            arguments = (weakref.ref(loop), weakref.ref(self), self._queue)
            threading.Thread(target=_watch, args=arguments, name="zlink-store-ends", daemon=True).start()

    async def of(self, operation: Ending) -> None:
        """Starts the operation, and waits for its end."""
        self._last = number = self._last + 1
        if operation.start_into(self._queue, number):
            return
        self._waiting[number] = future = asyncio.get_running_loop().create_future()
        try:
            await future
        finally:
            self._waiting.pop(number, None)

    def _drain(self) -> None:
        if self._alive:
            self.tell(self._queue.take())

    def tell(self, numbers: Iterable[int]) -> None:
        """These have ended."""
        for number in numbers:
            future = self._waiting.pop(number, None)
            if future is not None and not future.done():
                future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """There will be no more ends: not of what is waited for, and the queue must not be touched any more."""
        self._alive = False
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
                # Who waits for it is told; if nobody is left, there is nothing to complain of.
                future.exception()


# Whoever waits knows the loop: what knows the waiting must not be held from here, or a loop that is left with somebody waiting
# would stay for ever. The loop itself holds it, by its reader.
_of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[Ends]] = weakref.WeakKeyDictionary()
# Those that a thread watches, until their loop is closed.
_watched: set[Ends] = set()


def of_running_loop() -> Ends:
    """Those of the running loop, which only that loop's thread asks for."""
    loop = asyncio.get_running_loop()
    known = _of_loops.get(loop)
    ends = known() if known is not None else None
    if ends is None:
        ends = Ends(loop)
        _of_loops[loop] = weakref.ref(ends)
    return ends


def fail_all(error: BaseException) -> None:
    """There will be no more ends in this process."""
    for known in list(_of_loops.values()):
        ends = known()
        if ends is not None:
            ends.fail(error)


def _watch(loop: weakref.ref[asyncio.AbstractEventLoop], ends: weakref.ref[Ends], queue: _native.EndedOperations) -> None:
    try:
        while _watch_once(loop, ends, queue):
            pass
    finally:
        told = ends()
        if told is not None:
            _watched.discard(told)


def _watch_once(loop: weakref.ref[asyncio.AbstractEventLoop], ends: weakref.ref[Ends], queue: _native.EndedOperations) -> bool:
    # The loop is not kept alive by a thread that waits.
    queue.block(_PATIENCE_MS)
    numbers = queue.take()
    there, told = loop(), ends()
    if there is None or told is None or there.is_closed():
        return False
    if numbers:
        try:
            there.call_soon_threadsafe(told.tell, numbers)
        except RuntimeError:
            # It was closed: nobody waits any more.
            return False
    return True
