"""Errors, and how those of the native library become them."""

from __future__ import annotations

import re
from typing import Literal

Outcome = Literal["notApplied", "unknown"]


class StoreError(Exception):
    """Why a call gave no result. Closed results (missing, conflict, expired …) are values, never errors."""

    #: The stable, machine-readable code, such as ``TIMEOUT``; the same in every language.
    code: str = "INTERNAL"
    #: ``notApplied``: it surely changed nothing, and never will. ``unknown``: it may have been applied, or may still be; read
    #: the key (or the reference) and compare.
    outcome: Outcome
    #: Whether the same call may succeed later without anybody mending anything. A write whose outcome is unknown is to be
    #: looked at before it is made again.
    retryable: bool
    #: The argument that is wrong, such as ``mutations[3].key``; only for argument errors.
    argument: str | None

    def __init__(
        self,
        message: str,
        *,
        outcome: Outcome = "notApplied",
        retryable: bool = False,
        argument: str | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.retryable = retryable
        self.argument = argument


class InvalidArgumentError(StoreError, ValueError):
    """An argument is outside the contract's limits; nothing was sent."""

    code = "INVALID_ARGUMENT"


class InvalidTypeError(InvalidArgumentError, TypeError):
    """An argument is of a type that it can not have."""


class CancelledByStoreError(StoreError):
    """The operation was ended from elsewhere. A cancelled task gets ``asyncio.CancelledError`` instead."""

    code = "CANCELLED"


class StoreTimeoutError(StoreError, TimeoutError):
    """The operation timeout passed."""

    code = "TIMEOUT"


class UnavailableError(StoreError):
    """No connection, connection lost, cluster down, failover under way, too few replicas acknowledged."""

    code = "UNAVAILABLE"


class UnauthenticatedError(StoreError):
    """Wrong credentials, or a command that the user may not run."""

    code = "UNAUTHENTICATED"


class OutOfMemoryError(StoreError):
    """The engine refused the write for want of memory or disk."""

    code = "OUT_OF_MEMORY"


class IncompatibleError(StoreError):
    """Data of a newer layout, foreign data under our key, or an engine that is too old."""

    code = "INCOMPATIBLE"


class ClosedError(StoreError):
    """The store was closed."""

    code = "CLOSED"


class ForkedError(ClosedError):
    """This process was forked from one that had used the library: the library's threads exist only there."""


class InternalError(StoreError):
    """A broken invariant of ours."""

    code = "INTERNAL"


class StateConflictError(StoreError):
    """The expected version of a state entry was not there; nothing changed."""

    code = "STATE_CONFLICT"


class RateLimitError(StoreError):
    """The project has 100,000 live entries and this would be one more; nothing changed."""

    code = "RATE_LIMIT"


class LockLostError(StoreError):
    """The lease was lost or had expired."""

    code = "LOCK_LOST"


class LockUnavailableError(StoreError):
    """The lock could not be had in time."""

    code = "LOCK_UNAVAILABLE"


class ScanExpiredError(StoreError):
    """The snapshot of a scan is gone: drop what was read and start again."""

    code = "SCAN_EXPIRED"


_BY_CODE: dict[str, type[StoreError]] = {
    error.code: error
    for error in (
        InvalidArgumentError,
        CancelledByStoreError,
        StoreTimeoutError,
        UnavailableError,
        UnauthenticatedError,
        OutOfMemoryError,
        IncompatibleError,
        ClosedError,
        InternalError,
    )
}

# Where an argument has another name here than the contract's name in Python's spelling.
_RENAMED = {"retention": "retention_ms", "operation_timeout": "operation_timeout_ms"}


def argument_here(name: str) -> str:
    """An argument of the contract as it is called here: ``leaseMs`` is ``lease_ms``."""
    place, dot, last = name.rpartition(".")
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda capital: f"_{capital[1].lower()}", last)
    return place + dot + _RENAMED.get(snake, snake)


def from_native(code: str, unknown: bool, retryable: bool, message: str, argument: str | None) -> StoreError:
    """The error of the native library as one of ours."""
    if argument:
        here = argument_here(argument)
        message = message.replace(argument, here, 1)
        argument = here
    outcome: Outcome = "unknown" if unknown else "notApplied"
    return _BY_CODE.get(code, InternalError)(message, outcome=outcome, retryable=retryable, argument=argument or None)
