"""Three workers of a small service share their work through one store, and take turns with a lock."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from zlink_store import Applied, Found, IfMissing, IfVersion, LocationStore, Project, Put, RelocationStore, Stored

URL = "memory:workers"


async def claim(store: LocationStore, worker: str, actor: str) -> str | None:
    """Makes `worker` the owner of an actor that nobody owns: its version, or None if another was faster."""
    mine = Put(f"actor/{actor}", worker.encode(), retention_ms=timedelta(seconds=30))
    result = await store.write(conditions=[IfMissing(mine.key)], mutations=[mine])
    return result.put_versions[0].version if isinstance(result, Applied) else None


async def owners(store: LocationStore) -> None:
    print("Three workers want the same three actors; each actor gets exactly one owner.")
    wanted = [(worker, actor) for actor in ("ada", "ben", "cho") for worker in ("w1", "w2", "w3")]
    versions = await asyncio.gather(*(claim(store, worker, actor) for worker, actor in wanted))
    held = {actor: (worker, version) for (worker, actor), version in zip(wanted, versions) if version is not None}
    for actor, (worker, _) in held.items():
        print(f"  {actor} is at {worker}")

    print("One hands its actor over; who only knows the old version can't write any more.")
    worker, version = held["ada"]
    moved = await store.write(conditions=[IfVersion("actor/ada", version)], mutations=[Put("actor/ada", b"w9")])
    late = await store.write(conditions=[IfVersion("actor/ada", version)], mutations=[Put("actor/ada", worker.encode())])
    print(f"  the hand-over: {type(moved).__name__}; the late write: {type(late).__name__}")

    found = await store.read("actor/ada")
    if isinstance(found, Found):
        print(f"  ada is at {found.bytes.decode()} now")
    print("  all records:", [item.key async for item in store.items("actor/")])


async def luggage(store: RelocationStore) -> None:
    print("What an actor carries along is a blob, under a reference of ours.")
    stored = await store.put("ada/1", bytes(1_000_000), retention_ms=timedelta(minutes=5))
    if isinstance(stored, Stored):
        print(f"  1 MB until {stored.expires_at:%H:%M:%S} UTC")


async def turns(project: Project) -> None:
    print("Two workers count in shared state, and take turns with a lock.")
    counters = project.state.namespace("counters")

    async def work(name: str) -> None:
        for _ in range(3):
            async with project.locks().lock("counter", wait_ms=10_000) as lease:
                before = await counters.get("n")
                entry = await counters.set("n", (before.value if before else 0) + 1)
                print(f"  {name} with token {lease.fencing_token} made it {entry.value}")

    await asyncio.gather(work("w1"), work("w2"))


async def main() -> None:
    async with LocationStore(URL) as locations, RelocationStore(URL) as blobs:
        await owners(locations)
        await luggage(blobs)
    async with Project(URL, workspace="acme", project="shop") as project:
        await turns(project)


if __name__ == "__main__":
    asyncio.run(main())
