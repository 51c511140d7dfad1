"""Build and run C programs with the compiler's sanitizers, if it has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ADDRESS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Flags that detect memory errors, leaks and undefined behavior."""

THREAD = ("-g", "-fsanitize=thread")
"""Flags that detect data races."""

OPTIONS = {
    "ASAN_OPTIONS": "allocator_may_return_null=1",
    "TSAN_OPTIONS": "allocator_may_return_null=1 halt_on_error=1 ignore_noninstrumented_modules=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
"""Options of the sanitizers. An allocation that is too large returns NULL as usual. Python itself is not checked."""

LEAKS_OF_PYTHON = {"ASAN_OPTIONS": f"{OPTIONS['ASAN_OPTIONS']} detect_leaks=0"}
"""Options for processes that run Python, which does not free all of its memory at the end."""


@cache
def find_obstacle(flags: Sequence[str]) -> str:
    """Return why programs can't be built with `flags` and run here; empty if they can."""
    if shutil.which("cc") is None:
        return "there is no compiler cc here"
    with TemporaryDirectory() as folder:
        source, program = Path(folder, "nothing.c"), Path(folder, "nothing")
        source.write_text("int main(void) { return 0; }\n")
        for step, command in (("build", ["cc", *flags, source, "-o", program]), ("run", [program])):
            process = subprocess.run(command, capture_output=True, text=True)
            if process.returncode:
                return f"cc can't {step} programs with {' '.join(flags)}: {process.stderr.strip()[:300]}"
    return ""


def require(flags: Sequence[str]) -> None:
    """Skip the test if programs can't be built with `flags` or don't run."""
    if reason := find_obstacle(tuple(flags)):
        pytest.skip(reason)


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    """Return the output of `command`; fail the test if a sanitizer finds an error."""
    variables = {**os.environ, **OPTIONS, **(environment or {})}
    process = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300)
    assert process.returncode == 0, f"{process.returncode}: {process.stdout[-2000:]}{process.stderr[:8000]}"
    return process.stdout
