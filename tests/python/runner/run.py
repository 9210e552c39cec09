"""Runs a scenario's steps (tests/conformance/README.md, Steps around them)."""

import asyncio
import time
from collections import Counter

import zlink_store as zs

from .calls import VERBS, call, error_result
from .expect import Mismatch, expect, field, show
from .project_calls import with_lock
from .values import Form, Vars

_LONGEST_S = 120
_PAUSE_S = 0.003
_UNTIL_MS = 20_000
_TIMEOUT_MS = 30_000


class Failed(Exception):
    """A step failed."""


async def run(scenario, place, capabilities):
    """Runs a scenario at a place of its own; raises if a step fails."""
    runner = _Runner(place, frozenset(capabilities))
    try:
        await asyncio.wait_for(runner.steps(scenario["steps"], ""), _LONGEST_S)
    finally:
        await runner.end()


class _Runner:
    def __init__(self, place, capabilities):
        self._place = place
        self._capabilities = capabilities
        self._opened = []
        self._named = {}
        self._vars = Vars()
        self._seen = {"versions": set(), "ids": set()}
        # The invocation of those calls of a project that name none.
        self._own = {}
        self._invocations = {}
        self._started = {}

    async def end(self):
        for task in self._started.values():
            task.cancel()
        await asyncio.gather(*self._started.values(), return_exceptions=True)
        await asyncio.gather(*(store.close() for store in self._opened))

    async def steps(self, steps, at):
        for index, step in enumerate(steps):
            if not self._is_meant(step):
                continue
            # Other scenarios get their turn too: where answers come at once, nothing else lets them in.
            await asyncio.sleep(0)
            place = f"{at}{index}"
            try:
                await self._step(step, place)
            except Failed:
                raise
            except Exception as error:
                raise Failed(f"step {place}: {type(error).__name__}: {error}") from error

    def _is_meant(self, step):
        wanted = step.get("if", [])
        return all(
            one[1:] not in self._capabilities if one.startswith("!") else one in self._capabilities
            for one in ([wanted] if isinstance(wanted, str) else wanted)
        )

    async def _step(self, step, at):
        around = {
            "for": lambda: self._repeat(step, at),
            "until": lambda: self._until(step),
            "together": lambda: self._together(step),
            "check": lambda: self._check(step),
            "start": lambda: self._start(step),
            "cancel": lambda: self._cancel(step),
            "pending": lambda: self._pending(step),
            "locks": lambda: self._make_locks(step),
        }
        for name, does in around.items():
            if name in step:
                return await does()
        if "open" in step:
            result = self._open(step)
        elif "close" in step:
            await self._named[self._vars.text(step["close"])].close()
            result = {"kind": "closed"}
        elif "stats" in step:
            operations = self._named[self._vars.text(step["stats"])].stats().operations
            result = {"kind": "stats", "operations": sum(operations.values())}
        elif "await" in step:
            result = await self._outcome(step)
        elif "withLock" in step:
            result = await self._with_lock(step, at)
        else:
            result = await self._call(step, self._vars)
        self._judge(step, result, self._vars)
        self._save(step, result)

    def _judge(self, step, result, variables):
        if "expect" in step:
            expect(result, step["expect"], variables)
        elif "put" in step or "delete" in step:
            expect(result, "applied", variables)
        elif "error" in result:
            raise Mismatch(f"it failed: {show(result)}")

    def _save(self, step, result):
        if "save" in step:
            self._vars.set(self._vars.text(step["save"]), result)

    def _call(self, step, variables):
        verb = next((name for name in VERBS if name in step), None)
        if verb is None:
            raise LookupError(f"no verb among {list(step)}")
        kind = VERBS[verb]
        subject = self._project(step, variables) if kind == "project" else self._store(step, variables, kind)
        return call(verb, step, subject, variables, self._seen)

    def _store(self, step, variables, kind):
        """The store that a step uses; `kind` is also the name of that which needs no opening."""
        name = variables.text(step["on"]) if "on" in step else kind
        if name not in self._named and name == kind:
            self._keep(name, self._make({"store": kind}), kind)
        return self._named[name]

    def _project(self, step, variables):
        """The project that a step uses, with its locks for the invocation that it names."""
        project = self._store(step, variables, "project")
        if "invocation" in step:
            return project, self._invocations[variables.text(step["invocation"])]
        return project, self._own[project]

    async def _make_locks(self, step):
        project, _ = self._project(step, self._vars)
        options = {"within_ms": self._vars.number(step["deadlineMs"])} if "deadlineMs" in step else {}
        self._invocations[self._vars.text(step["locks"])] = project.locks(**options)

    async def _with_lock(self, step, at):
        async def inside(lease):
            self._vars.set("lease", lease)
            await self.steps(step.get("steps", []), f"{at}.")

        try:
            return await with_lock(self._project(step, self._vars), step, self._vars, self._seen, inside)
        except zs.StoreError as error:
            return error_result(error)

    async def _start(self, step):
        """Starts a call. It is under way, and before those that are started after it, when this is done."""
        task = asyncio.ensure_future(self._call(step["call"], self._vars.copy()))
        self._started[self._vars.text(step["start"])] = task
        await asyncio.sleep(0)

    def _under_way(self, name):
        return self._started[self._vars.text(name)]

    async def _outcome(self, step):
        task = self._under_way(step["await"])
        await asyncio.wait([task])
        return {"error": "CANCELLED"} if task.cancelled() else task.result()

    async def _cancel(self, step):
        self._under_way(step["cancel"]).cancel()

    async def _pending(self, step):
        if self._under_way(step["pending"]).done():
            raise Mismatch(f"{step['pending']} is done already")

    async def _check(self, step):
        field(self._vars.eval(step["check"]), step["expect"], self._vars)

    def _keep(self, name, store, kind):
        self._opened.append(store)
        self._named[name] = store
        if kind == "project":
            self._own[store] = store.locks()

    def _make(self, step):
        store = step.get("store", "location")
        options = {"operation_timeout_ms": self._vars.number(step.get("timeoutMs", _TIMEOUT_MS))}

        def in_front(name, exact, otherwise):
            if exact in step:
                return self._vars.text(step[exact])
            return self._place.in_front + self._vars.text(step.get(name, otherwise))

        if store == "project":
            options["workspace"] = in_front("workspace", "exactWorkspace", "w")
            if "url" in step:
                options["url"] = self._vars.text(step["url"])
            options["project"] = self._vars.text(step.get("project", "p"))
        else:
            options["key_prefix"] = in_front("prefix", "exactPrefix", "l" if store == "location" else "r")
        return self._place.make(store, options)

    def _open(self, step):
        try:
            self._keep(self._vars.text(step["open"]), self._make(step), step.get("store"))
            return {"kind": "opened"}
        except zs.StoreError as error:
            return error_result(error)

    async def _repeat(self, step, at):
        if "in" in step:
            values = [Form(form) for form in step["in"]]
        else:
            start = self._vars.number(step.get("from", 0))
            values = [start + place for place in range(self._vars.number(step["times"]))]
        for index, value in enumerate(values):
            self._vars.set(step["for"], value)
            await self.steps(step["steps"], f"{at}[{step['for']} #{index}].")

    async def _until(self, step):
        until = step["until"]
        end = time.monotonic() + self._vars.number(step.get("withinMs", _UNTIL_MS)) / 1_000
        while True:
            result = await self._call(until, self._vars)
            try:
                self._judge(until, result, self._vars)
                return self._save(until, result)
            except Mismatch as mismatch:
                if "meanwhile" in step:
                    expect(result, step["meanwhile"], self._vars)
                if time.monotonic() > end:
                    raise Mismatch(f"not in time: {mismatch}") from None
            await asyncio.sleep(_PAUSE_S)

    async def _together(self, step):
        steps = [(form, known) for form, known in self._vars.copy().expand(step["together"]) if self._is_meant(form)]
        results = await asyncio.gather(*(self._call(form, known) for form, known in steps))
        counts = Counter()
        for (form, known), result in zip(steps, results):
            if "expect" in form:
                self._judge(form, result, known)
            self._save(form, result)
            kind = result.get("kind") or result["error"]
            counts[kind] += 1
            if kind in step.get("save", {}):
                self._vars.set(step["save"][kind], result)
        if "expect" not in step:
            return
        for kind, matcher in step["expect"].items():
            try:
                field(counts[kind], matcher, self._vars)
            except Mismatch as mismatch:
                raise Mismatch(f"{kind}: {mismatch} among {dict(counts)}") from None
        if any(kind not in step["expect"] for kind, count in counts.items() if count):
            raise Mismatch(f"unexpected results: {dict(counts)}")
