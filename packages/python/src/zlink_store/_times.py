"""Instants of the engine's clock."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST = datetime.max.replace(microsecond=999_000, tzinfo=timezone.utc)
_LAST_MS = (_LAST - _EPOCH) // timedelta(milliseconds=1)


def moment(unix_ms: int) -> datetime:
    """An instant in UTC, exact to the millisecond; the last of the year 9999 stands for all later ones."""
    return _EPOCH + timedelta(milliseconds=unix_ms) if unix_ms < _LAST_MS else _LAST


class Observed:
    """What was observed at an instant of the engine's clock."""

    __slots__ = ()
    store_now_ms: int

    @property
    def store_now(self) -> datetime:
        """The instant of the observation, by the engine's clock, in UTC."""
        return moment(self.store_now_ms)


class Expiring:
    """What surely expires."""

    __slots__ = ()
    expires_at_ms: int

    @property
    def expires_at(self) -> datetime:
        """When it expires, in UTC. An instant after the year 9999 is shown as that year's last; `expires_at_ms` is exact."""
        return moment(self.expires_at_ms)


class MayExpire:
    """What may expire."""

    __slots__ = ()
    expires_at_ms: int | None

    @property
    def expires_at(self) -> datetime | None:
        """When it expires, in UTC; ``None`` if never. An instant after the year 9999 is shown as that year's last;
        `expires_at_ms` is exact."""
        return None if self.expires_at_ms is None else moment(self.expires_at_ms)
