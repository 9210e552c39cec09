"""Log events of the native library, as records of ``logging``."""

from __future__ import annotations

import logging
import threading
import traceback

from . import _native
from ._arguments import whole
from ._calls import call, once_opened

_TRACE = 5
_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG, "trace": _TRACE}
_PATIENCE_MS = 1_000

_lock = threading.Lock()
_level: str | None = None
_events: _native.LogEvents | None = None


def enable_logging(level: int = logging.INFO) -> None:
    """Sends the library's log events of at least `level` to the loggers ``zlink_store`` and below, from a thread of its own.

    Calling it again changes the level; each event is sent once. It may be called before a fork: a process listens from the
    first store on that it opens. No event holds a password, a value or a key.
    """
    global _level
    level = whole("level", level, ", such as logging.INFO")
    with _lock:
        first = _level is None
        # The least severe of the library's levels that is wanted still.
        _level = name = next((name for name, at in reversed(_LEVELS.items()) if at >= level), "error")
        events = _events
    if events is not None:
        call(lambda: events.change_level(name))
    elif first:
        once_opened(_listen)


def _listen() -> None:
    global _events
    with _lock:
        level = _level or "info"
        _events = events = call(lambda: _native.LogEvents.listen(level))
    threading.Thread(target=_forward, args=(events,), name="zlink-store-log", daemon=True).start()


def _forward(events: _native.LogEvents) -> None:
    while True:
        events.block(_PATIENCE_MS)
        for event in events.take():
            try:
                logger = logging.getLogger(event.target.replace("::", "."))
                logger.log(_LEVELS.get(event.level, logging.INFO), "%s", event.message)
            except Exception:
                # A filter or handler that fails keeps no other event back; it is shown as `logging` shows such.
                if logging.raiseExceptions:
                    traceback.print_exc()
