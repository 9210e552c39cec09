"""Builds the native library and generates the module that calls it; both lie in the wheel only."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = {"darwin": "libzlink_store_uniffi.dylib", "win32": "zlink_store_uniffi.dll"}.get(
    sys.platform, "libzlink_store_uniffi.so"
)


def cargo(*arguments: str) -> None:
    subprocess.run(["cargo", *arguments], cwd=ROOT, check=True)


class BuildNative(build_py):
    def run(self) -> None:
        super().run()
        # Only builds for a quick look use another profile than `release`.
        profile = os.environ.get("ZLINK_CARGO_PROFILE", "release")
        # What else shall be compiled in the same run, so that what they share is compiled once.
        packages = os.environ.get("ZLINK_CARGO_PACKAGES", "-p zlink-store-uniffi").split()
        cargo("build", "--profile", profile, *packages)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        library = target / {"dev": "debug"}.get(profile, profile) / LIBRARY
        package = Path(self.build_lib, "zlink_store")
        generated = target / "bindings-python"
        bindgen = os.environ.get("ZLINK_BINDGEN")
        if bindgen is None:
            cargo("build", "-p", "zlink-store-bindgen")
            bindgen = target / "debug" / "zlink-store-bindgen"
        options = ("--language", "python", "--no-format", "--out-dir", str(generated))
        subprocess.run([bindgen, "generate", "--library", str(library), *options], cwd=ROOT, check=True)
        shutil.copyfile(generated / "zlink_store_uniffi.py", package / "_native.py")
        shutil.copyfile(library, package / LIBRARY)


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        # The library is called through ctypes: any Python 3, but one platform.
        return "py3", "none", super().get_tag()[2]


class Native(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": BuildNative, "bdist_wheel": PlatformWheel}, distclass=Native)
