"""`RunOptions`: the options of a run, and the command lines that repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diopi_impl import find_numerics
from diopi_test.results.causes.severity import Severity
from diopi_test.results.former_versions import current_check_name
from diopi_test.results.log import LogWriter
from diopi_test.results.records import BaselineInfo
from diopi_test.run.limits import (
    DEFAULT_CHAIN_LENGTH,
    DEFAULT_MAX_LOST,
    DEFAULT_SOAK_CALLS,
    DEFAULT_TIMEOUT,
    SOAK_SHARE,
    CaseOptions,
    Limits,
)
from diopi_test.run.origin import describe_origin
from diopi_test.run.recorder import Header, Recorder
from diopi_test.run.selection import EXCLUSION_PREFIX, Selection, check_names, is_named
from diopi_test.run.source import CaseSource

SELECT_ALL = Selection()
"""All cases, in the order of the files."""

NEGATIVE_CHECKS = ("refused", "untouched")
"""Checks of negative tests only."""

CHAIN_CHECKS = ("in_flight",)
"""Checks of calls in flight only."""

SOAK_CHECKS = ("soak", "growth")
"""Checks of soak tests only."""

CONVERSIONS = ("nhwc", "int32_indices")
"""The options of a run that are also names of conversions in `diopi_test.execution.conversions`."""


def rename_check(name: str) -> str:
    """Return the current name of a check that may have its name of an older version; a prefix `no-` is kept."""
    prefix = EXCLUSION_PREFIX if name.startswith(EXCLUSION_PREFIX) else ""
    check = name.removeprefix(EXCLUSION_PREFIX)
    return prefix + current_check_name(check)


def known_checks() -> list[str]:
    """Return the names of all checks, in the order of the report."""
    from diopi_test.checks import CHECKS, CHECKS_OF_RELEASE, COMPARISONS

    checks = (*CHECKS, *CHECKS_OF_RELEASE, *COMPARISONS)
    return [*(check.__module__.rpartition(".")[2] for check in checks), *CHAIN_CHECKS, *SOAK_CHECKS, *NEGATIVE_CHECKS]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run. Raises SelectionError if a check is not known.

    Attributes:
        vendor: as `diopi_impl.find_vendor` takes it.
        level: the level of the baseline.
        data: the folder of the baselines; None for the baseline in the package or in the user's cache.
        selection: the selected cases and their order.
        workers: number of processes.
        timeout: seconds a case may take.
        memory: MiB of memory that a worker may use; None for any number.
        max_lost: the number of cases of a function that may crash, hang or run out of memory. After that, the remaining
            cases of the function are not run.
        max_failures: after how many failures that count the run stops, see `FailurePolicy.counts`; None for never.
        stop_after_identical: after how many identical failures in a row the run stops, see `IdenticalFailures`.
        checks: the names of the enabled checks; the prefix `no-` disables a check; empty for all checks.
        nhwc, int32_indices: the conversions to apply to each case, see `diopi_test.execution.conversions`.
        waivers: files of waivers.
        numerics: the name or the file of the declared arithmetic; None for the arithmetic that the vendor declares.
        check_numerics: whether to compare the declared arithmetic with measurements at the end of the run; None to do
            so if it is not IEEE 754.
        dump: the folder to which failed cases are written; None to write none.
        dask: the address of the scheduler of the Dask cluster that runs the cases; None for this machine.
        huge: whether to run the cases of the level with tensors in a storage of more than 2^31 bytes.
        strict: whether a vendor conforms only if no case fails, whatever its class and severity are.
        fail_on: the least severity of failed cases that affect the exit status, unless `strict` is set.
        in_flight: the maximum number of calls of a chain, whose calls are in flight at the same time; 0 omits all
            chains.
        soak: the number of calls of the soak test of each function; 0 omits all soak tests.
        perf: whether to time the calls of cases that pass.
        device, driver: the device under test and the version of its driver, for the report.
        commit: the revision of the vendor's sources, for the report.
    """

    vendor: str
    level: str = "smoke"
    data: Path | None = None
    selection: Selection = SELECT_ALL
    workers: int = 1
    timeout: float = DEFAULT_TIMEOUT
    memory: int | None = None
    max_lost: int = DEFAULT_MAX_LOST
    max_failures: int | None = None
    stop_after_identical: int | None = None
    checks: tuple[str, ...] = ()
    nhwc: bool = False
    int32_indices: bool = False
    waivers: tuple[Path, ...] = ()
    numerics: str | None = None
    check_numerics: bool | None = None
    dump: Path | None = None
    dask: str | None = None
    huge: bool = False
    strict: bool = False
    in_flight: int = DEFAULT_CHAIN_LENGTH
    soak: int = DEFAULT_SOAK_CALLS
    perf: bool = False
    device: str = ""
    driver: str = ""
    commit: str = ""
    fail_on: Severity = Severity.major

    def __post_init__(self) -> None:
        object.__setattr__(self, "checks", tuple(map(rename_check, self.checks)))
        check_names("--check", "checks", self.checks, known_checks)

    @property
    def limits(self) -> Limits:
        """Return the resources that the cases may use."""
        return Limits(self.timeout, self.memory << 20 if self.memory else None, self.max_lost)

    @property
    def execution(self) -> CaseOptions:
        """Return the options that concern the execution of single cases.

        Raises:
            NumericsError: The declaration of the arithmetic is missing or invalid.
        """
        from diopi_test.cases.selection import LEVELS

        enabled_checks = tuple(name for name in known_checks() if is_named(name, self.checks)) if self.checks else None
        conversions = tuple(name for name in CONVERSIONS if getattr(self, name))
        return CaseOptions(
            enabled_checks=enabled_checks,
            conversions=conversions,
            dump=self.dump,
            perf=self.perf,
            in_flight=self.in_flight,
            soak_calls=self.soak,
            soak_seconds=self.timeout * SOAK_SHARE,
            draws_inputs=LEVELS[self.level].is_drawn,
            numerics=None if self.numerics is None else find_numerics(self.numerics),
        )

    @property
    def source(self) -> CaseSource:
        """Return where the cases come from, and which of them are selected."""
        return CaseSource(
            level=self.level,
            data=self.data,
            selection=self.selection,
            huge=self.huge,
            int32_indices=self.int32_indices,
            in_flight=self.in_flight,
            soak=self.soak,
        )

    def header(self, digest: str = "") -> Header:
        """Return the header of the log of a run that begins now.

        Args:
            digest: The digest of the baseline; empty if it is not known yet.
        """
        return Header.create(
            command=self.command(),
            vendor=self.vendor,
            baseline=BaselineInfo(self.level, digest),
            seed=self.selection.seed,
            sample=self.selection.sample,
            strict=self.strict,
            fail_on=self.fail_on,
            origin=describe_origin(self.workers, device=self.device, driver=self.driver, commit=self.commit),
        )

    def recorder(self, log: LogWriter) -> Recorder:
        """Return a recorder of this run."""
        return Recorder(log, self.header(), self.command_of)

    def command(self) -> str:
        """Return a command line that repeats the run in one process, with the cases in the same order."""
        limits = (("--max-failures", self.max_failures), ("--stop-after-identical", self.stop_after_identical))
        words = [word for option, value in limits if value is not None for word in (option, str(value))]
        if self.check_numerics is not None:
            words.append("--check-numerics" if self.check_numerics else "--no-check-numerics")
        return shlex.join([*self._words(), *words, *self.selection.words(), "-n", "1"])

    def command_of(self, case: str) -> str:
        """Return a command line that repeats one case."""
        return shlex.join([*self._words(), *Selection(seed=self.selection.seed).words(), "--case", case])

    def _words(self) -> list[str]:
        """Return the words that both command lines begin with: everything that affects a case."""
        return [word for pair in self._options() for word in pair]

    def _options(self) -> Iterator[tuple[str, ...]]:
        """Yield the words of the command, an option and its value together. Defaults are omitted."""
        yield "diopi-test", "run", "--vendor", self.vendor, "--level", self.level
        optional = (
            ("--data", self.data),
            ("--timeout", self.timeout if self.timeout != DEFAULT_TIMEOUT else None),
            ("--memory", self.memory),
            ("--numerics", self.numerics),
            ("--in-flight", self.in_flight if self.in_flight != DEFAULT_CHAIN_LENGTH else None),
            ("--soak", self.soak if self.soak != DEFAULT_SOAK_CALLS else None),
            ("--max-crashes", self.max_lost if self.max_lost != DEFAULT_MAX_LOST else None),
        )
        yield from ((option, str(value)) for option, value in optional if value is not None)
        yield from (("--check", check) for check in self.checks)
        yield from ((f"--{name.replace('_', '-')}",) for name in CONVERSIONS if getattr(self, name))
        yield from (("--waivers", str(path)) for path in self.waivers)
        if self.huge:
            yield ("--huge",)
        if self.strict:
            yield ("--strict",)
        if self.fail_on is not Severity.major:
            yield "--fail-on", self.fail_on.value
        if self.perf:
            yield ("--perf",)
