"""Whether a result is as expected (tests/conformance/README.md, Expectations)."""

from contextlib import contextmanager

_CONDITIONS = ("not", "atLeast", "atMost", "above", "below", "oneOf", "size", "present")
_FIELDS = ("key", "bytes", "version", "expiresAt")
_ABSENT = object()


class Mismatch(Exception):
    """Something is not as expected; any other error means that the scenario makes no sense."""


def expect(result, expectation, variables):
    """Checks a result against a step's expectation."""
    if isinstance(expectation, str):
        if result.get("kind") != expectation:
            raise Mismatch(f"expected {expectation}, got {show(result)}")
        return
    if "oneOf" in expectation:
        _one_of(expectation["oneOf"], lambda one: expect(result, one, variables))
        return
    seen = variables.having("it", result)
    for name, matcher in expectation.items():
        with _within(f"{name} of {show(result)}"):
            if name == "argument":
                _contains(result.get("argument") or result.get("message"), seen.text(matcher))
            elif name == "says":
                _contains(result.get("message"), seen.text(matcher))
            elif name == "outcome" and "error" in result and "outcome" not in result:
                # An error of the platform's own may carry no outcome.
                continue
            else:
                field(result.get(name, _ABSENT), matcher, seen)


def field(actual, matcher, variables):
    """Checks one field."""
    if matcher is None:
        if actual is not _ABSENT:
            raise Mismatch("expected it to be absent")
        return
    if actual is _ABSENT:
        raise Mismatch("it is absent")
    if isinstance(matcher, list):
        _list(actual, matcher, variables)
    elif isinstance(matcher, dict) and "fill" not in matcher and any(name in matcher for name in _CONDITIONS):
        _conditions(actual, matcher, variables)
    else:
        expected = variables.eval(matcher)
        if isinstance(actual, bytes) and isinstance(expected, str):
            expected = expected.encode()
        if actual != expected:
            raise Mismatch(f"expected {show(expected)}, got {show(actual)}")


def _list(actual, elements, variables):
    if not isinstance(actual, list):
        raise Mismatch("expected a list")
    expected = variables.expand(elements)
    if len(expected) != len(actual):
        raise Mismatch(f"expected {len(expected)} elements, got {len(actual)}")
    for index, (element, seen) in enumerate(expected):
        with _within(f"element {index}, {show(actual[index])}"):
            if not isinstance(element, dict) or not any(name in element for name in _FIELDS):
                field(actual[index], element, seen)
                continue
            for name, matcher in element.items():
                if name not in ("times", "from"):
                    field(actual[index].get(name, _ABSENT), matcher, seen)


def _conditions(actual, matcher, variables):
    def size(one):
        field(len(actual.encode()) if isinstance(actual, str) else len(actual), one, variables)
        return True

    holds = {
        "present": lambda _: True,
        "oneOf": lambda every: _one_of(every, lambda one: field(actual, one, variables)),
        "not": lambda one: not _matches(lambda: field(actual, one, variables)),
        "size": size,
        "atLeast": lambda number: actual >= variables.number(number),
        "atMost": lambda number: actual <= variables.number(number),
        "above": lambda number: actual > variables.number(number),
        "below": lambda number: actual < variables.number(number),
    }
    for name, argument in matcher.items():
        if not holds[name](argument):
            raise Mismatch(f"{show(actual)} is not {name} {argument}")


def _one_of(alternatives, check):
    said = []
    for alternative in alternatives:
        try:
            check(alternative)
            return True
        except Mismatch as mismatch:
            said.append(str(mismatch))
    raise Mismatch(f"none of: {' | '.join(said)}")


def _matches(check):
    try:
        check()
        return True
    except Mismatch:
        return False


def _contains(text, part):
    if not isinstance(text, str) or part not in text:
        raise Mismatch(f"expected it to name {part}, got {show(text)}")


@contextmanager
def _within(place):
    try:
        yield
    except Mismatch as mismatch:
        raise Mismatch(f"{place}: {mismatch}") from None


def show(value):
    """A value for a person, shortened."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 80 else f"a text of {len(value)} characters"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}" if len(value) <= 32 else f"{len(value)} bytes"
    if isinstance(value, list):
        return f"[{', '.join(map(show, value[:3]))}{f', … {len(value)}' if len(value) > 3 else ''}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name}: {show(part)}' for name, part in value.items())} }}"
    return str(value)
