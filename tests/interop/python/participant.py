"""Python as a participant (../README.md)."""

import asyncio
import atexit
import base64
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import zlink_store as zs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from runner.project_calls import PROJECT_KINDS, entry_fields, lease_fields

# Long lines are slow to read.
IN_FILE_FROM = 64 * 1024

stores = {}
# The locks of each invocation, by its number; and leases, by theirs.
invocations = {}
leases = {}
# The requests under way.
tasks = {}
folder = None


def pack(content):
    """The form of bytes on the wire."""
    global folder
    if len(content) < IN_FILE_FROM:
        return base64.b64encode(content).decode()
    if folder is None:
        folder = tempfile.mkdtemp(prefix="zlink-interop-bytes-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    handle, file = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
    return {"file": file}


def unpack(form):
    """The bytes that came in that form."""
    if isinstance(form, str):
        return base64.b64decode(form)
    content = Path(form["file"]).read_bytes()
    os.remove(form["file"])
    return content


def present(**fields):
    return {name: value for name, value in fields.items() if value is not None}


def given(request, **names):
    return {here: request[there] for there, here in names.items() if there in request}


async def opened(request):
    engine, address = request["engine"], request["address"]
    names = {
        "keyPrefix": "key_prefix",
        "operationTimeoutMs": "operation_timeout_ms",
        "workspace": "workspace",
        "project": "project",
    }
    kind = {"location": zs.LocationStore, "relocation": zs.RelocationStore, "project": zs.Project}[request["kind"]]
    url = address if engine == "redis" else f"file:{address}"
    stores[request["store"]] = kind(url, **given(request, **names))
    return {}


async def closed(request):
    await stores[request["store"]].close()
    return {}


def value(found, store_now):
    return present(bytes=pack(found.bytes), version=found.version, expiresAt=found.expires_at_ms, storeNow=store_now)


async def read(request):
    result = await stores[request["store"]].read(request["key"])
    if isinstance(result, zs.Missing):
        return {"kind": "missing", "storeNow": result.store_now_ms}
    return {"kind": "found", "value": value(result, result.store_now_ms)}


async def write(request):
    conditions = [
        zs.IfMissing(one["key"]) if one["kind"] == "missing" else zs.IfVersion(one["key"], one["expected"])
        for one in request["conditions"]
    ]
    mutations = [
        zs.Delete(one["key"]) if one["kind"] == "delete" else zs.Put(one["key"], unpack(one["bytes"]), one.get("retentionMs"))
        for one in request["mutations"]
    ]
    result = await stores[request["store"]].write(conditions=conditions, mutations=mutations)
    if isinstance(result, zs.Conflict):
        return {"kind": "conflict", "storeNow": result.store_now_ms}
    versions = [{"key": put.key, "version": put.version} for put in result.put_versions]
    return {"kind": "applied", "putVersions": versions, "storeNow": result.store_now_ms}


async def scan(request):
    options = given(request, cursor="cursor", limit="limit")
    page = await stores[request["store"]].scan(request["prefix"], **options)
    if isinstance(page, zs.Expired):
        return {"kind": "expired"}
    items = [{"key": item.key, "value": value(item, page.store_now_ms)} for item in page.items]
    return present(kind="page", items=items, nextCursor=page.next_cursor, storeNow=page.store_now_ms)


def blob(kind, result):
    return present(kind=kind, expiresAt=getattr(result, "expires_at_ms", None), storeNow=result.store_now_ms)


async def put(request):
    result = await stores[request["store"]].put(request["reference"], unpack(request["bytes"]), request["retentionMs"])
    kinds = {zs.Stored: "stored", zs.AlreadyStored: "alreadyStored", zs.Conflict: "conflict"}
    return blob(kinds[type(result)], result)


async def blob_read(request):
    result = await stores[request["store"]].read(request["reference"])
    if isinstance(result, zs.Missing):
        return blob("missing", result)
    return {**blob("found", result), "bytes": pack(result.bytes)}


async def renew(request):
    result = await stores[request["store"]].renew(request["reference"], request["retentionMs"])
    return blob("missing" if isinstance(result, zs.Missing) else "renewed", result)


async def blob_delete(request):
    await stores[request["store"]].delete(request["reference"])
    return {}


def namespace(request):
    return stores[request["store"]].state.namespace(request["namespace"])


async def state_get(request):
    found = await namespace(request).get(request["key"])
    return {"kind": "missing"} if found is None else entry_fields("entry", found)


async def state_set(request):
    options = given(request, expectedVersion="expected_version", ttlSeconds="ttl_seconds")
    return entry_fields("stored", await namespace(request).set_json(request["key"], request["json"], **options))


async def state_delete(request):
    options = given(request, expectedVersion="expected_version")
    there = await namespace(request).delete(request["key"], **options)
    return {"kind": "deleted" if there else "missing"}


def locks(request):
    """The locks of an invocation, which begins with the first request that names it; one of a store opened anew does so too."""
    project, number = stores[request["store"]], request["invocation"]
    if number not in invocations or invocations[number][0] is not project:
        within = {}
        if "deadline" in request:
            within = {"within_ms": max(0, int(request["deadline"] - time.time() * 1_000))}
        invocations[number] = (project, project.locks(**within))
    return invocations[number][1]


def keep(request, lease):
    leases[request["lease"]] = lease
    return lease_fields(lease)


async def lock_acquire(request):
    options = given(request, namespace="namespace", waitMs="wait_ms", leaseMs="lease_ms")
    lease = await locks(request).acquire(request["key"], **options)
    return {"kind": "unavailable"} if lease is None else keep(request, lease)


async def lock_attach(request):
    return keep(request, await locks(request).attach(request["leaseId"]))


async def lock_renew(request):
    lease = leases[request["lease"]]
    await lease.renew(**given(request, leaseMs="lease_ms"))
    return {"kind": "renewed", "expiresAt": lease.expires_at_ms}


async def lock_release(request):
    await leases[request["lease"]].release()
    return {"kind": "released"}


OBEY = {
    "open": opened,
    "close": closed,
    "read": read,
    "write": write,
    "scan": scan,
    "put": put,
    "blobRead": blob_read,
    "renew": renew,
    "blobDelete": blob_delete,
    "stateGet": state_get,
    "stateSet": state_set,
    "stateDelete": state_delete,
    "lockAcquire": lock_acquire,
    "lockAttach": lock_attach,
    "lockRenew": lock_renew,
    "lockRelease": lock_release,
}


def told(error):
    argument = error.argument and re.sub(r"_([a-z])", lambda letter: letter[1].upper(), error.argument)
    return present(code=error.code, outcome=error.outcome, argument=argument, message=str(error))


async def called(request):
    if request.get("cancelled"):
        asyncio.current_task().cancel()
    return await OBEY[request["do"]](request)


def answer(request, **how):
    sys.stdout.write(f"{json.dumps({'id': request['id'], **how})}\n")
    sys.stdout.flush()


def ended(request, task):
    del tasks[request["id"]]
    if task.cancelled():
        answer(request, error={"code": "CANCELLED", "message": "the task was cancelled"})
        return
    error = task.exception()
    if error is None:
        answer(request, result=task.result())
    elif type(error) in PROJECT_KINDS:
        answer(request, result={"kind": PROJECT_KINDS[type(error)]})
    elif isinstance(error, zs.StoreError):
        answer(request, error=told(error))
    else:
        # Whatever is no error of a store ends the participant.
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**30)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        request = json.loads(line)
        if request["do"] == "cancel":
            if request["request"] in tasks:
                tasks[request["request"]].cancel()
            answer(request, result={})
            continue
        task = tasks[request["id"]] = asyncio.ensure_future(called(request))
        task.add_done_callback(lambda task, request=request: ended(request, task))


asyncio.run(main())
