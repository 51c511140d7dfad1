"""The check of pooled errors at the end of a run of pytest, as in the report of `diopi-test run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

import pytest

from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.results.causes.severity import severity_of_case
from diopi_test.results.pooling import find_pooled_failures
from diopi_test.results.records import CaseRecord
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.waivers.rules import Waivers

_WAIVERS = "diopi_waivers"
"""The key under which a worker of pytest-xdist sends the waivers, among them those of the vendor."""


@final
class PooledErrors:
    """The errors of each function and element type, pooled over its cases.

    Args:
        property_name: The name of the user property of a test report that has the record of a case.
        find_policy: Returns which failures count, with the waivers that are known so far.
    """

    def __init__(self, property_name: str, find_policy: Callable[[], FailurePolicy]) -> None:
        self._property_name = property_name
        self._find_policy = find_policy
        self._records: list[CaseRecord] = []
        self._waivers = Waivers()
        self._failures: list[CaseRecord] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the record of a case."""
        if report.when == "call":
            named = (record for name, record in report.user_properties if name == self._property_name)
            self._records += (from_json(CaseRecord, record) for record in named)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the waivers of a worker of pytest-xdist."""
        if sent := getattr(node, "workeroutput", {}).get(_WAIVERS):
            self._waivers = from_json(Waivers, sent)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Find the functions that fail, and let the run fail with them; only the controller of pytest-xdist does so."""
        policy = self._find_policy()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_WAIVERS] = to_json(policy.waivers)
            return
        policy = replace(policy, waivers=policy.waivers + self._waivers)
        self._failures = [
            record
            for record in map(policy.waivers.apply, map(_with_severity, find_pooled_failures(self._records)))
            if record.verdict in UNSUCCESSFUL
        ]
        if exitstatus == pytest.ExitCode.OK and any(map(policy.counts, self._failures)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each function that fails."""
        for record in self._failures:
            terminalreporter.write_line(f"FAILED {record.id} - {record.message}")


def _with_severity(record: CaseRecord) -> CaseRecord:
    """Return the record of a failure with its severity."""
    return replace(record, severity=severity_of_case(record.verdict, record.checks, record.message))
