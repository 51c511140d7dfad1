"""Find the compiled libraries of the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from lib_rt.errors import LibraryNotFoundError

PACKAGE = Path(__file__).parent
"""The folder of the package, in which CMake puts the libraries."""


def find_library(name: str, variable: str) -> Path:
    """Return the path of a library: beside this package, or where the distribution installed it.

    Args:
        name: The file name of the library.
        variable: The environment variable that names another file, for instance a debug build.

    Raises:
        LibraryNotFoundError: There is no such file; the message lists the places.
    """
    candidates = list(_candidates(name, variable))
    for path in candidates:
        if path.is_file():
            return path
    raise LibraryNotFoundError(f"{name} was not found; looked for {', '.join(map(str, candidates))}")


def _candidates(name: str, variable: str) -> Iterator[Path]:
    """Iterate over the paths where the library may be."""
    if chosen := os.environ.get(variable):
        yield Path(chosen)
        return
    yield PACKAGE / name
    try:
        installed = files("diopi") or []
    except PackageNotFoundError:
        return
    yield from (Path(str(file.locate())) for file in installed if file.name == name)
