"""Memory and life: many calls, forgotten stores, the end of the process, log events."""

import asyncio
import gc
import subprocess
import sys
import textwrap
import time

import pytest

import zlink_store as zs
from probes import resident_bytes, script, threads

CALLS = 100_000


def test_100_000_calls_leave_memory_flat(redis, prefix):
    async def rounds(store, entries, locks, calls):
        async def some(at):
            key = f"k{at % 100}"
            await store.write(mutations=[zs.Put(key, bytes(1_000))])
            await store.read(key)
            await entries.set("k", at)
            if at % 10 == 0:
                await store.scan("k", limit=10)
                async with locks.lock(f"l{at}"):
                    pass
            with pytest.raises(ValueError):
                await store.read("")

        for start in range(0, calls // 4, 50):
            await asyncio.gather(*(some(at) for at in range(start, start + 50)))

    async def work():
        url = "memory:flat"
        async with zs.LocationStore(url) as memory, zs.LocationStore(redis.url, key_prefix=prefix) as remote:
            async with zs.Project(url, workspace="w", project="p") as project:
                entries = project.state.namespace("n")
                for store in (memory, remote):
                    await rounds(store, entries, project.locks(), CALLS // 10)
                before, threads_before = resident_bytes(), threads()
                for store in (memory, remote):
                    await rounds(store, entries, project.locks(), CALLS // 2)
                return resident_bytes() - before, threads() - threads_before

    grown, more = asyncio.run(work())
    assert more <= 0
    assert grown < 10_000_000, f"{grown} bytes more"


def test_large_values_leave_memory_flat():
    async def work():
        async with zs.RelocationStore("memory:") as blobs:
            await blobs.put("r", bytes(1_048_576), 600_000)

            async def some(count):
                for _ in range(count):
                    await blobs.put("r", bytes(1_048_576), 600_000)
                    assert len((await blobs.read("r")).bytes) == 1_048_576

            await some(100)
            before = resident_bytes()
            await some(1_000)
            return resident_bytes() - before

    grown = asyncio.run(work())
    assert grown < 10_000_000, f"{grown} bytes more"


def test_1_000_forgotten_stores_give_up_their_connections(redis, prefix):
    async def clients(store):
        return store.stats().in_flight

    async def work():
        before = threads()
        for at in range(1_000):
            store = zs.LocationStore(f"{redis.url}?client_name=forgotten-{at % 20}", key_prefix=prefix)
            await store.ping()
            del store
        gc.collect()
        assert threads() <= before + 8
        # Connections are given up a moment after the last store is gone.
        end = time.monotonic() + 30
        while names_of_clients(redis.url) & {f"forgotten-{at}" for at in range(20)}:
            assert time.monotonic() < end, names_of_clients(redis.url)
            await asyncio.sleep(0.05)

    asyncio.run(work())


def names_of_clients(url):
    import socket
    from urllib.parse import urlsplit

    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port), 10) as link:
        link.sendall(b"CLIENT LIST\r\n")
        said = b""
        while b"\r\n" not in said or len(said) < int(said[1 : said.index(b"\r\n")]):
            said += link.recv(65_536)
    return {field[5:].decode() for field in said.split() if field.startswith(b"name=")}


def test_a_program_that_is_soon_over_ends_well(redis, prefix):
    # Eight at a time, on processors that are busy: a thread of the library is still coming back from its last answer then.
    text = """
        import asyncio, sys
        import zlink_store as zs

        async def main():
            async with zs.LocationStore("memory:") as memory, zs.LocationStore(sys.argv[1], key_prefix=sys.argv[2]) as remote:
                await asyncio.gather(*(store.read(f"k{at}") for at in range(20) for store in (memory, remote)))

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(text), redis.url, prefix]
    for _ in range(5):
        programs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        for program in programs:
            _, said = program.communicate(timeout=120)
            assert program.returncode == 0, said


ENDING = """
    import asyncio, sys, threading, time
    import zlink_store as zs

    url, prefix, kind = sys.argv[1:]
    store = zs.LocationStore(url, key_prefix=prefix)

    async def for_ever():
        async def one():
            while True:
                await store.read("k")
        await asyncio.gather(*(one() for _ in range(50)))

    if kind == "daemon":
        for _ in range(2):
            threading.Thread(target=lambda: asyncio.run(for_ever()), daemon=True).start()
        time.sleep(0.2)
    else:
        loop = asyncio.new_event_loop()
        tasks = [loop.create_task(store.read(f"k{at}")) for at in range(1_000)]
        loop.run_until_complete(asyncio.sleep(0.002))
        if kind == "closed":
            loop.close()
"""


@pytest.mark.parametrize("kind", ["daemon", "pending", "closed"])
def test_the_interpreter_ends_well_whatever_is_under_way(redis, prefix, kind):
    # An event loop of a daemon thread, operations that nobody waits for, a loop that was closed before them.
    command = [sys.executable, "-c", textwrap.dedent(ENDING), redis.url, prefix, kind]
    for _ in range(3):
        programs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        for program in programs:
            _, said = program.communicate(timeout=120)
            assert program.returncode == 0, said


@pytest.mark.parametrize("closes", [True, False])
def test_a_process_ends_with_operations_under_way(redis, prefix, closes):
    printed = script(
        """
    import asyncio, sys
    import zlink_store as zs
    async def main():
        store = zs.LocationStore(sys.argv[1], key_prefix=sys.argv[2])
        project = zs.Project(sys.argv[1], workspace="w", project="p")
        held = await project.locks().acquire("k")
        tasks = [asyncio.ensure_future(store.read("k")) for _ in range(100)]
        tasks.append(asyncio.ensure_future(project.locks().acquire("k", wait_ms=10_000)))
        for _ in range(3):
            await asyncio.sleep(0)
        if sys.argv[3] == "True":
            await store.close()
        print("ended")
    asyncio.run(main())
    """,
        redis.url,
        prefix,
        str(closes),
    )
    assert printed == ["ended"]


def test_an_idle_store_keeps_no_process_alive(redis, prefix):
    printed = script(
        """
    import asyncio, sys
    import zlink_store as zs
    store = zs.LocationStore(sys.argv[1], key_prefix=sys.argv[2])
    asyncio.run(store.ping())
    zs.enable_logging()
    print("idle")
    """,
        redis.url,
        prefix,
    )
    assert printed == ["idle"]


def test_log_events_come_as_records(prefix):
    printed = script(
        """
    import asyncio, logging, sys, threading
    import zlink_store as zs
    came = threading.Event()
    class Handler(logging.Handler):
        def emit(self, record):
            print(record.name.split(".")[0], record.levelno <= logging.WARNING)
            came.set()
    logging.getLogger("zlink_store").addHandler(Handler())
    logging.getLogger("zlink_store").setLevel(1)
    zs.enable_logging(5)
    zs.enable_logging(logging.DEBUG)
    async def main():
        async with zs.LocationStore("redis://:pass@127.0.0.1:1", key_prefix="p", operation_timeout_ms=500) as store:
            try:
                await store.read("k")
            except zs.StoreError:
                pass
    asyncio.run(main())
    assert came.wait(30)
    """
    )
    assert set(printed) == {"zlink_store", "True"}


def test_logging_enabled_twice_sends_each_event_once_and_outlives_a_filter_that_fails():
    printed = script(
        """
    import asyncio, logging, sys, time
    import zlink_store as zs
    seen = []
    class Handler(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())
    class Fails(logging.Filter):
        def filter(self, record):
            raise ValueError("told by the test")
    logger = logging.getLogger("zlink_store")
    logger.addHandler(Handler())
    logger.setLevel(1)
    logger.propagate = False
    def until(holds):
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.01)
    async def fail(port):
        async with zs.LocationStore(f"redis://127.0.0.1:{port}", key_prefix="p", operation_timeout_ms=300) as store:
            try:
                await store.read("k")
            except zs.StoreError:
                pass
    from zlink_store import _native
    zs.enable_logging(5)
    kept = zs.LocationStore("memory:")
    for _ in range(3):
        zs.enable_logging(5)
    # What the library itself says, heard beside it.
    beside = _native.LogEvents.listen("trace")
    asyncio.run(fail(1))
    time.sleep(0.2)
    said = [event.message for event in beside.take()]
    until(lambda: len(seen) >= len(said))
    time.sleep(1.2)
    print(bool(said), seen == said)
    failing = Fails()
    logging.raiseExceptions = False
    handler = logger.handlers[0]
    handler.addFilter(failing)
    asyncio.run(fail(2))
    time.sleep(0.2)
    handler.removeFilter(failing)
    del seen[:]
    asyncio.run(fail(3))
    until(lambda: seen)
    print("goes on")
    """
    )
    assert printed == ["True", "True", "goes", "on"]
