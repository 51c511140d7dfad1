"""Run one case in this process, so that a debugger, a sanitizer or faulthandler sees the vendor's code."""

from __future__ import annotations

import faulthandler
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from diopi_impl import BaseVendor, find_vendor
from diopi_test.baseline.level import open_level_of_file
from diopi_test.execution.runtime_cases import RUNTIME_CASES
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.results.details import outcome_lines
from diopi_test.run.collection import Collected
from diopi_test.run.keywords import SelectionError
from diopi_test.run.limits import CaseOptions
from diopi_test.run.lookup import MAX_SIMILAR_IDS
from diopi_test.run.session import Session
from diopi_test.run.target import LocalTarget

T = TypeVar("T")


def select_only_case(cases: Sequence[T], name: Callable[[T], str]) -> T:
    """Return the only case of the selection.

    Args:
        cases: The selected cases.
        name: Returns the name of a case, for the message.

    Raises:
        SelectionError: There is no case, or more than one; the message names the first ones.
    """
    if len(cases) != 1:
        examples = f": {', '.join(map(name, cases[:MAX_SIMILAR_IDS]))}" if cases else ""
        suffix = ", …" if len(cases) > MAX_SIMILAR_IDS else ""
        raise SelectionError(
            f"--debug runs exactly one case, but {len(cases) or 'none'} are selected{examples}{suffix}"
        )
    return cases[0]


def debug(
    vendor_name: str, path: Path | None, collected: Collected, options: CaseOptions, print_line: Callable[[str], None]
) -> Outcome:
    """Run one case in this process and print its outcome.

    An exception of the vendor propagates, a crash ends the process with the stack on stderr, and a call that hangs is
    not interrupted.

    Args:
        vendor_name: The vendor, as `find_vendor` takes it.
        path: The baseline file; None for a case of the runtime.
        collected: The case.
        options: How to run and check the case.
        print_line: Prints a line for the user at once.

    Returns:
        The outcome of the case.
    """
    faulthandler.enable(all_threads=True)
    for line in _hints(collected.id, stored=path is not None):
        print_line(line)
    vendor = find_vendor(vendor_name)
    outcome = _run_runtime_case(vendor, collected) if path is None else _run(vendor, path, collected, options)
    for line in outcome_lines(collected.id, outcome):
        print_line(line)
    return outcome


def _hints(case: str, *, stored: bool) -> Iterator[str]:
    """Yield lines with the process number and the commands that start a debugger."""
    command = shlex.join(sys.orig_argv)
    yield f"{case} runs in this process, {os.getpid()}; a crash prints the stack, Ctrl-C ends a call that hangs"
    yield f"  gdb --args {command}"
    yield f"  lldb -- {command}"
    if stored:
        yield f"  diopi-test show {shlex.quote(case)}    # shows the call"


def _run(vendor: BaseVendor, path: Path, collected: Collected, options: CaseOptions) -> Outcome:
    """Return the outcome of a stored case on a newly opened device."""
    sha256 = open_level_of_file(path).sha256(path.stem)
    with vendor.open_device() as device:
        return Session(LocalTarget(vendor, device), options).run(path, collected, sha256)


def _run_runtime_case(vendor: BaseVendor, collected: Collected) -> Outcome:
    """Return the outcome of a case of the runtime functions. Exceptions reach the caller."""
    case = next(case for case in RUNTIME_CASES if case.name == collected.label)
    case.run(vendor)
    return Outcome(verdict=Verdict.passed)
