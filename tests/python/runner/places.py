"""Where stores are opened: one engine, and a spot in it that no other scenario uses."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import zlink_store as zs

ROOT = Path(__file__).resolve().parents[3]

# What this language can do beyond what all can.
LANGUAGE = ("signed-numbers", "fractional-numbers", "json-text")

ENGINES = {
    "memory": (),
    "file": ("survives-reopen",),
    "redis": ("survives-reopen", "needs-key-prefix"),
}

_made = itertools.count()


class Place:
    """One scenario's spot in an engine."""

    def __init__(self, engine, redis_url):
        unique = f"python-{os.getpid()}-{next(_made)}"
        self._folder = tempfile.mkdtemp(prefix="zlink-conformance-") if engine == "file" else None
        self.url = {"memory": f"memory:{unique}", "file": f"file:{self._folder}", "redis": redis_url}[engine]
        #: Text before every key prefix and workspace.
        self.in_front = f"{unique}." if engine == "redis" else ""

    def make(self, store, options):
        kind = {"location": zs.LocationStore, "relocation": zs.RelocationStore, "project": zs.Project}[store]
        return kind(options.pop("url", self.url), **options)

    def end(self):
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class Redis:
    """A private Redis, which ends with this process whatever ends that."""

    def __init__(self):
        command = [ROOT / "target/debug/zlink-test-servers", "single"]
        self._starter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self._starter.stdout.readline()
        if not line:
            raise RuntimeError(f"the starter of test servers ended with {self._starter.wait()}")
        self.url = json.loads(line)["url"]

    def stop(self):
        self._starter.stdin.close()
        self._starter.wait()
        self._starter.stdout.close()
