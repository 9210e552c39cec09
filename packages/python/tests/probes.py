"""What a process has of memory and threads, and programs of their own."""

import gc
import subprocess
import sys
import textwrap
from pathlib import Path


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def script(text, *arguments, **more):
    """Runs a program of its own: what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
