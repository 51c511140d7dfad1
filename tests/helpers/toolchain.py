"""Compile C and C++ in tests, with the headers of the package."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from diopi_proto import headers

VENDORS = Path(__file__).parent.parent / "vendors"
"""The folder with the sources of vendors and of a framework."""

WARNINGS = ("-Wall", "-Wextra", "-pedantic", "-Werror")
"""The flags with which everything is compiled: a warning is an error."""

_COMPILERS = {"c": ("cc", "-std=c11", "-xc"), "c++": ("c++", "-std=c++17", "-xc++")}
"""The compiler of a language, the version of the language, and the flag that names the language of the sources."""


def require_shared_python() -> None:
    """Skip the test if this Python has no shared library, which a program in C needs to start Python."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library, without which no program can run it")


def build(target: Path, language: str, sources: Sequence[Path], *flags: str) -> Path:
    """Compile and link sources; skip the test without a compiler.

    Args:
        target: the file to build: a library if its suffix is .so, else a program.
        language: `c` or `c++`.
        sources: the source files.
        *flags: further options of the compiler.

    Returns:
        The target.
    """
    compiler, standard, kind = _COMPILERS[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no compiler {compiler} here")
    shared = ["-shared", "-fPIC"] if target.suffix == ".so" else []
    command = [compiler, standard, "-D_GNU_SOURCE", *WARNINGS, *shared, f"-I{headers.INCLUDE_DIR}", "-o"]
    files = [kind, *map(str, sources), "-xnone"]
    process = subprocess.run([*command, str(target), *files, *flags, "-pthread", "-lm"], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return target


def library(folder: Path, source: str, *flags: str) -> Path:
    """Return the path of a vendor library that is compiled from one C file with this text."""
    file = folder / "vendor.c"
    file.write_text(source)
    return build(folder / "libdiopi_impl.so", "c", [file], *flags)
