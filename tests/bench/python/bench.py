"""Python against redis-py's asyncio client, in one run on one Redis.

Calls per second with 1, 64 and 1,024 in flight, and MB/s of blobs.

    target/python/venv/bin/python tests/bench/python/bench.py [seconds per measurement] [rounds]

Both sides take turns; the table has the median of the rounds. redis-py (a package of the benchmark alone) may be missing: its
columns are empty then.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import zlink_store as zs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from runner.places import Redis

try:
    import redis.asyncio as rival
except ImportError:
    rival = None

Call = Callable[[int], Awaitable[object]]
VALUE = bytes(256)


async def per_second(call: Call, in_flight: int, seconds: float) -> float:
    """Calls that end in a second, with so many under way at any time."""
    done = 0
    end = time.perf_counter() + seconds

    async def one(start: int) -> None:
        nonlocal done
        at = start
        while time.perf_counter() < end:
            await call(at % 1_000)
            done += 1
            at += 1

    began = time.perf_counter()
    await asyncio.gather(*(one(start) for start in range(in_flight)))
    return done / (time.perf_counter() - began)


async def rows(url: str, unique: str) -> dict[str, tuple[Call, Call | None, int, int]]:
    """By name: our call, the rival's, how many in flight, and the bytes that one call moves (0: count calls)."""
    records = zs.LocationStore(url, key_prefix=f"{unique}-l", operation_timeout_ms=60_000)
    memory = zs.LocationStore(f"memory:{unique}")
    blobs = zs.RelocationStore(url, key_prefix=f"{unique}-r", operation_timeout_ms=60_000)
    client = rival.Redis.from_url(url, max_connections=64) if rival else None
    keys = [f"k{at}" for at in range(1_000)]
    for store in (records, memory):
        await store.write(mutations=[zs.Put(key, VALUE) for key in keys])
    if client:
        await client.mset({f"{unique}{key}": VALUE for key in keys})

    def theirs(call: Callable[[str], Awaitable[object]]) -> Call | None:
        return (lambda at: call(f"{unique}{keys[at]}")) if client else None

    table: dict[str, tuple[Call, Call | None, int, int]] = {}
    for in_flight in (1, 64, 1_024):
        get = theirs(lambda key: client.get(key)) if in_flight <= 64 else None
        put = theirs(lambda key: client.set(key, VALUE)) if in_flight <= 64 else None
        table[f"redis read, {in_flight} in flight"] = (lambda at: records.read(keys[at]), get, in_flight, 0)
        table[f"redis put, {in_flight} in flight"] = (
            lambda at: records.write(mutations=[zs.Put(keys[at], VALUE)]),
            put,
            in_flight,
            0,
        )
        table[f"memory read, {in_flight} in flight"] = (lambda at: memory.read(keys[at]), None, in_flight, 0)
    for size in (1_048_576, 64 * 1_048_576):
        payload, name = bytes(size), f"blob-{size}"
        await blobs.put(name, payload, 3_600_000)
        mib = size // 1_048_576

        async def put_blob(_: int, payload: bytes = payload, name: str = name) -> None:
            # A put of bytes that are there would move none of them.
            await blobs.delete(f"{name}-put")
            await blobs.put(f"{name}-put", payload, 3_600_000)

        table[f"blob put, {mib} MiB"] = (put_blob, (lambda _, p=payload: client.set(unique, p)) if client else None, 1, size)
        if client:
            await client.set(f"{unique}{name}", payload)
        get = (lambda _, n=name: client.get(f"{unique}{n}")) if client else None
        table[f"blob read, {mib} MiB"] = (lambda _, n=name: blobs.read(n), get, 1, size)
    return table


async def main(seconds: float, rounds: int) -> None:
    server = Redis()
    try:
        table = await rows(server.url, uuid.uuid4().hex[:8])
        other = sys.modules["redis"].__version__ if rival else "is missing"
        print(f"Python {sys.version.split()[0]}, zlink_store {zs.__version__}, redis-py {other}")
        print(f"{'':32}{'zlink_store':>14}{'redis-py':>14}{'ratio':>8}")
        for name, (ours, theirs, in_flight, size) in table.items():
            found: list[list[float]] = [[], []]
            for _ in range(rounds):
                for side, call in enumerate((ours, theirs)):
                    if call is not None:
                        found[side].append(await per_second(call, in_flight, seconds))
            unit = size / 1e6 if size else 1
            mine, rivals = (statistics.median(one) * unit if one else None for one in found)
            cells = [f"{value:,.0f}{' MB/s' if size else '/s'}" if value else "" for value in (mine, rivals)]
            print(f"{name:32}{cells[0]:>14}{cells[1]:>14}{f'{mine / rivals:.2f}' if mine and rivals else '':>8}", flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, int(sys.argv[2]) if len(sys.argv) > 2 else 3))
