"""A pytest session fails if the pooled errors of a function exceed the limit, as `diopi-test run` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from case_records import case_record

from diopi_impl import Waiver
from diopi_proto.types import Dtype
from diopi_test.baseline.codec import to_json
from diopi_test.execution.verdict import CheckResult, RoundingErrors
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.pooled_errors import PooledErrorsPlugin
from diopi_test.waivers.rules import Waivers

PROPERTY = "record"


def passed_report(label: str, rms: float) -> Any:
    """Return the pytest report of a passed case: its result has 12 elements with a root mean square error of `rms`."""
    errors = RoundingErrors(dtype=Dtype.float16, elements=12, rms=rms)
    result = CheckResult(check="values", passed=True, errors=(errors,))
    record = case_record(f"diopiMm[{label}]", "passed", "", result)
    return SimpleNamespace(when="call", user_properties=[(PROPERTY, to_json(record))])


def finish_session(*rms_errors: float, worker_nodes: Sequence[Any] = ()) -> tuple[int, list[str]]:
    """Return the exit status of a session, and the lines of its terminal summary.

    Args:
        rms_errors: the root mean square error of each case, all of which passed.
        worker_nodes: workers of pytest-xdist that end before the session does.
    """
    lines: list[str] = []
    plugin = PooledErrorsPlugin(PROPERTY, FailurePolicy)
    for number, rms in enumerate(rms_errors):
        plugin.pytest_runtest_logreport(passed_report(f"float16-{number}", rms))
    for node in worker_nodes:
        plugin.pytest_testnodedown(node)
    session: Any = SimpleNamespace(config=SimpleNamespace(), exitstatus=0)
    plugin.pytest_sessionfinish(session, pytest.ExitCode.OK)
    terminal: Any = SimpleNamespace(write_line=lines.append)
    plugin.pytest_terminal_summary(terminal)
    return session.exitstatus, lines


def test_a_session_fails_if_errors_are_too_large_together() -> None:
    status, (line,) = finish_session(1.2, 1.3)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert line.startswith("FAILED diopiMm[pooled_values-float16] - pooled_values: the errors of 24 elements in 2 ")
    assert finish_session(0.3, 1.3) == (pytest.ExitCode.OK, [])


def test_the_waivers_of_the_vendor_apply_also_if_only_workers_know_them() -> None:
    waivers = Waivers.from_vendor("small", (Waiver("diopiMm[pooled_values-*]", "half accumulation"),))
    worker = PooledErrorsPlugin(PROPERTY, lambda: replace(FailurePolicy(), waivers=waivers))
    node: Any = SimpleNamespace(workeroutput={})
    session: Any = SimpleNamespace(config=node, exitstatus=0)
    worker.pytest_sessionfinish(session, pytest.ExitCode.OK)
    assert finish_session(1.2, 1.3, worker_nodes=[node]) == (pytest.ExitCode.OK, [])
