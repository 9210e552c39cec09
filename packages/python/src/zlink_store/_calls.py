"""Calls into the native library: its operations are awaited, its errors become ours, and a forked process is told apart."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from . import _exit, _native
from ._errors import ForkedError, StoreError, from_native

_Result = TypeVar("_Result", covariant=True)
_Given = TypeVar("_Given")


class Operation(Protocol[_Result]):
    """What a method of a native store gives: its arguments are right, and nothing has been sent."""

    async def wait(self) -> None: ...

    def start(self) -> bool: ...

    def cancel(self) -> None: ...

    def result(self) -> _Result: ...


# The process in which the native library's threads run: the first that used it.
_home: int | None = None


def enter() -> None:
    """Makes sure that the native library's threads are in this process."""
    global _home
    process = os.getpid()
    if _home is None:
        _home = process
    elif _home != process:
        raise ForkedError(
            f"this process ({process}) was forked from one ({_home}) that had already opened a zlink_store store, whose "
            "threads and connections do not exist here; open the first store after the fork, or start processes with "
            "multiprocessing's 'spawn' or 'forkserver' method"
        )


def _after_fork() -> None:
    if _home is None:
        return
    # Objects of the parent that are collected here must not touch what its threads may have held at the fork.
    library = _native._UniffiLib
    for name in dir(library):
        if "_fn_free_" in name or name.startswith("ffi_") and "rust_future_free" in name:
            setattr(library, name, lambda *_: None)


os.register_at_fork(after_in_child=_after_fork)
_exit.install()


def translated(error: Any) -> StoreError:
    """An error of the native library as one of ours."""
    unknown = error.result_outcome() == _native.Outcome.UNKNOWN
    return from_native(error.code(), unknown, error.retryable(), error.text(), getattr(error, "argument", None))


def call(function: Callable[[], _Given]) -> _Given:
    """Makes a call that answers at once."""
    enter()
    try:
        return function()
    except _native.StoreError as error:
        raise translated(error) from None


async def run(make: Callable[[], Operation[_Given]]) -> _Given:
    """Makes an operation, starts it and waits for its result; a task that is cancelled meanwhile ends it."""
    enter()
    try:
        operation = make()
        # Others get their turn also where answers come at once, and a task that is cancelled already sends nothing.
        await asyncio.sleep(0)
        if not operation.start():
            try:
                await operation.wait()
            except BaseException:
                operation.cancel()
                raise
        return operation.result()
    except _native.StoreError as error:
        raise translated(error) from None
