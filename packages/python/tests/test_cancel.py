"""Cancelling a task during each operation: the await ends at once, nothing is half done, nothing is left."""

import asyncio
import os
import random
import signal
import time

import pytest

import zlink_store as zs
from probes import resident_bytes, threads

ROUNDS = 1_000


class Subjects:
    """All that can be called, at one place."""

    def __init__(self, url, prefix, timeout_ms=20_000):
        options = {"operation_timeout_ms": timeout_ms}
        self.locations = zs.LocationStore(url, key_prefix=f"l-{prefix}", **options)
        self.blobs = zs.RelocationStore(url, key_prefix=f"r-{prefix}", **options)
        self.project = zs.Project(url, workspace=f"w-{prefix}", project="p", **options)
        self.entries = self.project.state.namespace("n")
        self.lease = None
        # Leases that are to be released.
        self.spare = []
        self.taken = 0

    @property
    def all(self):
        return self.locations, self.blobs, self.project

    async def close(self):
        await asyncio.gather(*(store.close() for store in self.all))


BIG = bytes(1_000_000)


async def first_item(subjects):
    async for item in subjects.locations.items("half/", limit=10):
        return item


async def release(subjects):
    if not subjects.spare:
        subjects.taken += 1
        subjects.spare.append(await subjects.project.locks().acquire(f"spare/{subjects.taken}", lease_ms=5_000))
    await subjects.spare.pop().release()


OPERATIONS = {
    "read": lambda s: s.locations.read("big"),
    "write": lambda s: s.locations.write(mutations=[zs.Put(f"half/{at}", os.urandom(8)) for at in range(20)]),
    "scan": lambda s: s.locations.scan("half/"),
    "items": first_item,
    "ping": lambda s: s.locations.ping(),
    "blob put": lambda s: s.blobs.put("r", BIG, 600_000),
    "blob read": lambda s: s.blobs.read("r"),
    "blob renew": lambda s: s.blobs.renew("r", 600_000),
    "blob delete": lambda s: s.blobs.delete("other"),
    "state get": lambda s: s.entries.get("k"),
    "state set": lambda s: s.entries.set("k", {"n": 1}),
    "state delete": lambda s: s.entries.delete("k"),
    "acquire": lambda s: s.project.locks().acquire("lock"),
    "acquire, waiting": lambda s: s.project.locks().acquire("held", wait_ms=10_000),
    "attach": lambda s: s.project.locks().attach(s.lease.id),
    "renew": lambda s: s.lease.renew(60_000),
    "release": release,
}


async def prepared(url, prefix, timeout_ms=20_000):
    subjects = Subjects(url, prefix, timeout_ms)
    await subjects.locations.write(mutations=[zs.Put("big", BIG)])
    await subjects.blobs.put("r", BIG, 600_000)
    subjects.lease = await subjects.project.locks().acquire("held", lease_ms=60_000)
    subjects.spare = [await subjects.project.locks().acquire("spare/0")]
    return subjects


async def settled(subjects):
    """Waits until nothing is under way any more."""
    end = time.monotonic() + 60
    while any(store.stats().in_flight for store in subjects.all):
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("name", OPERATIONS)
def test_cancelled_at_any_moment_nothing_is_left(url, prefix, name):
    # The embedded engine answers at once, or after a sync that takes long.
    rounds = ROUNDS if url.startswith("redis") else ROUNDS // 10
    chance = random.Random(name)

    async def cancelled(subjects, turns, pause):
        task = asyncio.ensure_future(OPERATIONS[name](subjects))
        for _ in range(turns):
            await asyncio.sleep(0)
        if pause:
            await asyncio.sleep(pause)
        task.cancel()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(result, zs.LockLease) and result.id != subjects.lease.id:
            await result.release()
        elif isinstance(result, BaseException):
            assert isinstance(result, (asyncio.CancelledError, zs.LockLostError)), result

    async def work():
        subjects = await prepared(url, prefix)
        for _ in range(rounds // 5):
            await cancelled(subjects, chance.randrange(6), chance.choice([0, 0, 0.001]))
        await settled(subjects)
        before, threads_before = resident_bytes(), threads()
        for _ in range(rounds):
            await cancelled(subjects, chance.randrange(6), chance.choice([0, 0, 0, 0.0005, 0.001, 0.002]))
        await settled(subjects)
        grown = resident_bytes() - before

        # All of a write or nothing: each of its values came with 19 others of the same commit.
        page = await subjects.locations.scan("half/")
        assert len(page.items) in (0, 20)
        # No lease that nobody knows, and nobody stands in the queue before the next one.
        lease = await subjects.project.locks().acquire("lock", wait_ms=10_000)
        assert lease is not None
        await subjects.lease.renew()
        await subjects.lease.release()
        assert await subjects.project.locks().acquire("held", wait_ms=10_000) is not None
        await subjects.close()
        assert threads() <= threads_before
        assert grown < 20_000_000, f"{grown} bytes more"

    asyncio.run(work())


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "items"])
def test_against_a_silent_server_the_await_ends_at_once(silenced, prefix, name):
    redis, pid = silenced

    async def work():
        subjects = await prepared(redis.url, prefix)
        os.kill(pid, signal.SIGSTOP)
        try:
            task = asyncio.ensure_future(OPERATIONS[name](subjects))
            for _ in range(5):
                await asyncio.sleep(0)
            await asyncio.sleep(0.02)
            began = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Far from the operation timeout of 20 s.
            assert time.monotonic() - began < 5
        finally:
            os.kill(pid, signal.SIGCONT)
        await subjects.locations.ping()
        await settled(subjects)
        await subjects.lease.release()
        await subjects.close()

    asyncio.run(work())


@pytest.fixture
def silenced(redis):
    """The server, and its process, which can be stopped."""
    import socket
    from urllib.parse import urlsplit

    at = urlsplit(redis.url)
    with socket.create_connection((at.hostname, at.port), 10) as link:
        link.sendall(b"INFO server\r\n")
        said = b""
        while b"process_id:" not in said or b"\r\n" not in said.split(b"process_id:")[1]:
            said += link.recv(65_536)
    return redis, int(said.split(b"process_id:")[1].split(b"\r\n")[0])


def test_a_timeout_of_the_caller_cancels(url, prefix):
    async def work():
        async with zs.Project(url, workspace="w", project=prefix) as project:
            async with project.locks().lock("k"):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(project.locks().acquire("k", wait_ms=10_000), 0.05)
            # Who gave up does not stand before the next one.
            async with project.locks().lock("k", wait_ms=10_000):
                pass

    asyncio.run(work())


def test_cancelled_in_the_body_the_lock_is_released(url, prefix):
    async def work():
        async with zs.Project(url, workspace="w", project=prefix) as project:
            inside = asyncio.Event()

            async def hold():
                async with project.locks().lock("k"):
                    inside.set()
                    await asyncio.sleep(60)

            task = asyncio.ensure_future(hold())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await project.locks().acquire("k") is not None

    asyncio.run(work())


@pytest.mark.parametrize("again", [0, 1, 2, 3])
def test_a_lock_is_given_back_whenever_its_task_is_cancelled(url, prefix, again):
    """Before, in and after the body, and once more while the release is under way."""

    async def work():
        async with zs.Project(url, workspace="w", project=prefix) as project:
            for turns in range(12):
                key = f"k{turns}"

                async def hold(key=key):
                    async with project.locks().lock(key):
                        await asyncio.sleep(0)

                task = asyncio.ensure_future(hold())
                for _ in range(turns):
                    await asyncio.sleep(0)
                for _ in range(1 + again):
                    task.cancel()
                    await asyncio.sleep(0)
                await asyncio.gather(task, return_exceptions=True)
                # Far from the 30 s of the lease.
                assert await project.locks().acquire(key, wait_ms=10_000) is not None

    asyncio.run(work())


def test_a_cancelled_acquire_leaves_no_lease_behind_when_the_project_is_closed(url, prefix):
    async def once(project, key, busy):
        async with zs.Project(url, workspace="w", project=project) as first:
            await first.ping()
            task = asyncio.ensure_future(first.locks().acquire(key))
            for _ in range(3):
                await asyncio.sleep(0)
            # The answer is there, and the task has not seen it.
            time.sleep(busy)
            task.cancel()
        had = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(had, zs.LockLease):
            return
        async with zs.Project(url, workspace="w", project=project) as second:
            assert await second.locks().acquire(key, wait_ms=2_000) is not None

    async def work():
        # Keeps what is in memory.
        async with zs.Project(url, workspace="w", project=prefix) as held:
            await held.ping()
            for at in range(20):
                await once(prefix, f"k{at}", 0.01 * (at % 2))

    asyncio.run(work())


@pytest.mark.parametrize("turns", range(4))
def test_a_cancelled_acquire_takes_no_place_though_its_exception_lives(url, prefix, turns):
    async def work():
        async with zs.Project(url, workspace="w", project=prefix) as project:
            locks = project.locks()
            # One holds all others up.
            await project.locks().acquire("k")
            tasks = [asyncio.ensure_future(locks.acquire("k", wait_ms=10_000)) for _ in range(16)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            kept = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in kept)
            leases = [await locks.acquire(f"free/{at}") for at in range(16)]
            assert all(leases)

    asyncio.run(work())


def test_an_argument_error_goes_before_a_cancellation_and_nothing_is_sent():
    async def work():
        async with zs.LocationStore("memory:") as store:

            async def cancelled(call):
                asyncio.current_task().cancel()
                return await call()

            with pytest.raises(ValueError):
                await asyncio.ensure_future(cancelled(lambda: store.read("")))
            with pytest.raises(asyncio.CancelledError):
                await asyncio.ensure_future(cancelled(lambda: store.write(mutations=[zs.Put("k", b"v")])))
            assert isinstance(await store.read("k"), zs.Missing)

    asyncio.run(work())
