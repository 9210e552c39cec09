"""How the ends of operations come to those who wait: event loops of any kind, faults of the library, held locks."""

import asyncio
import ctypes
import gc
import threading
import time
import weakref

import pytest

import zlink_store as zs
from zlink_store import _native


async def many(url, prefix):
    async with zs.LocationStore(url, key_prefix=prefix) as store:
        for _ in range(5):
            found = await asyncio.gather(*(store.read(f"k{at}") for at in range(100)))
            assert all(isinstance(one, zs.Missing) for one in found)


class WithoutReaders(asyncio.SelectorEventLoop):
    """As the loop of Windows: it watches no descriptors of others."""

    def add_reader(self, fd, callback, *args):
        raise NotImplementedError


def on(loop, work):
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def test_a_loop_that_watches_no_descriptors_works_too(url, prefix):
    on(WithoutReaders(), many(url, prefix))
    # Its thread ends with the loop.
    gc.collect()
    end = time.monotonic() + 30
    while any(thread.name == "zlink-store-ends" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, WithoutReaders])
def test_a_loop_that_is_left_with_somebody_waiting_goes(redis, prefix, make_loop):
    project = zs.Project(redis.url, workspace="w", project=prefix)

    async def leaves():
        held = await project.locks().acquire("k")
        waiting = asyncio.create_task(project.locks().acquire("k", wait_ms=10_000))
        while project.stats().in_flight == 0 and not waiting.done():
            await asyncio.sleep(0.01)
        assert not waiting.done()
        return held, weakref.ref(waiting)

    loop = make_loop()
    held, waiting = loop.run_until_complete(leaves())
    loop.close()
    left = weakref.ref(loop)
    del loop
    end = time.monotonic() + 30
    while left() is not None or waiting() is not None:
        gc.collect()
        assert time.monotonic() < end
        time.sleep(0.05)

    async def closes():
        await held.release()
        await asyncio.wait_for(project.close(), 4)

    asyncio.run(closes())


def test_a_thousand_loops_leave_no_descriptor_behind(redis, prefix):
    def descriptors():
        gc.collect()
        from pathlib import Path

        return len(list(Path("/proc/self/fd").iterdir()))

    async def one(store):
        await store.read("k")

    store = zs.LocationStore(redis.url, key_prefix=prefix)
    asyncio.run(one(store))
    before = descriptors()
    for _ in range(1_000):
        asyncio.run(one(store))
    assert descriptors() <= before
    asyncio.run(store.close())


def test_many_loops_of_many_threads_use_one_store(redis, prefix):
    store = zs.LocationStore(redis.url, key_prefix=prefix)
    failed = []

    async def reads():
        await asyncio.gather(*(store.read(f"k{at}") for at in range(200)))

    def work():
        try:
            for _ in range(10):
                asyncio.run(reads())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    asyncio.run(store.close())


def test_who_holds_the_interpreter_lock_stalls_no_operation(redis, prefix):
    """What was started goes on in the library: a lock that is waited for is granted, and held, meanwhile."""
    sleeping = ctypes.PyDLL(None).usleep

    async def work():
        async with zs.Project(redis.url, workspace="w", project=prefix) as project:
            held = await project.locks().acquire("k", lease_ms=5_000)
            waiting = asyncio.ensure_future(project.locks().acquire("k", wait_ms=10_000, lease_ms=5_000))
            reads = [asyncio.ensure_future(project.state.namespace("n").get("k")) for _ in range(50)]
            release = asyncio.ensure_future(held.release())
            for _ in range(3):
                await asyncio.sleep(0)
            # Nobody else can run Python now, and all answers come.
            sleeping(500_000)
            assert project.stats().in_flight <= 1
            lease = await waiting
            await asyncio.gather(release, *reads)
            await lease.release()

    asyncio.run(work())


class Panics:
    """A native operation that meets a fault of the library."""

    def __init__(self, where):
        self.where = where

    def _meet(self, where):
        if self.where == where:
            raise _native.InternalError("Rust panicked: s3cret")

    def start_into(self, ended, number):
        self._meet("start")
        return True

    def cancel(self):
        pass

    def result(self):
        self._meet("result")


@pytest.mark.parametrize("where", ["make", "start", "result"])
def test_a_fault_of_the_library_is_an_internal_error_of_ours(monkeypatch, where):
    def make(*_):
        if where == "make":
            raise _native.InternalError("Rust panicked: s3cret")
        return Panics(where)

    async def work():
        store, project = zs.LocationStore("memory:"), zs.Project("memory:", workspace="w", project="p")
        for name in ("read", "begin_shutdown"):
            monkeypatch.setattr(_native.LocationStore, name, make)
        monkeypatch.setattr(_native.DistributedLocks, "acquire", make)
        for call in (lambda: store.read("k"), store.close, lambda: project.locks().acquire("k")):
            with pytest.raises(zs.InternalError) as caught:
                await call()
            assert isinstance(caught.value, zs.StoreError)
            assert (caught.value.code, caught.value.outcome) == ("INTERNAL", "unknown")
            assert "s3cret" not in str(caught.value)

    asyncio.run(work())
