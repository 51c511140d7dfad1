"""Comparison of two runs: changed verdicts, larger errors and longer durations.

A *case* is one call of a function with its expected results. The *budget* of a result is the largest error it may have.
The *ratio* of a case is its largest error divided by the budget, so that cases of all functions can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import final

from diopi_proto.messages import pluralize
from diopi_test.execution.verdict import OPTIONAL, UNSUCCESSFUL, Verdict
from diopi_test.results.numerics import NumericsInfo
from diopi_test.results.pooling import is_pooled
from diopi_test.results.records import SCHEMA_VERSION, BaselineInfo, CaseRecord, Report, VendorInfo

SUCCESSFUL = frozenset({Verdict.passed, Verdict.waived})
"""The verdicts of cases that do not count against the vendor."""

FACTOR = 2.0
"""The default factor by which the error / budget of a case, or the duration of a function, must grow to be reported."""

LEAST_RATIO = 0.1
"""An error / budget below this number is not reported, however much it grew, because it is far from a failure."""

LEAST_SECONDS = 1.0
"""The shortest total duration of a function's cases, in seconds, for which a slowdown is reported.

This limit applies to functions without timed calls. Shorter durations vary too much between runs.
"""

LEAST_TIMED = 20e-6
"""The smallest increase of a function's total timed duration, in seconds, that is reported as a slowdown."""


class OutcomeChange(StrEnum):
    """The kinds of change between the outcomes of a case in two runs.

    Attributes:
        broken: the case passed or was waived in the first run and neither in the second; or it failed only in the
            second run.
        fixed: the case passed or was waived in the second run, and neither in the first.
        otherwise: the verdict changed in another way.
        new: only the second run has the case.
        gone: only the first run has the case.
    """

    broken = "broken"
    fixed = "fixed"
    otherwise = "otherwise"
    new = "new"
    gone = "gone"


@final
@dataclass(frozen=True, kw_only=True)
class ChangedCase:
    """A case whose outcome changed.

    Attributes:
        id: the ID of the case.
        change: the kind of the change.
        before, after: the verdicts; None if the run did not include the case.
        message: the message of the second run, or of the first run if the second one does not include the case.
        counts: whether the case affects conformance, by the options of the second run.
    """

    id: str
    change: OutcomeChange
    before: Verdict | None
    after: Verdict | None
    message: str
    counts: bool


@final
@dataclass(frozen=True)
class LessAccurate:
    """A case that passed in both runs and uses more of its error budget in the second run.

    Attributes:
        id: the ID of the case.
        before, after: the largest error / budget in the first and in the second run.
    """

    id: str
    before: float
    after: float


@final
@dataclass(frozen=True, kw_only=True)
class Slower:
    """A function whose calls took longer in the second run.

    Attributes:
        function: the function.
        before, after: the seconds for its cases in the first and in the second run.
        timed: whether the times cover only the calls, because both runs measured them.
    """

    function: str
    before: float
    after: float
    timed: bool = field(default=False, metadata=OPTIONAL)

    @property
    def in_words(self) -> tuple[str, str]:
        """Return both times with their unit."""
        before, after = (
            f"{seconds * 1e6:.1f} µs" if self.timed else f"{seconds:.2f} s" for seconds in (self.before, self.after)
        )
        return before, after


@final
@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """One of the compared runs.

    Attributes:
        vendor: the vendor under test.
        baseline: the level and the digest of the baseline.
        numerics: the declared arithmetic for which the results were evaluated.
        incomplete: whether some cases have no verdict.
        errors: the errors of the run, and damage to its log.
    """

    vendor: VendorInfo
    baseline: BaselineInfo
    numerics: NumericsInfo
    incomplete: bool
    errors: tuple[str, ...] = field(default=(), metadata=OPTIONAL)

    @classmethod
    def from_report(cls, report: Report) -> RunInfo:
        """Return the description of the run of a report."""
        return cls(
            vendor=report.vendor,
            baseline=report.baseline,
            numerics=report.numerics,
            incomplete=report.summary.incomplete,
            errors=report.errors,
        )

    @property
    def title(self) -> str:
        """Return the vendor with its version, and the declared arithmetic unless it is IEEE 754."""
        return f"{self.vendor.title}{self.numerics.qualifier}"


@final
@dataclass(frozen=True, kw_only=True)
class ReportComparison:
    """The comparison of two runs.

    Attributes:
        schema_version: the version of the JSON format of reports and comparisons.
        before, after: the first and the second run.
        same: the number of cases with the same outcome in both runs.
        cases: the cases with different outcomes, sorted by ID.
        less_accurate: the cases that use more of their budget, by the factor of the increase.
        slower: the functions that took longer, by the factor of the increase.
        selections_differ: whether both runs are complete and used the same baseline, but selected different cases.
    """

    schema_version: int
    before: RunInfo
    after: RunInfo
    same: int
    cases: tuple[ChangedCase, ...]
    less_accurate: tuple[LessAccurate, ...]
    slower: tuple[Slower, ...]
    selections_differ: bool = field(default=False, metadata=OPTIONAL)

    def cases_with(self, change: OutcomeChange) -> Sequence[ChangedCase]:
        """Return the cases with this change."""
        return [case for case in self.cases if case.change is change]

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of entries by kind, as reports display them.

        The keys are the kinds of change in the order of `OutcomeChange`, `less accurate`, `slower`, and `alike` for the
        cases with the same outcome in both runs.
        """
        accuracy = {"less accurate": len(self.less_accurate), "slower": len(self.slower)}
        return {change: len(self.cases_with(change)) for change in OutcomeChange} | accuracy | {"alike": self.same}

    @property
    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each reason why the comparison may be misleading; different numerics come first."""
        if self.numerics_differ:
            yield (
                f"the runs have different declared numerics: {self.before.numerics.title} before, "
                f"{self.after.numerics.title} after; their error budgets differ, so a changed outcome says nothing "
                "about the vendor's accuracy, and accuracy is not compared"
            )
        if self.selections_differ:
            before, after = len(self.cases_with(OutcomeChange.gone)), len(self.cases_with(OutcomeChange.new))
            yield (
                f"the runs have different selections: {pluralize(before, 'case')} only before, {after:,} only after; "
                "new and gone cases say nothing about the vendor"
            )
        if self.before.baseline != self.after.baseline:
            yield "the baselines differ: cases with the same ID may be different cases"
        for name, run in (("before", self.before), ("after", self.after)):
            if run.incomplete:
                yield f"the run {name} is incomplete: cases that are gone, or new, may not have been run"
            yield from (f"the run {name} has an error: {error}" for error in run.errors)

    @property
    def numerics_differ(self) -> bool:
        """Return whether the results of the runs were evaluated for different arithmetic."""
        return self.before.numerics.digest != self.after.numerics.digest

    @property
    def exit_status(self) -> int:
        """Return 1 if a case that affects conformance is broken, else 3 if one of the runs has errors, else 0."""
        if any(case.counts for case in self.cases_with(OutcomeChange.broken)):
            return 1
        return 3 if self.before.errors or self.after.errors else 0


def compare(before: Report, after: Report, factor: float = FACTOR) -> ReportComparison:
    """Compare two runs.

    Args:
        before: The report of the first run.
        after: The report of the second run.
        factor: The factor by which the error / budget of a case, or the duration of a function, must grow to be
            reported.

    Returns:
        The comparison. If the runs have different declared numerics, accuracy is not compared.
    """
    old, new = _add_passed_pools(*({case.id: case for case in report.cases} for report in (before, after)))
    changed = [_changed(old.get(name), new.get(name), after) for name in sorted({*old, *new})]
    pairs = [(old[name], new[name]) for name in old if name in new]
    comparable = pairs if before.numerics.digest == after.numerics.digest else []
    changed_cases = tuple(case for case in changed if case is not None)
    return ReportComparison(
        schema_version=SCHEMA_VERSION,
        before=RunInfo.from_report(before),
        after=RunInfo.from_report(after),
        same=len(changed) - len(changed_cases),
        cases=changed_cases,
        less_accurate=tuple(sorted(_less_accurate(comparable, factor), key=lambda case: case.before / case.after)),
        slower=tuple(sorted(_slower(pairs, factor), key=lambda case: case.before / case.after)),
        selections_differ=old.keys() != new.keys() and _select_differently(before, after),
    )


def _add_passed_pools(
    old: Mapping[str, CaseRecord], new: Mapping[str, CaseRecord]
) -> tuple[Mapping[str, CaseRecord], Mapping[str, CaseRecord]]:
    """Return the cases of two runs by ID, with additional passed records of pooled errors.

    The suite also tests the errors of all cases of a function together ("pooled"). A run has a record of this test only
    if the function failed. If only one of the runs has such a record, a passed record is added to the other run.
    Without it, the failure would be reported as a new case instead of a broken one.
    """
    return {**_passed_pools(old, new), **old}, {**_passed_pools(new, old), **new}


def _passed_pools(run: Mapping[str, CaseRecord], second: Mapping[str, CaseRecord]) -> Mapping[str, CaseRecord]:
    """Return a passed record for each pooled failure in `second` whose function has a passed case in `run`, by ID."""
    tested = {case.function for case in run.values() if case.verdict is Verdict.passed}
    return {
        name: replace(case, verdict=Verdict.passed, message="")
        for name, case in second.items()
        if is_pooled(name) and case.function in tested
    }


def _select_differently(before: Report, after: Report) -> bool:
    """Return whether different cases can only result from different selections.

    This is true if both runs are complete and used the same baseline.
    """
    is_incomplete = before.summary.incomplete or after.summary.incomplete
    return before.baseline == after.baseline and not is_incomplete


def _changed(old: CaseRecord | None, new: CaseRecord | None, after: Report) -> ChangedCase | None:
    """Return how the outcome of a case changed; None if the verdict is equal, or successful in both runs.

    Args:
        old: The record in the first run; None if the run did not include the case.
        new: The record in the second run; None if the run did not include the case.
        after: The report of the second run, whose options decide whether the case counts.
    """
    last = new or old
    assert last is not None
    was, now = (case.verdict if case else None for case in (old, new))
    if was is now or {was, now} <= SUCCESSFUL:
        return None
    return ChangedCase(
        id=last.id,
        change=_change(was, now),
        before=was,
        after=now,
        message=last.message,
        counts=_counts(last, after),
    )


def _counts(last: CaseRecord, after: Report) -> bool:
    """Return whether a changed case affects conformance by the options of a report.

    A failed case counts if its class affects the exit status and the failure is severe enough. For any other verdict,
    only the class decides.

    Args:
        last: The record of the case in the second run, or in the first run if the second one does not include it.
        after: The report with the options.
    """
    return after.counts(last) if last.verdict in UNSUCCESSFUL else after.decides(last.class_)


def _change(was: Verdict | None, now: Verdict | None) -> OutcomeChange:
    """Return the kind of a change from the verdict `was` to the verdict `now`; None means that a run lacks the case."""
    if was is None:
        return OutcomeChange.new
    if now is None:
        return OutcomeChange.gone
    if now in SUCCESSFUL:
        return OutcomeChange.fixed
    if was in SUCCESSFUL or (now in UNSUCCESSFUL and was not in UNSUCCESSFUL):
        return OutcomeChange.broken
    return OutcomeChange.otherwise


def _less_accurate(pairs: Iterable[tuple[CaseRecord, CaseRecord]], factor: float) -> Iterator[LessAccurate]:
    """Yield the cases that passed in both runs and whose error / budget grew by more than `factor`.

    Args:
        pairs: The records of each case in the first and in the second run.
        factor: The factor.
    """
    for old, new in pairs:
        passed = old.verdict is new.verdict is Verdict.passed
        if passed and new.ratio >= LEAST_RATIO and new.ratio > factor * old.ratio:
            yield LessAccurate(new.id, old.ratio, new.ratio)


def _slower(pairs: Iterable[tuple[CaseRecord, CaseRecord]], factor: float) -> Iterator[Slower]:
    """Yield the functions whose duration grew by more than `factor`.

    If both runs timed calls of a function, only the durations of these calls are compared. Otherwise, the total
    durations of its cases are compared; these include the preparation and evaluation of the calls.

    Args:
        pairs: The records of each case in the first and in the second run.
        factor: The factor.
    """
    totals, timed = _Seconds(), _Seconds()
    for old, new in pairs:
        totals.add(new.function, old.seconds, new.seconds)
        if old.timing and new.timing:
            timed.add(new.function, old.timing.seconds, new.timing.seconds)
    for function, (was, now) in totals.by_function.items():
        if function in timed.by_function:
            was, now = timed.by_function[function]
            if now > factor * was and now - was >= LEAST_TIMED:
                yield Slower(function=function, before=round(was, 9), after=round(now, 9), timed=True)
        elif now >= LEAST_SECONDS and now > factor * was:
            yield Slower(function=function, before=round(was, 3), after=round(now, 3))


@final
class _Seconds:
    """Totals of seconds in the first and in the second run, by function."""

    def __init__(self) -> None:
        self.by_function: dict[str, tuple[float, float]] = {}

    def add(self, function: str, before: float, after: float) -> None:
        """Add the durations of a case in both runs, `before` and `after`, to the totals of its function."""
        was, now = self.by_function.get(function, (0.0, 0.0))
        self.by_function[function] = was + before, now + after
