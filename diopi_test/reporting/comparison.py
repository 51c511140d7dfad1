"""What became better or worse from one run to another, case by case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import final

from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.harness.records import SCHEMA_VERSION, BaselineInfo, CaseRecord, Report, VendorInfo

RIGHT = frozenset({Verdict.passed, Verdict.waived})

FACTOR = 2.0
"""How many times as much of its budget a case uses, or as long a function takes, to be told."""

LEAST_RATIO = 0.1
"""Error / budget below which nobody asks where it comes from."""

LEAST_SECONDS = 1.0
"""Time of a function's cases below which a factor means nothing."""


class Change(StrEnum):
    """What became of a case."""

    broken = "broken"
    fixed = "fixed"
    otherwise = "otherwise"
    new = "new"
    gone = "gone"


@final
@dataclass(frozen=True)
class ChangedCase:
    """A case that ended otherwise.

    Attributes:
        before, after: how it ended; None where it was not run.
        message: what the run after says of it, or the one before if it is gone.
        counts: whether it decides about conformance in the run after.
    """

    id: str
    change: Change
    before: Verdict | None
    after: Verdict | None
    message: str
    counts: bool


@final
@dataclass(frozen=True)
class LessAccurate:
    """A case that passed in both runs, with a larger part of its budget used; error / budget before and after."""

    id: str
    before: float
    after: float


@final
@dataclass(frozen=True)
class Slower:
    """A function whose cases, those of both runs, took longer; seconds before and after."""

    function: str
    before: float
    after: float


@final
@dataclass(frozen=True)
class RunInfo:
    """One of the runs that are compared."""

    vendor: VendorInfo
    baseline: BaselineInfo
    incomplete: bool


@final
@dataclass(frozen=True)
class Comparison:
    """Two runs compared.

    Attributes:
        same: number of cases that ended alike.
        cases: those that did not, by id.
        less_accurate: by how much more of their budgets they use.
        slower: by how much longer they took.
    """

    schema_version: int
    before: RunInfo
    after: RunInfo
    same: int
    cases: tuple[ChangedCase, ...]
    less_accurate: tuple[LessAccurate, ...]
    slower: tuple[Slower, ...]

    def of(self, change: Change) -> Sequence[ChangedCase]:
        """The cases of which this became."""
        return [case for case in self.cases if case.change is change]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many cases, or functions, of each kind there are."""
        accuracy = {"less accurate": len(self.less_accurate), "slower": len(self.slower)}
        return {change: len(self.of(change)) for change in Change} | accuracy | {"alike": self.same}

    @property
    def warnings(self) -> Iterator[str]:
        """Why the two can't be compared without care."""
        if self.before.baseline != self.after.baseline:
            yield "the baselines are not the same: cases of one name may be different ones"
        for name, run in (("before", self.before), ("after", self.after)):
            if run.incomplete:
                yield f"the run {name} is incomplete: cases that are gone, or new, may not have been run"

    @property
    def exit_status(self) -> int:
        """1 if a case that counts is broken, 0 if none is."""
        return int(any(case.counts for case in self.of(Change.broken)))


def compare(before: Report, after: Report, factor: float = FACTOR) -> Comparison:
    """What changed from one run to another; a `factor` as in `FACTOR`."""
    old, new = ({case.id: case for case in report.cases} for report in (before, after))
    changed = [_changed(old.get(name), new.get(name), after) for name in sorted({*old, *new})]
    both = [(old[name], new[name]) for name in old if name in new]
    told = tuple(case for case in changed if case is not None)
    return Comparison(
        SCHEMA_VERSION,
        RunInfo(before.vendor, before.baseline, before.summary.incomplete),
        RunInfo(after.vendor, after.baseline, after.summary.incomplete),
        len(changed) - len(told),
        told,
        tuple(sorted(_less_accurate(both, factor), key=lambda one: one.before / one.after)),
        tuple(sorted(_slower(both, factor), key=lambda one: one.before / one.after)),
    )


def _changed(old: CaseRecord | None, new: CaseRecord | None, after: Report) -> ChangedCase | None:
    """What became of a case that was run at least once; None if it ended alike."""
    last = new or old
    assert last is not None
    was, now = (case.verdict if case else None for case in (old, new))
    if was is now or {was, now} <= RIGHT:
        return None
    return ChangedCase(last.id, _change(was, now), was, now, last.message, after.decides(last.class_))


def _change(was: Verdict | None, now: Verdict | None) -> Change:
    if was is None:
        return Change.new
    if now is None:
        return Change.gone
    if now in RIGHT:
        return Change.fixed
    if was in RIGHT or (now in UNSUCCESSFUL and was not in UNSUCCESSFUL):
        return Change.broken
    return Change.otherwise


def _less_accurate(both: Iterable[tuple[CaseRecord, CaseRecord]], factor: float) -> Iterator[LessAccurate]:
    for old, new in both:
        passed = old.verdict is new.verdict is Verdict.passed
        if passed and new.ratio >= LEAST_RATIO and new.ratio > factor * old.ratio:
            yield LessAccurate(new.id, old.ratio, new.ratio)


def _slower(both: Iterable[tuple[CaseRecord, CaseRecord]], factor: float) -> Iterator[Slower]:
    seconds: Mapping[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for old, new in both:
        of_function = seconds[new.function]
        of_function[0] += old.seconds
        of_function[1] += new.seconds
    for function, (was, now) in seconds.items():
        if now >= LEAST_SECONDS and now > factor * was:
            yield Slower(function, round(was, 3), round(now, 3))
