"""Log events of the native library, as records of ``logging``."""

from __future__ import annotations

import logging
import threading

from . import _native
from ._calls import call

_TRACE = 5
_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG, "trace": _TRACE}
_PATIENCE_MS = 1_000

_current: _native.LogEvents | None = None


def enable_logging(level: int = logging.INFO) -> None:
    """Sends the library's log events of at least `level` to the loggers ``zlink_store`` and below, from a thread of its own.

    Calling it again changes the level. No event holds a password, a value or a key.
    """
    global _current
    # The least severe of the library's levels that is wanted still.
    name = next((name for name, at in reversed(_LEVELS.items()) if at >= level), "error")
    _current = events = call(lambda: _native.LogEvents.listen(name))
    threading.Thread(target=_forward, args=(events,), name="zlink-store-log", daemon=True).start()


def _forward(events: _native.LogEvents) -> None:
    while events is _current:
        events.block(_PATIENCE_MS)
        for event in events.take():
            logger = logging.getLogger(event.target.replace("::", "."))
            logger.log(_LEVELS.get(event.level, logging.INFO), "%s", event.message)
