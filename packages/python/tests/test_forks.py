"""Forked processes: what the library can not do there is said at once, and the parent goes on."""

import pytest

from probes import script

FORKING = """
    import asyncio, gc, os, sys
    import zlink_store as zs

    url, prefix = sys.argv[1:]

    def in_child(work):
        child = os.fork()
        if child == 0:
            try:
                work()
            except BaseException as error:
                print(type(error).__name__, flush=True)
            else:
                print("fine", flush=True)
            os._exit(0)
        os.waitpid(child, 0)

    async def use(store):
        await store.write(mutations=[zs.Put("k", b"v")])
        await store.read("k")
"""


def test_a_store_used_after_a_fork_says_what_to_do_and_the_parent_goes_on(redis, prefix):
    printed = script(
        FORKING
        + """
    store = zs.LocationStore(url, key_prefix=prefix)
    asyncio.run(use(store))
    in_child(lambda: asyncio.run(use(store)))
    in_child(lambda: zs.LocationStore(url, key_prefix=prefix))
    in_child(lambda: asyncio.run(store.close()))
    in_child(lambda: in_child(lambda: asyncio.run(use(store))))
    def drops():
        global store
        del store
        gc.collect()
    in_child(drops)
    asyncio.run(use(store))
    asyncio.run(store.close())
    print("parent")
    """,
        redis.url,
        prefix,
    )
    assert printed == ["ForkedError"] * 4 + ["fine"] * 2 + ["parent"]


def test_a_child_that_was_forked_before_the_first_store_works(redis, prefix):
    printed = script(
        FORKING
        + """
    def whole():
        asyncio.run(use(zs.LocationStore(url, key_prefix=prefix)))
    in_child(whole)
    in_child(lambda: in_child(whole))
    whole()
    print("parent")
    """,
        redis.url,
        prefix,
    )
    assert printed == ["fine", "fine", "fine", "parent"]


def test_an_await_under_way_ends_at_once_in_a_forked_child(redis, prefix):
    printed = script(
        FORKING
        + """
    async def main():
        project = zs.Project(url, workspace="w", project=prefix)
        await project.locks().acquire("k")
        waiting = asyncio.ensure_future(project.locks().acquire("k", wait_ms=10_000))
        begun = asyncio.ensure_future(project.ping())
        for _ in range(3):
            await asyncio.sleep(0)
        unbegun = asyncio.ensure_future(project.ping())
        child = os.fork()
        if child == 0:
            for task in (waiting, begun, unbegun):
                try:
                    await task
                except zs.ForkedError as error:
                    print(error.outcome, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        await begun
        await unbegun
        waiting.cancel()
        await project.close()
        print("parent")
    asyncio.run(main())
    """,
        redis.url,
        prefix,
    )
    assert printed == ["unknown"] * 3 + ["parent"]


@pytest.mark.parametrize(
    "before", ["zs.enable_logging()", "refused('http://x')", "refused('redis://localhost')", "zs.__version__"]
)
def test_what_opens_no_store_keeps_no_child_from_it(redis, prefix, before):
    printed = script(
        FORKING
        + """
    def refused(wrong):
        try:
            zs.LocationStore(wrong)
        except ValueError:
            pass
    """
        + before
        + """
    def whole():
        asyncio.run(use(zs.LocationStore(url, key_prefix=prefix)))
    in_child(whole)
    whole()
    print("parent")
    """,
        redis.url,
        prefix,
    )
    assert printed == ["fine", "parent"]


def test_a_child_that_ends_by_itself_does_not_hang(redis, prefix):
    printed = script(
        """
    import asyncio, multiprocessing, sys
    import zlink_store as zs
    store = zs.LocationStore(sys.argv[1], key_prefix=sys.argv[2])
    asyncio.run(store.ping())
    def child():
        try:
            asyncio.run(store.ping())
        except zs.ForkedError as error:
            print("spawn" in str(error), flush=True)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    print(process.exitcode)
    asyncio.run(store.ping())
    """,
        redis.url,
        prefix,
    )
    assert printed == ["True", "0"]
