"""The pytest plugin: it collects baseline files, and makes each case a test item.

The pytest process starts a worker, in which the cases run. `pytest baseline_data/smoke --vendor NAME` uses this plugin;
`diopi-test run` runs the same cases without pytest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import pytest

from diopi_impl import Numerics, NumericsError, VendorError, find_numerics
from diopi_test.baseline.codec import to_json
from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.shuffle import RANDOM, parse_seed, shuffle_by_seed
from diopi_test.baseline.store import SUFFIX, BaselineError
from diopi_test.cases.selection import LEVELS
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import EXECUTED, UNSUCCESSFUL, Outcome, Verdict
from diopi_test.results.causes.severity import Severity, severity_of_case
from diopi_test.results.records import affects_status
from diopi_test.run.collection import Collected, collect_file, collect_runtime
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.executor import Executor, ScheduledCase
from diopi_test.run.isolation.fork_server import ForkServerError
from diopi_test.run.limits import DEFAULT_TIMEOUT, CaseOptions, Limits
from diopi_test.run.pooled_errors import PooledErrorsPlugin
from diopi_test.waivers.rules import Waivers
from diopi_test.waivers.tables import TableError

PROPERTY = "diopi"
"""The user property of a test report that carries a case's record."""

_SEED = "diopi_seed"
"""The key under which the pytest controller sends the seed to its workers, so that all of them use the same one."""

# The keys under which pytest's configuration stores what belongs to this session.
_executor_key = pytest.StashKey[Executor]()
_policy_key = pytest.StashKey[FailurePolicy]()
_numerics_key = pytest.StashKey[Numerics | None]()
_seed_key = pytest.StashKey[int]()
_drawn_key = pytest.StashKey[bool]()


class CaseFailedError(Exception):
    """The verdict of a case counts against the vendor; the message gives the reason."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("diopi", "DIOPI conformance")
    group.addoption("--vendor", default="jax_cpu", help="vendor under test: name, module:attribute, or path of a .so")
    group.addoption("--runtime-cases", action="store_true", help="run the cases of the nine runtime functions too")
    group.addoption(
        "--diopi-strict", action="store_true", help="also count negative tests and what PyTorch leaves open"
    )
    group.addoption(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        default=Severity.major.value,
        help="least severity of failures that count",
    )
    group.addoption(
        "--waivers", action="append", default=[], metavar="FILE", help="TOML file of cases that may fail; repeatable"
    )
    group.addoption(
        "--numerics", metavar="NAME|FILE", help="arithmetic for which results are evaluated; by default the vendor's"
    )
    group.addoption(
        "--case-timeout", type=float, default=DEFAULT_TIMEOUT, metavar="SECONDS", help="time limit of a case"
    )
    group.addoption(
        "--shuffle",
        nargs="?",
        const=RANDOM,
        metavar="SEED",
        help="run all cases in a random order, determined by the seed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the waivers, the declared arithmetic and the seed; register the plugins that decide the exit status."""
    config.pluginmanager.register(ExecutedCases(), "diopi_executed_cases")
    config.stash[_policy_key] = FailurePolicy(
        fail_on=Severity(config.getoption("fail_on")),
        strict=config.getoption("diopi_strict"),
        waivers=_read_waivers([config.invocation_params.dir / path for path in config.getoption("waivers")]),
    )
    config.pluginmanager.register(
        PooledErrorsPlugin(PROPERTY, lambda: config.stash[_policy_key]), "diopi_pooled_errors"
    )
    config.stash[_numerics_key] = _find_numerics(config.getoption("numerics"), config.invocation_params.dir)
    if (seed_text := config.getoption("shuffle")) is not None:
        config.stash[_seed_key] = getattr(config, "workerinput", {}).get(_SEED, _parse_seed(seed_text))


@final
class ExecutedCases:
    """A counter of executed cases, which prevents exit status 0 if all cases of a run were skipped."""

    def __init__(self) -> None:
        self._reported = self._executed = 0

    @property
    def _has_none(self) -> bool:
        """Return whether cases were reported although no case was executed."""
        return self._reported > 0 and self._executed == 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case by its verdict."""
        properties: Iterable[tuple[str, Any]] = report.user_properties
        verdicts = [record["verdict"] for name, record in properties if name == PROPERTY]
        if report.when == "call" and verdicts:
            self._reported += 1
            self._executed += verdicts[0] in EXECUTED

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Exit as if no test had been collected if no case was executed."""
        if exitstatus == pytest.ExitCode.OK and self._has_none:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why the status is not 0."""
        if self._has_none:
            terminalreporter.write_line(f"diopi: none of {self._reported} cases was executed; see -rs for the reasons")


def _read_waivers(paths: Iterable[Path]) -> Waivers:
    """Return the waivers in files; raise a usage error of pytest if they are invalid."""
    try:
        return Waivers.read(paths)
    except TableError as error:
        raise pytest.UsageError(f"--waivers: {error}") from error


def _find_numerics(name: str | None, folder: Path) -> Numerics | None:
    """Return the declared arithmetic, None if there is no name; raise a usage error of pytest if it is invalid."""
    if name is None:
        return None
    try:
        return find_numerics(str(folder / name) if name.endswith(".toml") else name)
    except NumericsError as error:
        raise pytest.UsageError(f"--numerics: {error}") from error


def _parse_seed(seed_text: str) -> int:
    """Return a seed from text; raise a usage error of pytest if it is invalid."""
    try:
        return parse_seed(seed_text)
    except ValueError as error:
        raise pytest.UsageError(f"--shuffle: {error}") from error


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the seed to a worker of pytest-xdist."""
    node.workerinput[_SEED] = node.config.stash.get(_seed_key, None)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line that names the seed; None if the cases are not shuffled."""
    return f"diopi: cases shuffled with --shuffle {config.stash[_seed_key]}" if _seed_key in config.stash else None


def executor_of(config: pytest.Config) -> Executor:
    """Return the executor of this process.

    The first call starts the vendor and adds the vendor's own waivers to those of the run.

    Raises:
        VendorError: The vendor does not start.
    """
    if _executor_key not in config.stash:
        limits = Limits(config.getoption("case_timeout"))
        is_drawn, numerics = config.stash.get(_drawn_key, False), config.stash[_numerics_key]
        options = CaseOptions(draws_inputs=is_drawn, numerics=numerics)
        executor = Executor(config.getoption("vendor"), 1, limits, options)
        config.stash[_executor_key] = executor.__enter__()
        description, policy = executor.describe(), config.stash[_policy_key]
        waivers = policy.waivers + Waivers.from_vendor(description.name, description.waivers)
        config.stash[_policy_key] = replace(policy, waivers=waivers)
    return config.stash[_executor_key]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the executor."""
    if executor := config.stash.get(_executor_key, None):
        executor.__exit__(None, None, None)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for a baseline file; None for other files."""
    return BaselineCollector.from_parent(parent, path=file_path) if file_path.suffix == SUFFIX else None


@pytest.hookimpl(tryfirst=True)  # before -k is applied
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Insert the cases of the runtime first if they are requested; then shuffle all cases if a seed is set."""
    if config.getoption("runtime_cases"):
        items[:0] = [CaseItem.create(session, case) for case in collect_runtime()]
    if _seed_key in config.stash:
        cases = [item for item in items if isinstance(item, CaseItem)]
        other_items = [item for item in items if not isinstance(item, CaseItem)]
        items[:] = [*other_items, *shuffle_by_seed(cases, config.stash[_seed_key], lambda item: item.case.id)]


@final
class CaseItem(pytest.Item):
    """A pytest item that runs one case and records its outcome."""

    def __init__(self, *, case: Collected, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case

    @classmethod
    def create(cls, parent: pytest.Collector, case: Collected) -> CaseItem:
        """Return the item of a case.

        The node ID is passed explicitly, as a text. pytest parses it like the node IDs in its cache, with which `--lf`
        compares it.
        """
        item: CaseItem = cls.from_parent(parent, name=case.id, case=case, nodeid=f"{parent.nodeid}::{case.id}")
        return item

    def runtest(self) -> None:
        """Run the case; skip the test, expect its failure, or raise CaseFailedError, according to the verdict."""
        try:
            executor = executor_of(self.config)
            policy = self.config.stash[_policy_key]
            executor.run([[self._scheduled()]], self._store_record, policy)
        except (VendorError, ForkServerError) as error:
            self.session.shouldstop = str(error)
            raise CaseFailedError(str(error)) from error
        ended = self._record
        is_failure = ended.verdict in UNSUCCESSFUL
        severity = severity_of_case(ended.verdict, ended.checks, ended.message) if is_failure else None
        record = policy.waivers.apply(replace(ended, severity=severity))
        self.user_properties.append((PROPERTY, to_json(record)))
        if record.verdict in UNSUCCESSFUL and not affects_status(record, policy.fail_on, strict=policy.strict):
            option = f"--fail-on {severity}" if record.class_.is_demanded else "--diopi-strict"
            pytest.xfail(f"{record.verdict}, which counts with {option}: {record.message}")
        if record.verdict in UNSUCCESSFUL:
            raise CaseFailedError(f"{record.verdict}: {record.message}")
        if record.verdict is not Verdict.passed:
            pytest.skip(f"{record.verdict}: {record.message}")

    def _scheduled(self) -> ScheduledCase:
        """Return the case with its file, whose digest the worker verifies."""
        if self.case.function == RUNTIME:
            return ScheduledCase(self.path, self.case)
        return ScheduledCase(self.path, self.case, open_level_of_file(self.path).sha256(self.path.stem))

    def _store_record(self, case: Collected, outcome: Outcome, seconds: float) -> None:
        """Store the outcome of the case as its record."""
        self._record = case.record(outcome, seconds)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return only the message of a failed case."""
        is_verdict = isinstance(excinfo.value, CaseFailedError)
        return str(excinfo.value) if is_verdict else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location of the case for pytest."""
        return self.path, None, self.name


class BaselineCollector(pytest.File):
    """A baseline file whose items are its stored and derived cases."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each case; raise CollectError if the baseline file is unusable."""
        level = LEVELS.get(self.path.parent.name)
        if level is not None and level.is_drawn:
            self.config.stash[_drawn_key] = True
        try:
            open_level_of_file(self.path).verify([self.path.stem])
            for case in collect_file(self.path):
                yield CaseItem.create(self, case)
        except BaselineError as error:
            raise self.CollectError(str(error)) from error
