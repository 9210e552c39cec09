"""What Python's own layer adds: values, errors, context managers, iteration, several loops."""

import asyncio
import pickle
import threading
import zlib

import pytest

import zlink_store as zs


def run(work):
    return asyncio.run(work)


def test_every_code_has_a_class_of_its_own_and_all_are_store_errors():
    classes = [one for one in vars(zs).values() if isinstance(one, type) and issubclass(one, zs.StoreError)]
    leaves = [one for one in classes if one not in (zs.StoreError, zs.InvalidTypeError, zs.ForkedError)]
    assert len({one.code for one in leaves}) == len(leaves)
    assert {one.code for one in leaves} >= {"TIMEOUT", "UNAVAILABLE", "UNAUTHENTICATED", "OUT_OF_MEMORY", "INCOMPATIBLE"}
    assert issubclass(zs.StoreTimeoutError, TimeoutError)
    assert issubclass(zs.InvalidArgumentError, ValueError)


def test_no_server_is_unavailable_and_says_so_in_time():
    async def work():
        async with zs.LocationStore("redis://127.0.0.1:1", key_prefix="p", operation_timeout_ms=300) as store:
            await store.read("k")

    with pytest.raises((zs.UnavailableError, zs.StoreTimeoutError)) as caught:
        run(work())
    assert (caught.value.outcome, caught.value.retryable) == ("notApplied", True)
    assert caught.value.code in ("UNAVAILABLE", "TIMEOUT")
    assert caught.value.__cause__ is None


def test_a_closed_store_says_so_and_closing_again_does_nothing(url, prefix):
    async def work():
        store = zs.LocationStore(url, key_prefix=prefix)
        await store.write(mutations=[zs.Put("k", b"v")])
        await asyncio.gather(store.close(), store.close())
        await store.close()
        with pytest.raises(zs.ClosedError) as caught:
            await store.read("k")
        assert (caught.value.code, caught.value.retryable) == ("CLOSED", False)

    run(work())


def test_closing_waits_for_what_is_under_way(url, prefix):
    async def work():
        store = zs.LocationStore(url, key_prefix=prefix)
        writes = [asyncio.ensure_future(store.write(mutations=[zs.Put(f"k{at}", b"v")])) for at in range(50)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.close()
        assert all(isinstance(result, zs.Applied) for result in await asyncio.gather(*writes))

    run(work())


def test_items_go_over_all_pages(url, prefix):
    async def work():
        async with zs.LocationStore(url, key_prefix=prefix) as store:
            await store.write(mutations=[zs.Put(f"k{at:03}", str(at).encode()) for at in range(250)])
            return [item async for item in store.items("k", limit=100)]

    items = run(work())
    assert [item.key for item in items] == [f"k{at:03}" for at in range(250)]
    assert items[7].bytes == b"7" and items[7].expires_at is None


def test_a_blob_of_the_largest_size_comes_back_equal(url, prefix):
    payload = bytes(range(256)) * 262_144 + b"the envelope of 23 byte"

    async def work():
        async with zs.RelocationStore(url, key_prefix=prefix, operation_timeout_ms=60_000) as store:
            assert isinstance(await store.put("r", payload, 600_000), zs.Stored)
            found = await store.read("r")
            await store.delete("r")
            return found.bytes

    found = run(work())
    assert (len(found), zlib.crc32(found)) == (67_108_887, zlib.crc32(payload))


def test_state_takes_what_json_takes(url, prefix):
    values = [None, True, 0, 2**53, 1.5, "", "é😀\ud800", [], {}, {"b": [1, {"a": None}]}]

    async def work():
        async with zs.Project(url, workspace="w", project=prefix) as project:
            entries = project.state.namespace("n")
            for value in values:
                await entries.set("k", value)
                entry = await entries.get("k")
                assert entry.value == value
            assert (entry.version, entry.expires_at) == (len(values), None)
            assert entry.created_at <= entry.updated_at
            with pytest.raises(zs.StateConflictError) as caught:
                await entries.set("k", 1, expected_version=1)
            assert (caught.value.code, caught.value.outcome) == ("STATE_CONFLICT", "notApplied")
            assert await entries.delete("k") is True
            assert await entries.delete("k") is False

    run(work())


def test_a_lock_is_held_for_the_body_and_its_error_goes_first(url, prefix):
    async def work():
        async with zs.Project(url, workspace="w", project=prefix) as project:
            locks = project.locks()
            with pytest.raises(KeyError):
                async with locks.lock("k") as lease:
                    with pytest.raises(zs.LockUnavailableError):
                        async with locks.lock("k"):
                            raise AssertionError("two holders")
                    # The body's error hides that of a release that finds nothing.
                    attached = await locks.attach(lease.id)
                    await attached.release()
                    raise KeyError
            with pytest.raises(zs.LockLostError):
                async with locks.lock("k") as lease:
                    await (await locks.attach(lease.id)).release()
            async with locks.lock("k") as lease:
                before = lease.expires_at
                await lease.renew(60_000)
                assert lease.expires_at > before
                assert lease.id not in repr(lease)
            await lease.release()
            with pytest.raises(zs.LockLostError):
                await lease.renew()
            with pytest.raises(zs.LockLostError):
                await locks.attach(lease.id)

    run(work())


def test_a_store_serves_several_loops_in_several_threads_at_once(url, prefix):
    store = zs.LocationStore(url, key_prefix=prefix)
    wrong = []

    async def work(number):
        async def one(at):
            key = f"k{number}-{at}"
            await store.write(mutations=[zs.Put(key, key.encode())])
            if (await store.read(key)).bytes != key.encode():
                wrong.append(key)

        await asyncio.gather(*(one(at) for at in range(50)))

    def thread(number):
        # A loop after the other, too.
        for _ in range(2):
            asyncio.run(work(number))

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    asyncio.run(store.close())
    assert wrong == []
    assert not any(one.is_alive() for one in threads)


def test_who_blocks_its_loop_blocks_no_other(redis, prefix):
    store = zs.LocationStore(redis.url, key_prefix=prefix)
    blocked, served = threading.Event(), threading.Event()

    async def blocks():
        reads = [asyncio.ensure_future(store.read(f"k{at}")) for at in range(100)]
        await asyncio.sleep(0)
        blocked.set()
        assert served.wait(60)
        await asyncio.gather(*reads)

    thread = threading.Thread(target=lambda: asyncio.run(blocks()))
    thread.start()
    assert blocked.wait(60)

    async def works():
        for at in range(100):
            await store.read(f"k{at}")

    asyncio.run(works())
    served.set()
    thread.join(60)
    asyncio.run(store.close())
    assert not thread.is_alive()


def test_stats_count_and_ping_answers(url, prefix):
    async def work():
        async with zs.LocationStore(url, key_prefix=prefix) as store:
            now = await store.ping()
            missing = await store.read("k")
            assert now <= missing.store_now_ms
            stats = store.stats()
            assert (stats.operations["ping"], stats.operations["read"], stats.in_flight) == (1, 1, 0)
            assert stats.errors == {}
            assert sum(stats.latency_us_log2) == 2

    run(work())


def test_results_are_plain_values():
    async def work():
        async with zs.LocationStore("memory:") as store:
            await store.write(mutations=[zs.Put("k", b"v", 60_000)])
            return await store.read("k")

    found = run(work())
    assert pickle.loads(pickle.dumps(found)) == found
    match found:
        case zs.Found(bytes=b"v", version=version):
            assert version == found.version
        case _:
            raise AssertionError(found)
    with pytest.raises(AttributeError):
        found.bytes = b"other"
