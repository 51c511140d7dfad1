"""The command that a user most likely wants after a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from diopi_test.run.options import SELECT_ALL, RunOptions

if TYPE_CHECKING:
    from diopi_test.results.records import Report

DEFAULT_VENDOR, FIRST_LEVEL, NEXT_LEVEL = "jax_cpu", "smoke", "full"
"""The vendor and the level of a run without options, and the level that is suggested after it."""


def suggest_next_step(report: Report, log: Path, options: RunOptions) -> str:
    """Suggest a command after a run.

    Args:
        report: The report of the run.
        log: The path of its log.
        options: Its options.

    Returns:
        A text such as "to see every case in a browser: diopi-test report …"; empty if the run selected no case.
    """
    if not report.summary.collected:
        return ""
    if report.summary.incomplete:
        return f"to run the remaining cases: {shlex.join(['diopi-test', 'run', '--resume', str(log)])}"
    if report.exit_status or options.level != FIRST_LEVEL:
        command = shlex.join(["diopi-test", "report", str(log), "--html", "report.html"])
        return f"to see every case in a browser: {command}"
    vendor = [] if options.vendor == DEFAULT_VENDOR else ["--vendor", options.vendor]
    if options.selection != SELECT_ALL:
        return f"to run the cases of all functions: {shlex.join(['diopi-test', 'run', *vendor])}"
    run = shlex.join(["diopi-test", "run", "--level", NEXT_LEVEL, *vendor])
    return f"to run three times as many cases: diopi-test gen-data --level {NEXT_LEVEL} && {run}"
