"""Calls into the native library: its operations are awaited, its errors become ours, and a forked process is told apart."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from . import _ends, _native
from ._errors import ForkedError, InternalError, StoreError, from_native

_Result = TypeVar("_Result", covariant=True)
_Given = TypeVar("_Given")


class Operation(_ends.Ending, Protocol[_Result]):
    """What a method of a native store gives: its arguments are right, and nothing has been sent."""

    def cancel(self) -> None: ...

    def result(self) -> _Result: ...


# The process in which the native library's threads run: the first that opened a store.
_home: int | None = None
# What is done once there is one.
_at_first: list[Callable[[], None]] = []
# Of both.
_lock = threading.Lock()


def enter() -> None:
    """Makes sure that the native library's threads are in this process."""
    if _home is not None and _home != os.getpid():
        raise _forked()


def _forked() -> ForkedError:
    return ForkedError(
        f"this process ({os.getpid()}) was forked from one ({_home}) that had already opened a zlink_store store, whose "
        "threads and connections do not exist here; open the first store after the fork, or start processes with "
        "multiprocessing's 'spawn' or 'forkserver' method",
        outcome="unknown",
    )


def _after_fork() -> None:
    # Another thread may have held it.
    global _lock
    _lock = threading.Lock()
    if _home is None:
        return
    # Objects of the parent that are collected here must not touch what its threads may have held at the fork.
    library = _native._UniffiLib
    for name in dir(library):
        if "_fn_free_" in name:
            setattr(library, name, lambda *_: None)
    _ends.fail_all(_forked())


os.register_at_fork(after_in_child=_after_fork)


def once_opened(work: Callable[[], None]) -> None:
    """Does `work` as soon as this process has opened a store: nothing native is there to be forked before that."""
    with _lock:
        if _home is None:
            _at_first.append(work)
            return
    enter()
    work()


def translated(error: Any) -> StoreError:
    """An error of the native library as one of ours."""
    unknown = error.result_outcome() == _native.Outcome.UNKNOWN
    return from_native(error.code(), unknown, error.retryable(), error.text(), getattr(error, "argument", None))


def _fault() -> InternalError:
    # What a panic says may hold anything.
    said = "a fault of the library ended the call; please report what stands on the standard error output"
    return InternalError(said, outcome="unknown")


def call(function: Callable[[], _Given]) -> _Given:
    """Makes a call that answers at once."""
    enter()
    try:
        return function()
    except _native.StoreError as error:
        raise translated(error) from None
    except _native.InternalError:
        raise _fault() from None


def opened(function: Callable[[], _Given]) -> _Given:
    """Makes the call that opens a store."""
    global _home
    store = call(function)
    with _lock:
        if _home is None:
            _home = os.getpid()
        waiting = list(_at_first)
        _at_first.clear()
    for work in waiting:
        work()
    return store


async def run(make: Callable[[], Operation[_Given]], *, at_once: bool = False) -> _Given:
    """Makes an operation, starts it and waits for its result; a task that is cancelled meanwhile ends it.

    Others get their turn before it starts, also where answers come at once, and a task that is cancelled already sends nothing;
    but one that is to happen in any case starts `at_once`.
    """
    enter()
    try:
        operation = make()
        try:
            if not at_once:
                await asyncio.sleep(0)
                enter()
            await _ends.of_running_loop().of(operation)
            return operation.result()
        except BaseException:
            # Now, and not when the last traceback is gone that knows it. In a forked process it is not ours to touch.
            if _home == os.getpid():
                operation.cancel()
            raise
    except _native.StoreError as error:
        raise translated(error) from None
    except _native.InternalError:
        raise _fault() from None
