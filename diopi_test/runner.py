"""`run`: the suite on one vendor, over pytest and pytest-xdist, with a progress display and a report."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from diopi_test import plugin
from diopi_test.report import Report
from diopi_test.verdict import Verdict

_HOW_LOST = {Verdict.timed_out: "hung and was ended", Verdict.crashed: "ended"}

TIMEOUT = 120
"""Seconds after which a case counts as hanging."""


@dataclass(frozen=True)
class RunOptions:
    """What to run.

    Attributes:
        vendor: as `diopi_impl.find_vendor` takes it.
        files: the baseline files.
        expression: a pytest keyword expression that selects cases, or None.
        workers: number of processes.
        timeout: seconds a case may take.
    """

    vendor: str
    files: Sequence[Path]
    expression: str | None
    workers: int
    timeout: float = TIMEOUT


def run(options: RunOptions, report: Report, console: Console) -> None:
    """Run the cases and fill `report`."""
    start = time.monotonic()
    monitor = Monitor(report, console, options.timeout)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the user's plugins have no part in this
    os.environ.pop("PYTEST_ADDOPTS", None)
    code = pytest.main(_pytest_arguments(options), plugins=[monitor])
    report.seconds = time.monotonic() - start
    if code is pytest.ExitCode.INTERNAL_ERROR or code is pytest.ExitCode.USAGE_ERROR:
        report.errors.append(f"pytest ended with {code.name}")


def _pytest_arguments(options: RunOptions) -> list[str]:
    folder = str(options.files[0].parent)
    return [
        *(str(path) for path in options.files),
        *("-c", os.devnull, "--rootdir", folder),
        *("-p", "xdist", "-p", "pytest_timeout", "-p", "diopi_test.plugin", "-p", "no:cacheprovider"),
        *("-p", "no:faulthandler"),  # a crash is a verdict, not news
        *("--vendor", options.vendor, "--runtime-cases"),
        *("-n", str(options.workers), "--max-worker-restart", "1000000"),
        *("--timeout", str(options.timeout), "--timeout-method", "thread"),
        *(("-k", options.expression) if options.expression else ()),
    ]


class Monitor:
    """The controller's plugin: it shows progress instead of pytest's own display and collects the records."""

    def __init__(self, report: Report, console: Console, timeout: float) -> None:
        self._report = report
        self._timeout = timeout
        self._started: dict[str, float] = {}
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self._task = self._progress.add_task("starting", total=None)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        terminal = config.pluginmanager.getplugin("terminalreporter")
        config.pluginmanager.unregister(terminal)
        self._progress.start()

    def pytest_unconfigure(self) -> None:
        self._progress.stop()

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._progress.update(self._task, total=len(ids), description="running")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and (message := str(report.longrepr)) not in self._report.errors:
            self._report.errors.append(message)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._started[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record = dict(report.user_properties).get(plugin.PROPERTY)
        if report.when == "call" and isinstance(record, dict):
            self._add(record)
        elif report.when not in ("setup", "call", "teardown"):
            self._add(self._lost(report))
        elif report.failed:
            self._report.errors.append(f"{report.nodeid}: {report.longrepr}")

    def _add(self, record: dict[str, Any]) -> None:
        self._report.add(record)
        self._progress.advance(self._task)

    def _lost(self, report: pytest.TestReport) -> dict[str, Any]:
        """The record of a case that took its worker with it."""
        name = report.nodeid.rsplit("::", 1)[-1]
        seconds = time.monotonic() - self._started.get(report.nodeid, time.monotonic())
        verdict = Verdict.timed_out if seconds >= self._timeout else Verdict.crashed
        function, _, label = name.partition("[")
        return {
            "id": name,
            "function": function,
            "dtype": plugin.dtype_in(label.rstrip("]")),
            "verdict": str(verdict),
            "checks": [],
            "message": f"the process {_HOW_LOST[verdict]} after {seconds:.1f} s",
            "seconds": round(seconds, 6),
        }
