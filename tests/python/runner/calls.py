"""The steps that call a store: arguments in, a result as plain fields out, and what is checked of every result."""

import asyncio
import re

import zlink_store as zs

from .project_calls import PROJECT_CALLS, PROJECT_KINDS

_PAGE_BYTES = 4 * 1_048_576

# The verbs that call a store, and the kind of store that each wants (tests/conformance/stores.mjs).
LOCATION = ("read", "write", "put", "delete", "scan", "scanAll")
RELOCATION = ("blobPut", "blobRead", "blobRenew", "blobDelete")
VERBS = {
    **dict.fromkeys(LOCATION, "location"),
    **dict.fromkeys(RELOCATION, "relocation"),
    **dict.fromkeys(PROJECT_CALLS, "project"),
}


async def call(verb, step, store, variables, seen):
    """Makes the call that a step describes, on a store, or on a project with its locks. `seen` was given out before."""
    function = _CALLS.get(verb) or PROJECT_CALLS[verb]
    try:
        if not step.get("cancelled"):
            return await function(store, step, variables, seen)
        return await _cancelled_before(function, store, step, variables, seen)
    except zs.StoreError as error:
        return error_result(error)


async def _cancelled_before(function, store, step, variables, seen):
    """What Python has for a cancellation that was requested before the call: the calling task's own."""

    async def cancelled_first():
        asyncio.current_task().cancel()
        return await function(store, step, variables, seen)

    task = asyncio.ensure_future(cancelled_first())
    await asyncio.wait([task])
    if task.cancelled():
        return {"error": "CANCELLED"}
    return task.result()


def error_result(error):
    """A failed call as fields."""
    kind = PROJECT_KINDS.get(type(error))
    if kind is not None:
        return {"kind": kind}
    if error.code == "INVALID_ARGUMENT" and not isinstance(error, ValueError):
        raise AssertionError("an argument error that is no ValueError") from error
    result = {"error": error.code, "outcome": error.outcome, "message": str(error)}
    if error.argument is not None:
        result["argument"] = re.sub(r"_([a-z])", lambda letter: letter[1].upper(), error.argument)
    return result


async def _read(store, step, variables, _):
    result = await store.read(variables.text(step["read"]))
    if isinstance(result, zs.Missing):
        return {"kind": "missing", "storeNow": result.store_now_ms}
    _live(result.expires_at_ms, result.store_now_ms)
    return {"kind": "found", "bytes": result.bytes, **_record(result), "storeNow": result.store_now_ms}


async def _single(store, step, variables, seen):
    mutation = {name: value for name, value in step.items() if name not in ("times", "from")}
    return await _commit(store, {"mutations": [mutation]}, variables, seen)


async def _write(store, step, variables, seen):
    return await _commit(store, step["write"], variables, seen)


async def _commit(store, request, variables, seen):
    conditions = [
        zs.IfMissing(known.text(form["missing"]))
        if "missing" in form
        else zs.IfVersion(known.text(form["version"]), known.text(form["expected"]))
        for form, known in variables.expand(request.get("conditions", []))
    ]
    mutations = [
        zs.Delete(known.text(form["delete"]))
        if "delete" in form
        else zs.Put(
            known.text(form["put"]),
            known.bytes(form["bytes"]),
            **({"retention_ms": known.number(form["retentionMs"])} if "retentionMs" in form else {}),
        )
        for form, known in variables.expand(request.get("mutations", []))
    ]
    result = await store.write(conditions=conditions, mutations=mutations)
    if isinstance(result, zs.Conflict):
        return {"kind": "conflict", "storeNow": result.store_now_ms}
    keys = [put.key for put in result.put_versions]
    if keys != [mutation.key for mutation in mutations if isinstance(mutation, zs.Put)]:
        raise AssertionError("put_versions are not the puts in their order")
    versions = [put.version for put in result.put_versions]
    for version in versions:
        if version in seen["versions"]:
            raise AssertionError(f"version {version} was given out twice")
        seen["versions"].add(version)
    return {"kind": "applied", "keys": keys, "versions": versions, "storeNow": result.store_now_ms}


async def _scan(store, step, variables, _):
    return await _page(store, _scan_request(step["scan"], variables))


async def _scan_all(store, step, variables, _):
    request = _scan_request(step["scanAll"], variables)
    everything = {"kind": "all", "items": [], "pages": 0}
    while True:
        page = await _page(store, request)
        if page["kind"] != "page":
            return page
        everything.setdefault("storeNow", page["storeNow"])
        everything["pages"] += 1
        items = everything["items"]
        if items and page["items"] and not _before(items[-1]["key"], page["items"][0]["key"]):
            raise AssertionError("pages out of order")
        items.extend(page["items"])
        if "nextCursor" not in page:
            return everything
        request = {**request, "cursor": page["nextCursor"]}


def _scan_request(form, variables):
    return {
        "prefix": variables.text(form.get("prefix", "")),
        "limit": variables.number(form.get("limit", 1000)),
        "cursor": variables.text(form["cursor"]) if "cursor" in form else None,
    }


async def _page(store, request):
    prefix, cursor, limit = request["prefix"], request["cursor"], request["limit"]
    page = await store.scan(prefix, cursor=cursor, limit=limit)
    if isinstance(page, zs.Expired):
        return {"kind": "expired"}
    items = []
    for item in page.items:
        if cursor is None:
            _live(item.expires_at_ms, page.store_now_ms)
        if not item.key.startswith(prefix):
            raise AssertionError(f"{item.key} does not start with the prefix")
        items.append({"key": item.key, "bytes": item.bytes, **_record(item)})
    size = sum(len(item["key"].encode()) + len(item["bytes"]) + len(item["version"].encode()) for item in items)
    if size > _PAGE_BYTES and len(items) > 1:
        raise AssertionError(f"a page of {size} bytes")
    if len(items) > limit:
        raise AssertionError(f"{len(items)} items on a page of at most {limit}")
    if not items and (page.next_cursor is not None or cursor is not None):
        raise AssertionError("an empty page in the middle of a scan")
    if any(not _before(one["key"], other["key"]) for one, other in zip(items, items[1:])):
        raise AssertionError("a page out of order")
    following = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
    return {"kind": "page", "items": items, **following, "storeNow": page.store_now_ms}


async def _blob_put(store, step, variables, _):
    reference, payload = variables.text(step["blobPut"]), variables.bytes(step["bytes"])
    result = await store.put(reference, payload, variables.number(step["retentionMs"]))
    if isinstance(result, zs.Conflict):
        return {"kind": "conflict", "storeNow": result.store_now_ms}
    if isinstance(result, zs.AlreadyStored):
        _live(result.expires_at_ms, result.store_now_ms)
    kind = "stored" if isinstance(result, zs.Stored) else "alreadyStored"
    return {"kind": kind, "expiresAt": result.expires_at_ms, "storeNow": result.store_now_ms}


async def _blob_read(store, step, variables, _):
    result = await store.read(variables.text(step["blobRead"]))
    if isinstance(result, zs.Missing):
        return {"kind": "missing", "storeNow": result.store_now_ms}
    _live(result.expires_at_ms, result.store_now_ms)
    return {
        "kind": "found",
        "bytes": result.bytes,
        "expiresAt": result.expires_at_ms,
        "storeNow": result.store_now_ms,
    }


async def _blob_renew(store, step, variables, _):
    result = await store.renew(variables.text(step["blobRenew"]), variables.number(step["retentionMs"]))
    if isinstance(result, zs.Missing):
        return {"kind": "missing", "storeNow": result.store_now_ms}
    return {"kind": "renewed", "expiresAt": result.expires_at_ms, "storeNow": result.store_now_ms}


async def _blob_delete(store, step, variables, _):
    if await store.delete(variables.text(step["blobDelete"])) is not None:
        raise AssertionError("a delete that gives something")
    return {"kind": "deleted"}


_CALLS = {
    "read": _read,
    "write": _write,
    "put": _single,
    "delete": _single,
    "scan": _scan,
    "scanAll": _scan_all,
    "blobPut": _blob_put,
    "blobRead": _blob_read,
    "blobRenew": _blob_renew,
    "blobDelete": _blob_delete,
}


def _record(record):
    expiry = {} if record.expires_at_ms is None else {"expiresAt": record.expires_at_ms}
    return {"version": record.version, **expiry}


def _live(expires_at, store_now):
    if expires_at is not None and expires_at <= store_now:
        raise AssertionError("an expired record was given out")


def _before(one, other):
    return one.encode() < other.encode()
