"""Python (bench.mjs)."""

import asyncio
import sys
import time

import zlink_store as zs

KEYS = [f"k{at}" for at in range(1_000)]
VALUE = bytes(256)
BLOB = bytes(64 * 1024 * 1024)
HOUR = 3_600_000


async def read(records, _blobs, at):
    await records.read(KEYS[at])


async def put(records, _blobs, at):
    await records.write(mutations=[zs.Put(KEYS[at], VALUE)])


async def blob_read(_records, blobs, _at):
    await blobs.read("there")


async def blob_put(_records, blobs, _at):
    # A put of bytes that are there would move none of them.
    await blobs.delete("fresh")
    await blobs.put("fresh", BLOB, HOUR)


WORK = {"read": read, "put": put, "blob-read": blob_read, "blob-put": blob_put}


async def measure(work, stores, in_flight, seconds):
    """Calls that end in a second, with so many under way at any time."""
    began = time.perf_counter()
    end = began + seconds
    done = 0

    async def loop(at):
        nonlocal done
        while time.perf_counter() < end:
            await work(*stores, at % len(KEYS))
            done += 1
            at += 1

    await asyncio.gather(*(loop(lane) for lane in range(in_flight)))
    return done / (time.perf_counter() - began)


async def main(url, prefix):
    options = {"key_prefix": prefix, "operation_timeout_ms": 60_000}
    engines = {
        engine: (zs.LocationStore(place, **options), zs.RelocationStore(place, **options))
        for engine, place in {"redis": url, "memory": "memory:"}.items()
    }
    for records, blobs in engines.values():
        await records.write(mutations=[zs.Put(key, VALUE) for key in KEYS])
        await blobs.put("there", BLOB, HOUR)
    # Nothing else goes on while it waits for a line.
    for line in sys.stdin:
        what, engine, in_flight, seconds = line.split()
        print(await measure(WORK[what], engines[engine], int(in_flight), float(seconds)), flush=True)


asyncio.run(main(*sys.argv[1:]))
