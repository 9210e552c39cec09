"""The wheel as its users get it, in an empty environment."""

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import zlink_store

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel():
    wheels = sorted((ROOT / "target/python/wheels").glob("zlink_store-*.whl"))
    assert len(wheels) == 1, "make build-python makes it"
    return wheels[0]


def test_the_wheel_runs_the_examples_of_the_readmes_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True)
    for readme in (ROOT / "packages/python/README.md", ROOT / "README.md"):
        examples = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
        assert examples, readme
        for number, example in enumerate(examples):
            file = tmp_path / f"example-{number}.py"
            file.write_text(example)
            done = subprocess.run([python, "-I", file], cwd=tmp_path, capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stderr) == (0, ""), f"{readme}: {done.stderr}"
            assert done.stdout


def test_the_wheel_holds_what_it_should_and_is_for_any_python_of_this_platform(wheel):
    assert re.fullmatch(r"zlink_store-[^-]+-py3-none-[^-]+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as content:
        names = {name.partition("/")[2] for name in content.namelist() if name.startswith("zlink_store/")}
    assert {"py.typed", "_native.py", "__init__.py"} <= names
    assert any(name.startswith("libzlink_store_uniffi.") for name in names)


def test_all_packages_have_one_version(wheel):
    cargo = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    project = re.search(r'^version = "(.*)"$', (ROOT / "packages/python/pyproject.toml").read_text(), re.MULTILINE)[1]
    assert {zlink_store.__version__, project, wheel.name.split("-")[1]} == {cargo}


@pytest.mark.parametrize(
    "what", [["-p", "zlink_store"], [str(ROOT / "packages/python/examples/workers.py")]], ids=["package", "example"]
)
def test_the_types_are_right_under_mypy_strict(what, tmp_path):
    configuration = str(ROOT / "packages/python/pyproject.toml")
    command = [sys.executable, "-m", "mypy", "--config-file", configuration, "--cache-dir", str(tmp_path), *what]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
