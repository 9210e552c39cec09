"""Arguments: what is taken, and what the error for a wrong one says."""

import array
import asyncio
from datetime import datetime, timedelta, timezone

import pytest

import zlink_store as zs


def run(work):
    return asyncio.run(work)


async def stored(value):
    async with zs.LocationStore("memory:") as store:
        await store.write(mutations=[zs.Put("k", value)])
        return (await store.read("k")).bytes


@pytest.mark.parametrize(
    "value",
    [b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(b"xabcx")[1:4], memoryview(b"aXbXcX")[::2], b"", bytearray()],
    ids=str,
)
def test_bytes_likes_go_in_and_bytes_come_out(value):
    found = run(stored(value))
    assert type(found) is bytes
    assert found == bytes(value)


def test_the_bytes_of_an_array_go_in_as_they_lie_in_memory():
    numbers = array.array("i", [1, 2, 3])
    assert run(stored(numbers)) == numbers.tobytes()


def test_a_blob_is_read_within_the_call():
    async def work():
        async with zs.RelocationStore("memory:") as store:
            payload = bytearray(b"before" * 100_000)
            put = asyncio.ensure_future(store.put("r", payload, retention_ms=60_000))
            await asyncio.sleep(0)
            payload[:6] = b"after!"
            await put
            return (await store.read("r")).bytes[:6]

    assert run(work()) == b"before"


@pytest.mark.parametrize(
    ("given", "ms"),
    [(1_500, 1_500), (timedelta(seconds=1.5), 1_500), (timedelta(microseconds=1), 1), (timedelta(microseconds=1_001), 2)],
)
def test_milliseconds_are_whole_numbers_or_timedeltas_rounded_up(given, ms):
    async def work():
        async with zs.LocationStore("memory:") as store:
            applied = await store.write(mutations=[zs.Put("k", b"", given)])
            page = await store.scan()
            return applied.store_now_ms, page.items

    now, items = run(work())
    if items:
        assert items[0].expires_at_ms == now + ms


def test_times_are_exact_in_ms_and_in_utc():
    async def work():
        async with zs.LocationStore("memory:") as store:
            await store.write(mutations=[zs.Put("k", b"", 60_000), zs.Put("last", b"", 2**53 - 1), zs.Put("for ever", b"")])
            return [await store.read(key) for key in ("k", "last", "for ever")]

    soon, last, never = run(work())
    assert soon.expires_at == datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=soon.expires_at_ms)
    assert soon.store_now.tzinfo is timezone.utc
    assert last.expires_at_ms == 8_640_000_000_000_000
    assert last.expires_at == datetime(9999, 12, 31, 23, 59, 59, 999_000, timezone.utc)
    assert (never.expires_at_ms, never.expires_at) == (None, None)


def released():
    view = memoryview(b"abc")
    view.release()
    return view


class Odd:
    """A type that nothing takes."""


LOCATION = [
    ("key", lambda s: s.read(5), TypeError),
    ("key", lambda s: s.read(b"k"), TypeError),
    ("key", lambda s: s.read(None), TypeError),
    ("key", lambda s: s.read(""), ValueError),
    ("key", lambda s: s.read("k" * 1_025), ValueError),
    ("key", lambda s: s.read("\ud800"), ValueError),
    ("mutations[0]", lambda s: s.write(mutations=["k"]), TypeError),
    ("conditions[0]", lambda s: s.write(conditions=[zs.Put("k", b"")]), TypeError),
    ("mutations[1].key", lambda s: s.write(mutations=[zs.Delete("a"), zs.Delete(7)]), TypeError),
    ("mutations[0].bytes", lambda s: s.write(mutations=[zs.Put("k", "text")]), TypeError),
    ("mutations[0].bytes", lambda s: s.write(mutations=[zs.Put("k", bytes(1_048_577))]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", 0)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", -1)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", 1.5)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", float("nan"))]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", True)]), TypeError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", "1")]), TypeError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", 2**53)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", 2**80)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", timedelta(0))]), ValueError),
    ("conditions[0].version", lambda s: s.write(conditions=[zs.IfVersion("k", 1)]), TypeError),
    ("conditions[0].version", lambda s: s.write(conditions=[zs.IfVersion("k", "")]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", 10**400)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", -(10**5_000))]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", timedelta.max)]), ValueError),
    ("mutations[0].retention_ms", lambda s: s.write(mutations=[zs.Put("k", b"", timedelta.min)]), ValueError),
    ("mutations[0].bytes", lambda s: s.write(mutations=[zs.Put("k", released())]), ValueError),
    ("mutations", lambda s: s.write(mutations=None), TypeError),
    ("mutations", lambda s: s.write(mutations=zs.Delete("k")), TypeError),
    ("conditions", lambda s: s.write(conditions=5), TypeError),
    ("prefix", lambda s: s.scan(None), TypeError),
    ("prefix", lambda s: s.scan("p" * 1_025), ValueError),
    ("limit", lambda s: s.scan(limit=0), ValueError),
    ("limit", lambda s: s.scan(limit=1_001), ValueError),
    ("limit", lambda s: s.scan(limit=2**40), ValueError),
    ("limit", lambda s: s.scan(limit=1.0), ValueError),
    ("limit", lambda s: s.scan(limit=None), TypeError),
    ("cursor", lambda s: s.scan(cursor=""), ValueError),
    ("cursor", lambda s: s.scan(cursor=Odd()), TypeError),
]
RELOCATION = [
    ("reference", lambda s: s.read(Odd()), TypeError),
    ("reference", lambda s: s.delete(""), ValueError),
    ("reference", lambda s: s.renew("r" * 4_097, 1), ValueError),
    ("payload", lambda s: s.put("r", None, 1), TypeError),
    ("payload", lambda s: s.put("r", bytes(67_108_888), 1), ValueError),
    ("payload", lambda s: s.put("r", released(), 1), ValueError),
    ("retention_ms", lambda s: s.put("r", b"", timedelta.max), ValueError),
    ("retention_ms", lambda s: s.renew("r", timedelta(microseconds=-1)), ValueError),
    ("retention_ms", lambda s: s.put("r", b"", None), TypeError),
    ("retention_ms", lambda s: s.put("r", b"", 0), ValueError),
    ("retention_ms", lambda s: s.renew("r", -(2**70)), ValueError),
]
PROJECT = [
    ("namespace", lambda p: p.state.namespace("a b"), ValueError),
    ("namespace", lambda p: p.state.namespace(3), TypeError),
    ("key", lambda p: p.state.namespace("n").get("k\n"), ValueError),
    ("value", lambda p: p.state.namespace("n").set("k", Odd()), TypeError),
    ("value", lambda p: p.state.namespace("n").set("k", float("nan")), ValueError),
    ("value", lambda p: p.state.namespace("n").set("k", "a" * 32_767), ValueError),
    ("value", lambda p: p.state.namespace("n").set_json("k", "{"), ValueError),
    ("expected_version", lambda p: p.state.namespace("n").set("k", 1, expected_version=-1), ValueError),
    ("expected_version", lambda p: p.state.namespace("n").delete("k", expected_version="1"), TypeError),
    ("ttl_seconds", lambda p: p.state.namespace("n").set("k", 1, ttl_seconds=0), ValueError),
    ("ttl_seconds", lambda p: p.state.namespace("n").set("k", 1, ttl_seconds=0.5), ValueError),
    ("key", lambda p: p.locks().acquire(""), ValueError),
    ("namespace", lambda p: p.locks().acquire("k", namespace=""), ValueError),
    ("wait_ms", lambda p: p.locks().acquire("k", wait_ms=10_001), ValueError),
    ("wait_ms", lambda p: p.locks().acquire("k", wait_ms=-1), ValueError),
    ("wait_ms", lambda p: p.locks().acquire("k", wait_ms=timedelta(microseconds=-1)), ValueError),
    ("wait_ms", lambda p: p.locks().acquire("k", wait_ms=timedelta.max), ValueError),
    ("expected_version", lambda p: p.state.namespace("n").set("k", 1, expected_version=10**400), ValueError),
    ("within_ms", lambda p: p.locks(within_ms=timedelta(microseconds=-999)), ValueError),
    ("lease_ms", lambda p: p.locks().acquire("k", lease_ms=timedelta(seconds=1)), ValueError),
    ("lease_ms", lambda p: p.locks().lock("k", lease_ms=60_001).__aenter__(), ValueError),
    ("within_ms", lambda p: p.locks(within_ms=-1), ValueError),
    ("id", lambda p: p.locks().attach(5), TypeError),
]
OPENING = [
    ("url", lambda: zs.LocationStore("http://x"), ValueError),
    ("url", lambda: zs.LocationStore(None), TypeError),
    ("key_prefix", lambda: zs.LocationStore("memory:", key_prefix="a{b"), ValueError),
    ("key_prefix", lambda: zs.LocationStore("redis://localhost"), ValueError),
    ("key_prefix", lambda: zs.RelocationStore("memory:", key_prefix=b"a"), TypeError),
    ("operation_timeout_ms", lambda: zs.LocationStore("memory:", operation_timeout_ms=0), ValueError),
    ("operation_timeout_ms", lambda: zs.RelocationStore("memory:", operation_timeout_ms=-5), ValueError),
    ("operation_timeout_ms", lambda: zs.Project("memory:", workspace="w", project="p", operation_timeout_ms=1e3), ValueError),
    ("operation_timeout_ms", lambda: zs.LocationStore("memory:", operation_timeout_ms=10**400), ValueError),
    ("operation_timeout_ms", lambda: zs.LocationStore("memory:", operation_timeout_ms=timedelta.max), ValueError),
    ("level", lambda: zs.enable_logging("INFO"), TypeError),
    ("level", lambda: zs.enable_logging(None), TypeError),
    ("workspace", lambda: zs.Project("memory:", workspace="", project="p"), ValueError),
    ("project", lambda: zs.Project("memory:", workspace="w", project=None), TypeError),
]


async def error_of(make):
    with pytest.raises(zs.InvalidArgumentError) as caught:
        made = make()
        if asyncio.iscoroutine(made) or hasattr(made, "__await__"):
            await made
    return caught.value


def check(error, argument, kind):
    assert isinstance(error, ValueError)
    assert isinstance(error, kind)
    assert (error.code, error.outcome, error.retryable) == ("INVALID_ARGUMENT", "notApplied", False)
    assert error.argument == argument
    assert str(error).startswith(argument)


@pytest.mark.parametrize(("argument", "call", "kind"), LOCATION, ids=[f"{at}-{row[0]}" for at, row in enumerate(LOCATION)])
def test_a_wrong_argument_of_a_location_store(argument, call, kind):
    async def work():
        async with zs.LocationStore("memory:") as store:
            check(await error_of(lambda: call(store)), argument, kind)
            assert isinstance(await store.read("k"), zs.Missing)
            assert store.stats().operations == {**store.stats().operations, "write": 0, "scan": 0, "read": 1}

    run(work())


@pytest.mark.parametrize(("argument", "call", "kind"), RELOCATION, ids=[f"{at}-{row[0]}" for at, row in enumerate(RELOCATION)])
def test_a_wrong_argument_of_a_relocation_store(argument, call, kind):
    async def work():
        async with zs.RelocationStore("memory:") as store:
            check(await error_of(lambda: call(store)), argument, kind)

    run(work())


@pytest.mark.parametrize(("argument", "call", "kind"), PROJECT, ids=[f"{at}-{row[0]}" for at, row in enumerate(PROJECT)])
def test_a_wrong_argument_of_a_project(argument, call, kind):
    async def work():
        async with zs.Project("memory:", workspace="w", project="p") as project:
            check(await error_of(lambda: call(project)), argument, kind)

    run(work())


@pytest.mark.parametrize(("argument", "call", "kind"), OPENING, ids=[f"{at}-{row[0]}" for at, row in enumerate(OPENING)])
def test_a_wrong_argument_of_an_opening(argument, call, kind):
    check(run(error_of(call)), argument, kind)


def test_an_error_of_an_opening_holds_no_password():
    error = run(error_of(lambda: zs.LocationStore("redis://user:s3cret@host:99999", key_prefix="p")))
    assert "s3cret" not in str(error)
