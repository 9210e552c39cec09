"""Arguments on their way in: what is no value of the right type is refused here, the limits are the core's to check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TypeVar

from ._errors import InvalidArgumentError, InvalidTypeError

#: Anything with the buffer protocol; it is copied within the call.
BytesLike = bytes | bytearray | memoryview
#: Whole milliseconds, or a ``timedelta``, which is rounded up to them.
Milliseconds = int | timedelta

_Value = TypeVar("_Value")
_LARGEST = 2**63 - 1
# The native library counts bytes in 32 bits. A text takes up to four a character.
_LONGEST = 2**31 - 64
_LONGEST_TEXT = 2**26


def text(argument: str, value: str) -> str:
    """A text that has a form in UTF-8."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{argument} must be a str, got {_type(value)}", argument=argument)
    if len(value) > _LONGEST_TEXT:
        raise InvalidArgumentError(f"{argument} must be far shorter than {len(value)} characters", argument=argument)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            said = f"{argument} must be valid Unicode (no lone surrogate)"
            raise InvalidArgumentError(said, argument=argument) from None
    return value


def content(argument: str, value: BytesLike) -> bytes:
    """Bytes of our own."""
    if type(value) is bytes:
        taken, length = value, len(value)
    else:
        try:
            view = memoryview(value)
            length = view.nbytes
            taken = view.tobytes() if length <= _LONGEST else b""
        except TypeError:
            said = f"{argument} must be bytes, a bytearray or a memoryview, got {_type(value)}"
            raise InvalidTypeError(said, argument=argument) from None
        except (ValueError, BufferError, NotImplementedError) as error:
            # Such as a memoryview that was released.
            said = f"{argument} must be bytes that can be read: {error}"
            raise InvalidArgumentError(said, argument=argument) from None
    if length > _LONGEST:
        raise InvalidArgumentError(f"{argument} must be far shorter than {length} bytes", argument=argument)
    return taken


def each(argument: str, values: Iterable[_Value], what: str) -> Iterator[tuple[str, _Value]]:
    """The values, each with its place."""
    try:
        iterator = iter(values)
    except TypeError:
        said = f"{argument} must be an iterable of {what}, got {_type(values)}"
        raise InvalidTypeError(said, argument=argument) from None
    return ((f"{argument}[{at}]", value) for at, value in enumerate(iterator))


def whole(argument: str, value: int, unit: str = "") -> int:
    """A whole number."""
    if type(value) is not int:
        if isinstance(value, float):
            raise InvalidArgumentError(f"{argument} must be a whole number{unit}, got {value}", argument=argument)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidTypeError(f"{argument} must be a whole number{unit}, got {_type(value)}", argument=argument)
    if not -_LARGEST <= value <= _LARGEST:
        # As text it may be longer than Python will make one.
        said = f"{argument} must be a whole number{unit} below 2^63, got one of {value.bit_length()} bits"
        raise InvalidArgumentError(said, argument=argument)
    return int(value)


def optional(argument: str, value: int | None, unit: str = "") -> int | None:
    """A whole number that may be left out."""
    return None if value is None else whole(argument, value, unit)


def milliseconds(argument: str, value: Milliseconds) -> int:
    """Milliseconds."""
    if isinstance(value, timedelta):
        # In whole numbers, since not every timedelta has a negative. Away from zero, so that no negative one becomes 0.
        us = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        return -(-us // 1_000) if us > 0 else us // 1_000
    return whole(argument, value, " of ms or a timedelta")


def optional_milliseconds(argument: str, value: Milliseconds | None) -> int | None:
    """Milliseconds that may be left out."""
    return None if value is None else milliseconds(argument, value)


def _type(value: object) -> str:
    return type(value).__name__
