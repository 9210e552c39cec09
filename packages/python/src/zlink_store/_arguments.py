"""Arguments on their way in: what is no value of the right type is refused here, the limits are the core's to check."""

from __future__ import annotations

from datetime import timedelta

from ._errors import InvalidArgumentError, InvalidTypeError

#: Anything with the buffer protocol; it is copied within the call.
BytesLike = bytes | bytearray | memoryview
#: Whole milliseconds, or a ``timedelta``, which is rounded up to them.
Milliseconds = int | timedelta

_MILLISECOND = timedelta(milliseconds=1)
_LARGEST = 2**63 - 1
# The native library counts bytes in 32 bits.
_LONGEST = 2**31 - 64


def text(argument: str, value: str) -> str:
    """A text that has a form in UTF-8."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{argument} must be a str, got {_type(value)}", argument=argument)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            said = f"{argument} must be valid Unicode (no lone surrogate)"
            raise InvalidArgumentError(said, argument=argument) from None
    return value


def content(argument: str, value: BytesLike) -> bytes:
    """Bytes of our own."""
    if type(value) is not bytes:
        try:
            view = memoryview(value)
        except TypeError:
            said = f"{argument} must be bytes, a bytearray or a memoryview, got {_type(value)}"
            raise InvalidTypeError(said, argument=argument) from None
        value = view.tobytes() if view.nbytes <= _LONGEST else b""
        length = view.nbytes
    else:
        length = len(value)
    if length > _LONGEST:
        raise InvalidArgumentError(f"{argument} must be far shorter than {length} bytes", argument=argument)
    return value


def whole(argument: str, value: int, unit: str = "") -> int:
    """A whole number."""
    if type(value) is not int:
        if isinstance(value, float):
            raise InvalidArgumentError(f"{argument} must be a whole number{unit}, got {value}", argument=argument)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidTypeError(f"{argument} must be a whole number{unit}, got {_type(value)}", argument=argument)
    if not -_LARGEST <= value <= _LARGEST:
        raise InvalidArgumentError(f"{argument} must be a whole number{unit} below 2^63, got {value:.3e}", argument=argument)
    return int(value)


def optional(argument: str, value: int | None, unit: str = "") -> int | None:
    """A whole number that may be left out."""
    return None if value is None else whole(argument, value, unit)


def milliseconds(argument: str, value: Milliseconds) -> int:
    """Milliseconds."""
    if isinstance(value, timedelta):
        return -(-value // _MILLISECOND)
    return whole(argument, value, " of ms or a timedelta")


def optional_milliseconds(argument: str, value: Milliseconds | None) -> int | None:
    """Milliseconds that may be left out."""
    return None if value is None else milliseconds(argument, value)


def _type(value: object) -> str:
    return type(value).__name__
