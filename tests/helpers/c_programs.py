"""Build the C programs of `examples/engine_c` for tests of `diopi_engine`, and describe the environment to run them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diopi_engine.proto import headers

SOURCES = Path(__file__).parents[2] / "examples" / "engine_c"
"""The folder with the programs, which are also examples for users."""

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
"""The flags with which programs are compiled: a warning is an error."""


def build_program(name: str, library: Path, folder: Path) -> Path:
    """Build a program and return its path; skip the test if there is no C compiler.

    Args:
        name: the name of the C file without its suffix.
        library: the engine library that the program is linked with.
        folder: the folder of the program.
    """
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    program = folder / name
    options = ["-std=c11", "-ffp-contract=off", *WARNINGS, f"-I{headers.INCLUDE_DIR}"]
    linked = [str(library), f"-Wl,-rpath,{library.parent}", "-lm"]
    subprocess.run(["cc", *options, str(SOURCES / f"{name}.c"), *linked, "-o", str(program)], check=True)
    return program


def environment(locks: Path) -> dict[str, str]:
    """Return an environment in which a program's embedded Python finds the modules of this process.

    Args:
        locks: the folder in which the engine creates its lock files.
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": paths, "DIOPI_ENGINE_LOCKS": str(locks)}
