"""The steps that call a project's state and locks."""

import json
import math
import time

import zlink_store as zs

PROJECT_KINDS = {
    zs.StateConflictError: "conflict",
    zs.RateLimitError: "limitReached",
    zs.LockLostError: "lost",
    zs.LockUnavailableError: "unavailable",
}


async def _state_namespace(subject, step, variables, _):
    project, _locks = subject
    return {"kind": "namespace", "name": project.state.namespace(variables.text(step["stateNamespace"])).name}


async def _state_get(subject, step, variables, _):
    entry = await _namespace(subject, step, variables).get(variables.text(step["stateGet"]))
    return {"kind": "missing"} if entry is None else _entry("entry", entry)


async def _state_set(subject, step, variables, _):
    text = variables.text(step["json"])
    options = _numbers(step, variables, expectedVersion="expected_version", ttlSeconds="ttl_seconds")
    key, namespace = variables.text(step["stateSet"]), _namespace(subject, step, variables)
    try:
        value = json.loads(text)
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")) == text
    except (ValueError, RecursionError):
        plain = False
    # As a value where Python has the same text for it, else as the text itself.
    entry = await (namespace.set(key, value, **options) if plain else namespace.set_json(key, text, **options))
    return _entry("stored", entry)


async def _state_delete(subject, step, variables, _):
    options = _numbers(step, variables, expectedVersion="expected_version")
    there = await _namespace(subject, step, variables).delete(variables.text(step["stateDelete"]), **options)
    return {"kind": "deleted" if there else "missing"}


async def _lock_acquire(subject, step, variables, seen):
    _project, locks = subject
    began = time.monotonic()
    lease = await locks.acquire(variables.text(step["lockAcquire"]), **lock_options(step, variables))
    # Whole milliseconds, upwards: a timer counts no finer.
    took = math.ceil((time.monotonic() - began) * 1_000)
    if lease is None:
        return {"kind": "unavailable", "tookMs": took}
    return {**granted(lease, seen), "tookMs": took}


async def _lock_attach(subject, step, variables, _):
    _project, locks = subject
    return _lease(await locks.attach(variables.text(step["lockAttach"])))


async def _lock_renew(_subject, step, variables, _):
    lease = _lease_of(step["lockRenew"], variables)
    options = _numbers(step, variables, leaseMs="lease_ms")
    if await lease.renew(**options) is not None:
        raise AssertionError("a renew that gives something")
    return {"kind": "renewed", "expiresAt": lease.expires_at_ms}


async def _lock_release(_subject, step, variables, _):
    if await _lease_of(step["lockRelease"], variables).release() is not None:
        raise AssertionError("a release that gives something")
    return {"kind": "released"}


async def _look_at_lease(_subject, step, variables, _):
    return _lease(_lease_of(step["lease"], variables))


PROJECT_CALLS = {
    "stateNamespace": _state_namespace,
    "stateGet": _state_get,
    "stateSet": _state_set,
    "stateDelete": _state_delete,
    "lockAcquire": _lock_acquire,
    "lockAttach": _lock_attach,
    "lockRenew": _lock_renew,
    "lockRelease": _lock_release,
    "lease": _look_at_lease,
}


class Thrown(Exception):
    """What a callback throws because its step says so."""


async def with_lock(subject, step, variables, seen, inside):
    """Takes the lock for the steps; `inside` runs them with the lease as a result. What goes wrong in them is raised."""
    _project, locks = subject
    fault = None
    key, options = variables.text(step["withLock"]), lock_options(step, variables)
    value = None
    try:
        async with locks.lock(key, **options) as lease:
            try:
                await inside(granted(lease, seen))
            except Exception as error:
                fault = error
            if "throws" in step:
                raise Thrown(variables.text(step["throws"]))
            value = variables.text(step["returns"]) if "returns" in step else None
        result = {"kind": "done"} if value is None else {"kind": "done", "value": value}
    except Thrown as thrown:
        result = {"kind": "failed", "value": str(thrown)}
    except zs.StoreError:
        if fault is None:
            raise
        result = None
    # A step that failed inside is what went wrong, whatever came of the rest.
    if fault is not None:
        raise fault
    return result


def _namespace(subject, step, variables):
    project, _locks = subject
    return project.state.namespace(variables.text(step["namespace"]) if "namespace" in step else "ns")


def _numbers(step, variables, **names):
    """Those of the step's numbers that it has."""
    return {here: variables.number(step[there]) for there, here in names.items() if there in step}


def lock_options(step, variables):
    options = _numbers(step, variables, waitMs="wait_ms", leaseMs="lease_ms")
    if "namespace" in step:
        options["namespace"] = variables.text(step["namespace"])
    return options


def entry_fields(kind, entry):
    """An entry as a result's plain fields."""
    result = {
        "kind": kind,
        "json": entry.json,
        "version": entry.version,
        "createdAt": entry.created_at_ms,
        "updatedAt": entry.updated_at_ms,
    }
    return result if entry.expires_at_ms is None else {**result, "expiresAt": entry.expires_at_ms}


def _entry(kind, entry):
    expired = entry.expires_at_ms is not None and entry.expires_at_ms <= entry.updated_at_ms
    if entry.version < 1 or entry.created_at_ms > entry.updated_at_ms or expired:
        raise AssertionError(f"an entry makes no sense: {entry}")
    return entry_fields(kind, entry)


def granted(lease, seen):
    if lease.id in seen["ids"]:
        raise AssertionError("two grants have the same id")
    seen["ids"].add(lease.id)
    return _lease(lease)


def lease_fields(lease):
    """A lease as a result's plain fields."""
    return {
        "kind": "lease",
        "id": lease.id,
        "key": lease.key,
        "namespace": lease.namespace,
        "fencingToken": lease.fencing_token,
        "expiresAt": lease.expires_at_ms,
    }


def _lease(lease):
    return {**lease_fields(lease), "object": lease}


def _lease_of(name, variables):
    """The lease object of a saved result."""
    return variables.eval({"var": variables.text(name)})["object"]
