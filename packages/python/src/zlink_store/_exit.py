"""The end of the interpreter waits for threads that are calling back.

Python ends a foreign thread that asks for the interpreter's lock while the interpreter ends, in the middle of Rust's frames,
which ends the whole process with SIGABRT. So nobody may be in a callback by then: the native library's threads tell a coroutine
that it can go on, and a short program is often over before such a thread has come back from telling.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import Any

from . import _native as _typed

# The generated module has no types.
_native: Any = _typed

# Threads in a callback. Adding and removing are atomic.
_inside: set[int] = set()
_PAUSE_S = 0.0005
_AT_MOST_S = 2.0


def _told(handle: int, code: int) -> None:
    thread = threading.get_ident()
    _inside.add(thread)
    try:
        loop, future = _native._UniffiContinuationHandleMap.remove(handle)
        loop.call_soon_threadsafe(_native._uniffi_set_future_result, future, code)
    except RuntimeError:
        # The loop is closed: nobody waits any more.
        pass
    finally:
        _inside.discard(thread)


def _wait_for_threads() -> None:
    until = time.monotonic() + _AT_MOST_S
    quiet = 0
    # Twice: who waits for the interpreter's lock to begin, or to return, gets it in a pause.
    while quiet < 2 and time.monotonic() < until:
        time.sleep(_PAUSE_S)
        quiet = 0 if _inside else quiet + 1


def install() -> None:
    """Makes the native library's threads call back through this module."""
    _native._uniffi_continuation_callback = _native._UNIFFI_RUST_FUTURE_CONTINUATION_CALLBACK(_told)
    atexit.register(_wait_for_threads)
    # The threads do not exist in a child.
    os.register_at_fork(after_in_child=_inside.clear)
