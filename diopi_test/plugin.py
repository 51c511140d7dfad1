"""The pytest plugin: baseline files are collected, each case is an item, spread over workers by pytest-xdist.

`pytest baseline_data/smoke --vendor NAME` works with this plugin alone; `diopi-test run` adds display and report.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from diopi_impl import VendorError
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.negative import negative_labels
from diopi_test.outline import Outline
from diopi_test.runtime_cases import RUNTIME_CASES, RuntimeCase
from diopi_test.session import Session
from diopi_test.store import SUFFIX, BaselineError
from diopi_test.verdict import Outcome, Verdict

PROPERTY = "diopi"
"""The user property of a test report that carries a case's record."""

_session_key = pytest.StashKey[Session]()


class CaseFailedError(Exception):
    """A case's verdict is `failed`; the message says why."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("diopi", "DIOPI conformance")
    group.addoption("--vendor", default="jax_cpu", help="vendor under test: name, module:attribute, or path of a .so")
    group.addoption("--runtime-cases", action="store_true", help="run the cases of the nine runtime functions too")


def session_of(config: pytest.Config) -> Session:
    """This process's session, made at first use; a usage error when there is no such vendor."""
    if _session_key not in config.stash:
        try:
            config.stash[_session_key] = Session.of(config.getoption("vendor"))
        except VendorError as error:
            raise pytest.UsageError(str(error)) from error
    return config.stash[_session_key]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _session_key in config.stash:
        config.stash[_session_key].close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return BaselineCollector.from_parent(parent, path=file_path) if file_path.suffix == SUFFIX else None


@pytest.hookimpl(tryfirst=True)  # before -k is applied
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("runtime_cases"):
        items[:0] = [
            RuntimeItem.from_parent(session, name=f"runtime[{case.name}]", case=case) for case in RUNTIME_CASES
        ]


class BaselineCollector(pytest.File):
    """A baseline file; its cases, and the negative ones made of them, are the items."""

    def collect(self) -> Iterable[pytest.Item]:
        try:
            baseline = Outline(self.path)
        except BaselineError as error:
            raise self.CollectError(str(error)) from error
        function = baseline.function
        for label in baseline.labels:
            yield BaselineItem.from_parent(self, name=f"{function}[{label}]", function=function, label=label)
        for label, base in negative_labels(lookup(function), baseline.cases(first=Dtype.float32)):
            name = f"{function}[{label}]"
            yield NegativeItem.from_parent(self, name=name, function=function, label=label, base=base)


class CaseItem(pytest.Item):
    """An item that runs one case and records its outcome."""

    function_name = ""
    dtype = ""

    def outcome(self) -> Outcome:
        """Run the case."""
        raise NotImplementedError  # each kind of case has its own way

    def runtest(self) -> None:
        """Run the case and turn its verdict into pytest's terms."""
        start = time.perf_counter()
        outcome = self.outcome()
        self.user_properties.append((PROPERTY, self._record(outcome, time.perf_counter() - start)))
        if outcome.verdict is Verdict.failed:
            raise CaseFailedError(outcome.message)
        if outcome.verdict is not Verdict.passed:
            pytest.skip(f"{outcome.verdict}: {outcome.message}")

    def _record(self, outcome: Outcome, seconds: float) -> dict[str, Any]:
        return {
            "id": self.name,
            "function": self.function_name,
            "dtype": self.dtype,
            "verdict": str(outcome.verdict),
            "checks": [finding.to_json() for finding in outcome.findings],
            "message": outcome.message,
            "seconds": round(seconds, 6),
        }

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Only the message of a failed case; a traceback for everything unexpected."""
        if isinstance(excinfo.value, CaseFailedError | BaselineError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where pytest says the case is."""
        return self.path, None, self.name


def dtype_in(label: str) -> str:
    """The element type a case's label begins with; empty where it doesn't."""
    word = label.split("-", 1)[0]
    return word if word in Dtype.__members__ else ""


class BaselineItem(CaseItem):
    """One case of a baseline file."""

    def __init__(self, *, function: str, label: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.function_name = function
        self.label = label
        self.dtype = dtype_in(label)

    def outcome(self) -> Outcome:
        return session_of(self.config).run_baseline_case(self.path, self.label)


class NegativeItem(CaseItem):
    """One call that must be refused, made of a case of a baseline file."""

    def __init__(self, *, function: str, label: str, base: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.function_name = function
        self.label = label
        self.base = base

    def outcome(self) -> Outcome:
        return session_of(self.config).run_negative_case(self.path, self.base, self.label)


class RuntimeItem(CaseItem):
    """One case of the runtime functions."""

    function_name = "runtime"

    def __init__(self, *, case: RuntimeCase, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case

    def outcome(self) -> Outcome:
        return session_of(self.config).run_runtime_case(self.case)
