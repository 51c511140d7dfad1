"""Build `diopi-runner` in tests."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from toolchain import build

from diopi_proto import headers

ROOT = Path(__file__).parents[2]

RUNNER_SOURCES = sorted([*(ROOT / "runner").glob("*.c"), *(ROOT / "lib_rt" / "src").glob("*.c")])
"""The sources of the runner, with those of the runtime."""

RUNNER_FLAGS = (f"-I{ROOT / 'lib_rt' / 'src'}", "-D_DEFAULT_SOURCE", "-fvisibility=hidden", "-rdynamic", "-ldl")
"""The flags of the runner, as in CMakeLists.txt."""


def build_runner(target: Path, *flags: str) -> Path:
    """Build the runner with additional flags of the compiler, and return its path."""
    return build(target, "c", RUNNER_SOURCES, "-O1", *RUNNER_FLAGS, *flags)


def compile_object(source: Path, folder: Path) -> Path:
    """Compile a source of a vendor in C to an object file in a folder, and return the path of this file."""
    target = folder / f"{source.stem}.o"
    run_quietly(
        ["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", f"-I{headers.INCLUDE_DIR}", "-c", str(source), "-o", str(target)]
    )
    return target


def run_quietly(command: Sequence[str]) -> None:
    """Run a command; fail with its output if it fails."""
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
