"""What the tests share: the private Redis of the conformance runner, and probes."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/python"))

from runner.places import Redis  # noqa: E402


@pytest.fixture(scope="session")
def redis():
    server = Redis()
    yield server
    server.stop()


@pytest.fixture(params=["memory", "file", "redis"])
def url(request, tmp_path):
    """A place that no other test uses."""
    if request.param == "redis":
        return request.getfixturevalue("redis").url
    return {"memory": f"memory:{tmp_path.name}", "file": f"file:{tmp_path}/store"}[request.param]


@pytest.fixture
def prefix(tmp_path):
    return tmp_path.name
