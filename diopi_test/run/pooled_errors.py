"""A pytest plugin that checks the pooled errors of a run at its end, as `diopi-test run` does."""

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
"""The key under which a worker of pytest-xdist sends its waivers to the controller, including those of the vendor."""


@final
class PooledErrorsPlugin:
    """A pytest plugin that pools the errors of each function and element type over the cases of the run.

    The run fails if the root mean square of pooled errors exceeds its limit, unless a waiver covers the failure.

    Args:
        property_name: The name of the user property in which a test report stores the record of a case.
        find_policy: A function that returns the failure policy of this process, with the waivers.
    """

    def __init__(self, property_name: str, find_policy: Callable[[], FailurePolicy]) -> None:
        self._property_name = property_name
        self._find_policy = find_policy
        self._records: list[CaseRecord] = []
        self._waivers = Waivers()
        self._failures: list[CaseRecord] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the record of the case from its test report and store it."""
        if report.when == "call":
            documents = (value for name, value in report.user_properties if name == self._property_name)
            self._records += (from_json(CaseRecord, document) for document in documents)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep the waivers of the last worker of pytest-xdist that has sent any; all workers send the same waivers."""
        if sent := getattr(node, "workeroutput", {}).get(_WAIVERS):
            self._waivers = from_json(Waivers, sent)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail the run if a pooled failure counts; in a worker of pytest-xdist, send the waivers instead."""
        policy = self._find_policy()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_WAIVERS] = to_json(policy.waivers)
            return
        policy = replace(policy, waivers=policy.waivers + self._waivers)
        pooled = [_with_severity(record) for record in find_pooled_failures(self._records)]
        waived_or_failed = [policy.waivers.apply(record) for record in pooled]
        self._failures = [record for record in waived_or_failed if record.verdict in UNSUCCESSFUL]
        if exitstatus == pytest.ExitCode.OK and any(map(policy.counts, self._failures)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each pooled failure that is not waived."""
        for record in self._failures:
            terminalreporter.write_line(f"FAILED {record.id} - {record.message}")


def _with_severity(record: CaseRecord) -> CaseRecord:
    """Return the record of a failure with its severity."""
    return replace(record, severity=severity_of_case(record.verdict, record.checks, record.message))
