"""Find the line of the program from which a call of an operator comes."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path

import torch

_PACKAGES = tuple(str(Path(folder)) + "/" for folder in (Path(torch.__file__).parent, Path(__file__).parents[2]))
"""The folders of PyTorch and of `diopi_torch`, whose files do not belong to the program."""

_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + "/"
"""The folder of Python's standard library. Installed packages can be in its subfolder `site-packages`."""


@cache
def _is_program(file: str) -> bool:
    """Return whether a file belongs to the program: not to PyTorch, this package or Python's standard library."""
    if file.startswith(("<frozen", *_PACKAGES)):
        return False
    return "-packages/" in file or not file.startswith(_STANDARD_LIBRARY)


def find_origin() -> str:
    """Return the line of the program from which the current call comes.

    It is the line of the innermost frame that belongs to the program.

    Returns:
        The location, such as `train.py:41 (forward)`. During a backward pass, the name of the gradient function
        follows, as in `train.py:57 (step), gradient MmBackward0`. The text starts with `unknown` if no frame belongs to
        the program.
    """
    frame = sys._getframe(1)
    while frame is not None and not _is_program(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]  # the outermost frame has no caller
    location = "unknown"
    if frame is not None:
        location = f"{_shorten(frame.f_code.co_filename)}:{frame.f_lineno} ({frame.f_code.co_name})"
    node = torch._C._current_autograd_node()
    return location if node is None else f"{location}, gradient {node.name()}"


def _shorten(file: str) -> str:
    """Return the path relative to the working directory if the file is in it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
