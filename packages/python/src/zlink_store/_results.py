"""What calls give: plain values, to be told apart with ``match`` or ``isinstance``."""

from __future__ import annotations

from dataclasses import dataclass

from ._times import Expiring, MayExpire, Observed


@dataclass(frozen=True)
class Missing(Observed):
    """There is no live record or blob (never put, deleted or expired)."""

    store_now_ms: int


@dataclass(frozen=True)
class Found(Observed, MayExpire):
    """The live record as one observation saw it: all fields belong to the same instant of the engine's clock."""

    bytes: bytes
    version: str
    #: In Unix milliseconds; ``None`` for a durable record.
    expires_at_ms: int | None
    store_now_ms: int


ReadResult = Found | Missing


@dataclass(frozen=True)
class PutVersion:
    """The version that one put got."""

    key: str
    version: str


@dataclass(frozen=True)
class Applied(Observed):
    """All conditions held and all mutations are in."""

    #: The versions of the puts, in the order of the puts.
    put_versions: tuple[PutVersion, ...]
    store_now_ms: int


@dataclass(frozen=True)
class Conflict(Observed):
    """A condition did not hold, or other bytes are there; nothing changed."""

    store_now_ms: int


WriteResult = Applied | Conflict


@dataclass(frozen=True)
class ScanItem(MayExpire):
    """One record of a page, as it stood at the snapshot's instant."""

    key: str
    bytes: bytes
    version: str
    expires_at_ms: int | None


@dataclass(frozen=True)
class Page(Observed):
    """A page of a snapshot, in ascending key byte order."""

    #: Empty only when the whole scan is.
    items: tuple[ScanItem, ...]
    #: There exactly when another item is known to follow.
    next_cursor: str | None
    store_now_ms: int


@dataclass(frozen=True)
class Expired:
    """The snapshot is gone, or the cursor is none of this scan's: drop what was read and start again."""


ScanResult = Page | Expired


@dataclass(frozen=True)
class Stored(Observed, Expiring):
    """The blob is new."""

    expires_at_ms: int
    store_now_ms: int


@dataclass(frozen=True)
class AlreadyStored(Observed, Expiring):
    """The same bytes are there already; their expiry stands."""

    expires_at_ms: int
    store_now_ms: int


BlobPutResult = Stored | AlreadyStored | Conflict


@dataclass(frozen=True)
class Blob(Observed, Expiring):
    """Exactly the bytes that were put."""

    bytes: bytes
    expires_at_ms: int
    store_now_ms: int


BlobReadResult = Blob | Missing


@dataclass(frozen=True)
class Renewed(Observed, Expiring):
    """The blob now expires then, also when that is earlier than before."""

    expires_at_ms: int
    store_now_ms: int


BlobRenewResult = Renewed | Missing


@dataclass(frozen=True)
class Stats:
    """What a store has counted since it was made."""

    #: Operations begun, by kind (``read``, ``write`` …).
    operations: dict[str, int]
    #: Failures, by code; codes that never came are left out.
    errors: dict[str, int]
    #: Finished operations by latency: entry i counts those that took at least 2^i and under 2^(i+1) microseconds (entry 0 also
    #: those under 1 µs).
    latency_us_log2: tuple[int, ...]
    #: Operations under way.
    in_flight: int
    #: Connections made again after a loss (shared by the stores on one connection).
    reconnects: int
    #: Commands sent to the server (shared by the stores on one connection).
    commands_sent: int
