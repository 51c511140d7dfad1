"""`autocompare` and `capture`: what sees the suite is imported by them, when they are used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from diopi_torch.settings import AUTOCOMPARE

if TYPE_CHECKING:
    from diopi_torch.compare.capture import Capture
    from diopi_torch.compare.session import Comparison

ALL = ".*"
"""Every operator that functions serve."""


def autocompare(
    operators: str = ALL, *, report: str | os.PathLike[str] | None = None, quiet: bool = False
) -> Comparison:
    """Compare calls of operators with the CPU, until what is returned is closed: it is a context manager, too.

    Args:
        operators: regular expressions with commas between them, as `DIPU_AUTOCOMPARE_OPS_LIST` has them.
        report: the file for the suite's report, which is written at the end; failed calls become cases in the folder
            of that name with `.cases` in the place of its suffix.
        quiet: whether nothing is printed to stderr.

    SettingError for a wrong expression, or one that matches no operator that a function serves; OSError if the report
    can't be written, or there are cases already.
    """
    from diopi_torch.compare.session import Comparison, to_stderr

    return Comparison(operators, Path(report) if report else None, _nothing if quiet else to_stderr, "operators")


def capture(folder: str | os.PathLike[str], operators: str = ALL) -> Capture:
    """Keep calls of operators as cases for `diopi-test run --data FOLDER`, until what is returned is closed.

    Of calls that differ in their values alone, the first is kept. Errors are those of `autocompare`.
    """
    from diopi_torch.compare.capture import Capture

    return Capture(Path(folder), operators, "operators")


def compare_from_the_beginning() -> Comparison | None:
    """Compare what the environment says, if anything, until the process ends; SettingError if that is wrong."""
    choice = os.environ.get(AUTOCOMPARE, "").strip()
    if not choice:
        return None
    from diopi_torch.compare.session import Comparison, to_stderr

    return Comparison(choice, None, to_stderr, AUTOCOMPARE)


def _nothing(line: str) -> None:
    pass
