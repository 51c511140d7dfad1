"""Separate the stack that a crashed or hanging worker printed from the reason in the message of its case."""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR = "; its output: "
"""The text between the reason in a message and the output of the worker."""

_FRAME = re.compile(r'\s*File "(?P<path>[^"]+)", line \d+(?: in (?P<function>\S+))?')
"""A frame of a stack that Python's faulthandler has printed."""

_PROJECT = re.compile(
    r"/(diopi_test|lib_rt|diopi_proto|diopi_torch|diopi_engine)/|/diopi_impl/(\w+\.py|native/|export/)"
)
"""Paths of the project's own modules. The vendors in `diopi_impl` do not match."""

_STANDARD_LIBRARY = re.compile(r"/lib/python\d[.\d]*/(?!site-packages/|dist-packages/)")
"""A part of the paths of modules of Python's standard library."""


def split_stack(message: str) -> tuple[str, Sequence[str]]:
    """Return the reason in a message, and the lines of the stack or output that follow it.

    The vendor's innermost frame is repeated before the stack, so that nobody has to search for it. The list of
    extension modules that Python appends to a stack is omitted.

    Args:
        message: The message of a case.

    Returns:
        The reason, and the lines. If the message contains no output of several lines, the message and no lines.
    """
    reason, separator, output = message.partition(SEPARATOR)
    if not separator or "\n" not in output:
        return message, ()
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("Extension modules:")]
    vendor_frame = next((line for line in lines if _is_vendor_frame(line)), None)
    if vendor_frame is None:
        return reason, lines
    return reason, [vendor_frame.strip(), "", *lines]


def describe_vendor_frame(message: str) -> str:
    """Return "in FUNCTION of FILE" for the vendor's innermost frame; empty if there is none.

    The description has no line number and no folder, so that it stays the same in another version and on another host.

    Args:
        message: The message of a case.

    Returns:
        The description.
    """
    frames = (_FRAME.match(line) for line in message.splitlines() if _is_vendor_frame(line))
    frame = next((frame for frame in frames if frame and frame["function"]), None)
    return f"in {frame['function']} of {frame['path'].rpartition('/')[2]}" if frame else ""


def _is_vendor_frame(line: str) -> bool:
    """Return whether a line of a stack names a source file outside this project and Python's standard library."""
    frame = _FRAME.match(line)
    if frame is None or frame["path"].startswith("<"):
        return False
    return not (_PROJECT.search(frame["path"]) or _STANDARD_LIBRARY.search(frame["path"]))
