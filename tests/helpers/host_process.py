"""A C program that compares the settings of its process before and after the first call of a library."""

import os
import signal
import subprocess
from pathlib import Path

from toolchain import VENDORS, build, require_shared_python

STATUS_WITHOUT_INTERRUPT = 3
"""The exit status that the program chooses after the comparison."""


def build_host_process(folder: Path) -> Path:
    """Return the path of the program, built in `folder`; skip the test if this Python has no shared library."""
    require_shared_python()
    source = VENDORS / "host_process" / "host_process.c"
    return build(folder / "host_process", "c", [source], "-ldl")


def changed_settings(program: Path, library: Path, function: str) -> list[str]:
    """Return a line for each setting of the process that the first call, of `function`, changed."""
    process = _run(program, library, function, "compare")
    assert process.returncode == STATUS_WITHOUT_INTERRUPT, process.stderr
    return process.stdout.splitlines()


def is_ended_by_interrupt(program: Path, library: Path, function: str) -> bool:
    """Return whether SIGINT ends the process after the first call, of `function`."""
    return _run(program, library, function, "interrupt").returncode == -signal.SIGINT


def _run(program: Path, library: Path, function: str, command: str) -> subprocess.CompletedProcess[str]:
    """Return the ended process of the program, run without the variables that configure Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [program, library, function, command], capture_output=True, text=True, timeout=120, env=environment
    )
