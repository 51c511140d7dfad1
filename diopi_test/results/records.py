"""The report and its parts: the content of `diopi-test run --json`, described in docs/report.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from diopi_impl import Claim, OperatorOverride, OperatorUse, Waiver
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import EXECUTED, OPTIONAL, UNSUCCESSFUL, CheckResult, Verdict
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.severity import Severity
from diopi_test.results.declaration_check import DeclarationCheck
from diopi_test.results.numerics import IEEE_INFO, NumericsInfo

SCHEMA_VERSION = 3
"""Version of the report and of the log. It increases when a key is removed or changes its meaning."""

READABLE_VERSIONS = (1, 2, SCHEMA_VERSION)
"""Versions that are read. See `diopi_test.results.former_versions` for the differences."""


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """The outcome of a case.

    Attributes:
        id: `function[label]`.
        function: the standard function that the case calls, or `runtime`.
        label: the name of the case among the cases of the function.
        base: the label of the stored case from which the case is derived; empty if the case itself is stored.
        dtype: the name of the element type under test; empty if there is none.
        class_: the case class, which decides whether conformance depends on the case.
        verdict: how the case ended.
        checks: the results of the checks.
        message: why the case did not pass.
        seconds: the duration of the case in seconds.
        command: a command line that repeats the case; empty until the case is added to the report.
        waived_verdict: the verdict before the waiver was applied; None if the case is not waived.
        timing: the measured duration of the call alone; None unless the case passed in a run with the option `--perf`.
        error_code: the name of the error code that a valid call returned; empty if it returned none.
        preceding_case: for a flaky case, the ID of the case that ran before it in the process in which it failed.
        operators: operators of the vendor's framework that the case was the first to run.
        severity: how bad the failure is; None until the case is added to the report, and for cases that did not fail.
        cause: the ID of the cause; empty until the case is added to the report, and for cases that did not fail.
    """

    id: str
    function: str
    label: str
    base: str
    dtype: str
    class_: CaseClass
    verdict: Verdict
    checks: tuple[CheckResult, ...]
    message: str
    seconds: float
    command: str
    waived_verdict: Verdict | None = field(default=None, metadata=OPTIONAL)
    timing: Timing | None = field(default=None, metadata=OPTIONAL)
    error_code: str = field(default="", metadata=OPTIONAL)
    preceding_case: str = field(default="", metadata=OPTIONAL)
    operators: tuple[OperatorUse, ...] = field(default=(), metadata=OPTIONAL)
    severity: Severity | None = field(default=None, metadata=OPTIONAL)
    cause: str = field(default="", metadata=OPTIONAL)

    @property
    def ratio(self) -> float:
        """Return the largest error / budget of the case's checks; 0 if none measured it."""
        return max((check.ratio or 0.0 for check in self.checks), default=0.0)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Numbers of cases: of all, and of those with each verdict."""

    total: int
    passed: int
    failed: int
    not_implemented: int
    unsupported: int
    waived: int
    crashed: int
    timed_out: int
    out_of_memory: int
    flaky: int

    def number(self, verdicts: Iterable[Verdict]) -> int:
        """Return the number of cases that ended with one of these verdicts."""
        return sum(getattr(self, verdict) for verdict in verdicts)


def count(cases: Iterable[CaseRecord]) -> dict[str, int]:
    """Return the fields of `Counts` for these cases, without the cases that were not run."""
    verdicts = Counter(case.verdict for case in cases)
    counted = [verdict for verdict in Verdict if verdict is not Verdict.not_run]
    return {
        "total": sum(verdicts[verdict] for verdict in counted),
        **{verdict.value: verdicts[verdict] for verdict in counted},
    }


@dataclass(frozen=True, kw_only=True)
class Summary(Counts):
    """Numbers of cases by verdict, and whether the run is complete.

    Attributes:
        collected: the number of selected cases; None if the run ended before they were counted.
        not_run, first_not_run: the number of cases without a verdict, and the IDs of the first ones.
        incomplete, reason: whether the run is incomplete, and why. Cases without a verdict that do not decide
            conformance do not make it incomplete.
        classes: the counts of each class, by the name of the class.
        seconds: the duration of the run in seconds.
    """

    collected: int | None
    not_run: int
    first_not_run: tuple[str, ...]
    incomplete: bool
    reason: str
    classes: Mapping[str, Counts]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class VendorInfo:
    """Name and version of the vendor.

    Attributes:
        name, version: what the vendor states.
        digest: the SHA-256 of the library's file; empty if the vendor is not a compiled library.
        receives_cases: whether it is a test vendor that receives each case with the expected results. Its results are
            no evidence.
        overrides: the operators of the vendor's framework that a library overrides.
    """

    name: str
    version: str
    digest: str = field(default="", metadata=OPTIONAL)
    receives_cases: bool = field(default=False, metadata=OPTIONAL)
    overrides: tuple[OperatorOverride, ...] = field(default=(), metadata=OPTIONAL)

    @property
    def title(self) -> str:
        """Return the name and the version, if there is one."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True)
class BaselineInfo:
    """The baseline of a run.

    Attributes:
        level: the level.
        digest: the digest of all cases; empty if the baseline could not be read.
    """

    level: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The software and hardware of a run.

    Attributes:
        python: the version of Python.
        platform: the operating system.
        machine: the architecture of the CPU, such as `x86_64`.
        cpus: the number of CPUs; None if it is not known.
        packages: the versions of the packages that affect results, by name.
    """

    python: str
    platform: str
    machine: str
    cpus: int | None
    packages: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class RunOrigin:
    """When, where and on which device a run took place.

    Attributes:
        started: the time at which the run began, in UTC, as ISO 8601 with microseconds.
        host: the name of the machine.
        processor: the model of the host's processor.
        workers: the number of workers.
        device, driver: the device under test and the version of its driver, as the user states them; empty if unknown.
        commit: the revision of the vendor's sources; empty if unknown.
    """

    started: str
    host: str
    processor: str
    workers: int
    device: str = field(default="", metadata=OPTIONAL)
    driver: str = field(default="", metadata=OPTIONAL)
    commit: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True)
class Draw:
    """The seed and the sample of a shuffled run.

    Attributes:
        seed: the seed of the order of the cases.
        sample: the number of functions in the random sample, without their derived forms; None if all functions run.
        command: a command line that runs the same cases in the same order in one process.
    """

    seed: int
    sample: int | None
    command: str


@dataclass(frozen=True, kw_only=True)
class Use:
    """A function with one element type and with certain layouts, and the numbers of its cases by verdict.

    Attributes:
        function: the standard function.
        dtype: the element type under test.
        layouts: the names of the layouts of the tensors.
        verdicts: number of cases by verdict.
    """

    function: str
    dtype: Dtype
    layouts: tuple[str, ...]
    verdicts: Mapping[str, int]

    @property
    def works(self) -> bool:
        """Return whether every case of this use passed."""
        return set(self.verdicts) == {Verdict.passed}


@dataclass(frozen=True)
class ClaimsReport:
    """The comparison of a vendor's claims with the results.

    Attributes:
        declared: the claims.
        declared_does_not_work: claimed uses for which at least one case did not pass.
        works_not_declared: uses that are not claimed although all of their cases passed.
    """

    declared: tuple[Claim, ...]
    declared_does_not_work: tuple[Use, ...]
    works_not_declared: tuple[Use, ...]


class WaiverState(Enum):
    """The state of a waiver after a run."""

    used = "it waived cases"
    not_needed = "no case that was run needs it: all pass, have another cause, or another waiver covers them"
    expired = "it would have waived cases, but it has expired"
    exceeded = "it matches failed cases, but does not allow the verdict of any of them"
    matched_nothing = "no case that was run matches its pattern"
    not_tried = "no case of its functions was run, or not the case that shows its cause"


@dataclass(frozen=True, kw_only=True)
class WaiverUse:
    """A waiver or a known flake, and its state after the run.

    Attributes:
        waiver: the waiver; for a known flake, its verdict is `flaky`.
        source: the file that contains the rule, or the vendor.
        retries: how often failed cases are run again; 0 unless the rule is a known flake.
        state: whether the waiver was used, and if not, why.
        matched: the number of cases that the rule matches: by its pattern and, if it names a cause, by the cause.
        waived: the number of cases that the rule waived.
    """

    waiver: Waiver
    source: str
    retries: int
    state: WaiverState
    matched: int
    waived: int


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """Cases that ended better than their waiver allows.

    Attributes:
        pattern: the pattern of the waiver.
        was: the worst verdict that the waiver allows.
        now: how the cases ended.
        number, first: the number of cases, and the IDs of the first ones.
    """

    pattern: str
    was: str
    now: Verdict
    number: int
    first: tuple[str, ...]


@dataclass(frozen=True)
class WaiverReport:
    """The states of all waivers after a run.

    Attributes:
        entries: all waivers, in the order in which they are tried.
        improvements: the cases that ended better than their waivers allow.
    """

    entries: tuple[WaiverUse, ...]
    improvements: tuple[Improvement, ...]

    def in_state(self, state: WaiverState) -> Sequence[WaiverUse]:
        """Return the waivers in this state."""
        return [use for use in self.entries if use.state is state]


@dataclass(frozen=True, kw_only=True)
class ModelReport:
    """Whether a vendor can train a network, and which calls prevent it.

    Attributes:
        name: the name of the network.
        calls: the number of different calls in a training step.
        passed: the number of these calls that passed, are waived, or failed without affecting the exit status.
        not_run: the number of these calls without a verdict.
        failures: for each function with other calls that have a verdict, the worst verdict of these calls.
        not_mapped: PyTorch operators that the network calls and that no standard function implements.
    """

    name: str
    calls: int
    passed: int
    not_run: int
    failures: Mapping[str, Verdict] = field(metadata={"key": "wrong"})
    not_mapped: tuple[str, ...]

    @property
    def trains(self) -> bool:
        """Return whether `passed` includes every call of a training step, and every operator is mapped."""
        return self.passed == self.calls and not self.not_mapped


@dataclass(frozen=True, kw_only=True)
class FamilyConformance:
    """The number of functions of a family that a vendor implements, and that conform. Only cases that count decide.

    Attributes:
        family: the name of the family.
        functions: the number of functions that were tested.
        implemented: the number of functions with an executed case.
        conforming: the number of functions that are implemented and have no failed case.
        not_implemented: the names of the functions that are not implemented.
        not_conforming: the names of the implemented functions with a failed case.
    """

    family: str
    functions: int
    implemented: int
    conforming: int
    not_implemented: tuple[str, ...]
    not_conforming: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of a run.

    Attributes:
        numerics: the declared arithmetic for which the results were evaluated.
        declaration_check: the comparison of the declared arithmetic with measurements; None if the run did not make it.
        shuffle: the seed and the sample; None if all cases ran in order.
        errors: errors of the baseline or of the run, which are not verdicts of cases.
        claims: the comparison of the vendor's claims with the results; None if the vendor claims nothing.
        cases: the records of all cases with a verdict, sorted by ID.
        waivers: the states of the waivers; None if there are none.
        strict: whether all failed cases affect the exit status, whatever their severity and class.
        models: which networks the vendor can train; empty except at the level `models`.
        command: a command line that repeats the run in one process; empty in reports of older versions.
        origin: when and where the run took place; None in reports of older versions.
        families: the conformance of each family with a tested function.
        fail_on: the least severity of failed cases that count, unless `strict` is set.
        causes: the failed cases grouped by what they have in common, the worst cause first.
    """

    schema_version: int
    origin: RunOrigin | None = field(default=None, metadata=OPTIONAL)
    command: str = field(default="", metadata=OPTIONAL)
    vendor: VendorInfo
    proto_version: str
    baseline: BaselineInfo
    numerics: NumericsInfo = IEEE_INFO
    declaration_check: DeclarationCheck | None = field(default=None, metadata=OPTIONAL)
    environment: Environment
    shuffle: Draw | None
    summary: Summary
    errors: tuple[str, ...]
    claims: ClaimsReport | None
    cases: tuple[CaseRecord, ...]
    waivers: WaiverReport | None = field(default=None, metadata=OPTIONAL)
    strict: bool = field(default=False, metadata=OPTIONAL)
    models: tuple[ModelReport, ...] = field(default=(), metadata=OPTIONAL)
    families: tuple[FamilyConformance, ...] = field(default=(), metadata=OPTIONAL)
    fail_on: Severity = field(default=Severity.major, metadata=OPTIONAL)
    causes: tuple[Cause, ...] = field(default=(), metadata=OPTIONAL)

    @property
    def title(self) -> str:
        """Return the vendor with its version, and the declared arithmetic unless it is IEEE 754."""
        return f"{self.vendor.title}{self.numerics.qualifier}"

    @property
    def exit_status(self) -> int:
        """Return the exit status.

        Returns:
            3 after errors, or if the run is incomplete or executed no case; 1 if a case that counts failed; else 0.
        """
        if self.errors or self.summary.incomplete or not self.summary.number(EXECUTED):
            return 3
        return int(any(map(self.counts, self.cases)))

    def counts(self, case: CaseRecord) -> bool:
        """Return whether a case failed and affects the exit status."""
        return case.verdict in UNSUCCESSFUL and affects_status(case, self.fail_on, strict=self.strict)

    @property
    def minor_failures(self) -> tuple[CaseRecord, ...]:
        """Return the failed cases of demanded classes whose severity is too low to affect the exit status."""
        failed = (case for case in self.cases if case.verdict in UNSUCCESSFUL and self.decides(case.class_))
        return tuple(case for case in failed if not self.counts(case))

    def decides(self, class_: CaseClass) -> bool:
        """Return whether cases of a class decide conformance in this run."""
        return self.strict or class_.is_demanded


def affects_status(case: CaseRecord, fail_on: Severity, *, strict: bool) -> bool:
    """Return whether a failed case affects the exit status of a run.

    Args:
        case: The record of the case. A failure without a severity is considered severe.
        fail_on: The least severity that affects the exit status.
        strict: Whether all failed cases affect it.
    """
    is_severe = case.severity is None or case.severity.rank >= fail_on.rank
    return strict or (case.class_.is_demanded and is_severe)


@dataclass(frozen=True)
class PlannedReport:
    """The report of a run of a plan, with the name of the run."""

    name: str
    report: Report


@dataclass(frozen=True)
class PlanReport:
    """The reports of the runs of a plan.

    Attributes:
        schema_version: the version of the format.
        runs: the reports, in the order of the plan.
        seconds: the duration of all runs together.
    """

    schema_version: int
    runs: tuple[PlannedReport, ...]
    seconds: float

    @property
    def exit_status(self) -> int:
        """Return the largest exit status of the runs."""
        return max(run.report.exit_status for run in self.runs)
