"""`autocompare`, `capture` and `watch`; they import the modules that need the suite when they are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from diopi_torch.settings import AUTOCOMPARE, WATCH, parse_overhead

if TYPE_CHECKING:
    from diopi_torch.compare.capture import Capture
    from diopi_torch.compare.session import ComparisonSession
    from diopi_torch.compare.watch.session import Watch

ALL_OPERATORS = ".*"
"""Matches every operator that functions implement."""


def autocompare(
    operators: str = ALL_OPERATORS, *, report: str | os.PathLike[str] | None = None, quiet: bool = False
) -> ComparisonSession:
    """Compare calls of operators with the CPU's results until the returned session is closed.

    Args:
        operators: regular expressions separated by commas, as in `DIPU_AUTOCOMPARE_OPS_LIST`.
        report: the file for the suite's report, which is written at the end. Failed calls are stored as cases in the
            folder with the same name and the suffix `.cases`.
        quiet: whether to print nothing to stderr.

    Returns:
        The session, which is also a context manager.

    Raises SettingError for an invalid expression or one that matches no operator, and OSError if the report can't be
    written or the folder contains cases.
    """
    from diopi_torch.compare.session import ComparisonSession, print_to_stderr

    return ComparisonSession(
        operators, Path(report) if report else None, _ignore_line if quiet else print_to_stderr, "operators"
    )


def capture(folder: str | os.PathLike[str], operators: str = ALL_OPERATORS) -> Capture:
    """Store calls of operators as cases until the returned capture is closed.

    If calls differ only in their values, only the first one is stored. Errors are those of `autocompare`.

    Args:
        folder: the folder for `diopi-test run --data`.
        operators: regular expressions separated by commas, as in `DIPU_AUTOCOMPARE_OPS_LIST`.

    Returns:
        The capture, which is also a context manager.
    """
    from diopi_torch.compare.capture import Capture

    return Capture(Path(folder), operators, "operators")


def watch(
    *,
    device: str | None = None,
    overhead: float = 1.0,
    cases: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    quiet: bool = False,
) -> Watch:
    """Judge the calls of ATen operators, on any device, within the context of the returned watch.

    Args:
        device: the type of the device whose calls are judged, such as `cuda`; None for all devices.
        overhead: the time for judging, relative to the time of the program itself; 1.0 is 100 %.
        cases: the folder for cases of wrong calls, for `diopi-test run --data`; None to store none.
        report: the file for the report, which is otherwise printed to stderr at the end.
        quiet: whether to write no report.

    Returns:
        The watch, which is a context manager. Its attribute `wrong_operators` lists the wrong operators.

    Raises FileExistsError if the folder contains cases.
    """
    from diopi_torch.compare.watch.session import Watch

    return Watch(device, overhead, Path(cases) if cases else None, _report_writer(report, quiet))


def _report_writer(report: str | os.PathLike[str] | None, quiet: bool) -> Callable[[str], object]:
    """Return a function that receives the text of a report."""
    if quiet:
        return _ignore_line
    return Path(report).write_text if report else _print_to_stderr


def _print_to_stderr(text: str) -> None:
    """Print a text to stderr."""
    print(text, file=sys.stderr)


def watch_from_environment() -> Watch | None:
    """Watch the process until it ends if the environment requests this; return None if it does not."""
    setting = os.environ.get(WATCH, "").strip()
    if not setting:
        return None
    session = watch(overhead=parse_overhead(WATCH, setting))
    session.start()
    return session


def compare_from_environment() -> ComparisonSession | None:
    """Compare the operators that the environment names until the process ends; return None if it names none."""
    choice = os.environ.get(AUTOCOMPARE, "").strip()
    if not choice:
        return None
    from diopi_torch.compare.session import ComparisonSession, print_to_stderr

    return ComparisonSession(choice, None, print_to_stderr, AUTOCOMPARE)


def _ignore_line(line: str) -> None:
    """Ignore a line of output."""
    pass
