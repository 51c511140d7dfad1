"""The C core under the compiler's sanitizers: memory errors, leaks, undefined behavior and data races."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sanitizers
from sanitizers import ADDRESS, THREAD
from toolchain import build

import lib_rt

pytestmark = pytest.mark.sanitizers

HERE = Path(__file__).parent
CORE_SOURCES = sorted((HERE.parent.parent / "lib_rt" / "src").glob("*.c"))
INCLUDE = f"-I{CORE_SOURCES[0].parent}"

FAILING_FUNCTIONS = ["malloc", "calloc", "realloc", "aligned_alloc", "strdup", "handle_new"]
"""The functions that `faults.c` can make fail."""

IGNORED_TESTS = ["test_sanitizers.py", "test_cmake_package.py", "test_library.py"]
"""Tests that are not repeated under the sanitizers: this file, and those of the installed library."""


def build_program(folder: Path, name: str, *flags: str) -> Path:
    """Build the test build_program `name`.c together with the core."""
    sources = [*CORE_SOURCES, HERE / "programs" / "device.c", HERE / "programs" / f"{name}.c"]
    return build(folder / name, "c", sources, *flags, INCLUDE)


def test_failed_allocations_leak_no_memory(tmp_path: Path) -> None:
    sanitizers.require(ADDRESS)
    wrapped = ",".join(f"--wrap={name}" for name in FAILING_FUNCTIONS)
    faults, unit = sanitizers.run([build_program(tmp_path, "faults", *ADDRESS, f"-Wl,{wrapped}")]).split()
    assert unit == "faults"
    assert int(faults) > 200  # the number of allocations that were made to fail, one at a time


@pytest.mark.parametrize("flags", [ADDRESS, THREAD], ids=["memory", "races"])
def test_threads_have_no_data_races(flags: tuple[str, ...], tmp_path: Path) -> None:
    sanitizers.require(flags)
    sanitizers.run([build_program(tmp_path, "threads", *flags)])


def test_the_python_tests_cause_no_memory_error(tmp_path: Path) -> None:
    sanitizers.require(ADDRESS)
    found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    preloaded = Path(found.stdout.strip())
    if not preloaded.is_absolute():
        pytest.skip("cc has no libasan.so that could be loaded before Python")
    library = build(tmp_path / "libdiopirt.so", "c", CORE_SOURCES, *ADDRESS, INCLUDE, "-fvisibility=hidden")
    root = str(Path(lib_rt.__file__).parent.parent)
    environment = {
        **sanitizers.LEAKS_OF_PYTHON,
        "DIOPIRT_LIBRARY": str(library),
        "LD_PRELOAD": str(preloaded.resolve()),
        "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", ""))),
    }
    ignored = [f"--ignore={HERE / name}" for name in IGNORED_TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *ignored, HERE]
    assert " passed" in sanitizers.run(command, environment)
