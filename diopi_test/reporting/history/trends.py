"""Trends in the history: causes, accuracy, flaky cases, differences between devices, and speed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import final

from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.reporting.comparison import FACTOR, LEAST_RATIO, LEAST_TIMED
from diopi_test.reporting.history.database import History
from diopi_test.reporting.history.entry import CauseEntry, FunctionEntry, RunEntry


@final
@dataclass(frozen=True, kw_only=True)
class RunData:
    """A run with everything that the trends need.

    Attributes:
        number: the number of the run in the database.
        entry: the row of the run.
        functions: the results of its functions by name.
        causes: the causes of its failures by ID.
        verdicts: the number of its cases by verdict.
        flaky: the IDs of its flaky cases.
        timings: the duration of each timed call in seconds, by the ID of the case.
    """

    number: int
    entry: RunEntry
    functions: Mapping[str, FunctionEntry]
    causes: Mapping[str, CauseEntry]
    verdicts: Mapping[Verdict, int]
    flaky: frozenset[str]
    timings: Mapping[str, float]

    @property
    def unsuccessful(self) -> int:
        """Return the number of unsuccessful cases, whether they count or not."""
        return sum(number for verdict, number in self.verdicts.items() if verdict in UNSUCCESSFUL)

    @property
    def failing_causes(self) -> int:
        """Return the number of causes with cases that are not waived."""
        return sum(cause.cases > 0 for cause in self.causes.values())


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """The runs of one vendor at one level with one declared arithmetic, oldest first."""

    vendor: str
    level: str
    numerics: str
    runs: Sequence[RunData]

    @property
    def latest(self) -> RunData:
        """Return the latest run."""
        return self.runs[-1]


@final
@dataclass(frozen=True, kw_only=True)
class CauseTrend:
    """The number of cases of a cause in each run.

    Attributes:
        cause: the entry of the latest run that has the cause.
        cases: the number of failed cases without a waiver in each run.
        waived: the number of waived cases in each run.
    """

    cause: CauseEntry
    cases: Sequence[int]
    waived: Sequence[int]

    @property
    def state(self) -> str:
        """Return `new`, `present`, `waived` or `gone`, from the last two runs."""
        if self.cases[-1]:
            is_new = len(self.cases) > 1 and not self.cases[-2] and not self.waived[-2]
            return "new" if is_new else "present"
        return "waived" if self.waived[-1] else "gone"


@final
@dataclass(frozen=True, kw_only=True)
class AccuracyDrift:
    """A function whose largest error / budget grew.

    Attributes:
        ratios: the ratio in each run; None where the function was not measured with the latest baseline.
        before: the median of the ratios before the latest run.
        after: the ratio of the latest run.
        case: the case with the largest ratio in the latest run.
    """

    function: str
    ratios: Sequence[float | None]
    before: float
    after: float
    case: str


@final
@dataclass(frozen=True, kw_only=True)
class FlakyCase:
    """A flaky case.

    Attributes:
        flaky: the number of runs in which it was flaky.
        runs: the number of runs with cases of its function.
        last: the time of the last run in which it was flaky.
    """

    case: str
    flaky: int
    runs: int
    last: str


@final
@dataclass(frozen=True, kw_only=True)
class PlaceDifference:
    """A function whose results differ between devices, drivers or hosts.

    Attributes:
        ratios: the largest error / budget on each place; None where it was not measured.
        unsuccessful: the number of unsuccessful cases on each place; None where the function was not tested.
    """

    function: str
    ratios: Sequence[float | None]
    unsuccessful: Sequence[int | None]


@final
@dataclass(frozen=True, kw_only=True)
class SpeedChange:
    """A function whose timed calls take longer than in the previous timed run on the same device; in seconds."""

    function: str
    place: str
    before: float
    after: float


def read_series(history: History, vendor: str = "", level: str = "") -> Sequence[Series]:
    """Return the runs by vendor, level and declared arithmetic.

    Args:
        history: The history.
        vendor: Only this vendor; empty for all.
        level: Only this level; empty for all.

    Returns:
        The series, by vendor, level and declared arithmetic.
    """
    grouped: dict[tuple[str, str, str], list[RunData]] = defaultdict(list)
    for number, entry in history.runs(vendor, level).items():
        grouped[entry.vendor, entry.level, entry.numerics].append(_run_data(history, number, entry))
    return [
        Series(vendor=name, level=of_level, numerics=numerics, runs=runs)
        for (name, of_level, numerics), runs in sorted(grouped.items())
    ]


def _run_data(history: History, number: int, entry: RunEntry) -> RunData:
    """Load everything that the trends need about a run."""
    return RunData(
        number=number,
        entry=entry,
        functions=history.functions(number),
        causes=history.causes(number),
        verdicts=history.verdicts(number),
        flaky=history.flaky(number),
        timings=history.timings(number),
    )


def cause_trends(series: Series) -> Sequence[CauseTrend]:
    """Return the causes of all runs: those with most cases in the latest run first, then those with most waived cases.

    Args:
        series: The runs.
    """
    latest: dict[str, CauseEntry] = {}
    for run in series.runs:
        latest.update(run.causes)
    trends = [
        CauseTrend(
            cause=cause,
            cases=[entry.cases if entry else 0 for entry in entries],
            waived=[entry.waived if entry else 0 for entry in entries],
        )
        for name, cause in latest.items()
        for entries in [[run.causes.get(name) for run in series.runs]]
    ]
    return sorted(trends, key=lambda trend: (-trend.cases[-1], -trend.waived[-1], -max(trend.cases), trend.cause.cause))


def accuracy_drifts(series: Series) -> Sequence[AccuracyDrift]:
    """Return the functions whose error / budget in the latest run is much larger than before, by factor.

    Only runs with the baseline of the latest run are compared. The function must use at least a tenth of its budget,
    and more than twice the median of the earlier runs.
    """
    return sorted(_drifts(series), key=lambda drift: (drift.before / drift.after, drift.function))


def _drifts(series: Series) -> Iterator[AccuracyDrift]:
    """Yield functions whose error ratio in the latest run exceeds the median of earlier runs by `FACTOR`."""
    latest = series.latest
    for name, function in latest.functions.items():
        ratios = [_ratio(run, name) if run.entry.baseline == latest.entry.baseline else None for run in series.runs]
        earlier = [ratio for ratio in ratios[:-1] if ratio is not None]
        if function.ratio is None or not earlier or function.ratio < LEAST_RATIO:
            continue
        if function.ratio > FACTOR * (before := median(earlier)):
            yield AccuracyDrift(
                function=name, ratios=ratios, before=before, after=function.ratio, case=function.ratio_case
            )


def _ratio(run: RunData, function: str) -> float | None:
    """Return the largest error ratio of the function in a run."""
    return run.functions[function].ratio if function in run.functions else None


def rank_flaky_cases(series: Series) -> Sequence[FlakyCase]:
    """Return the flaky cases: those that were flaky in the largest share of the runs first."""
    counts = Counter(case for run in series.runs for case in run.flaky)
    found = [
        FlakyCase(
            case=case,
            flaky=flaky,
            runs=sum(case.partition("[")[0] in run.functions for run in series.runs),
            last=max(run.entry.started for run in series.runs if case in run.flaky),
        )
        for case, flaky in counts.items()
    ]
    return sorted(found, key=lambda entry: (-entry.flaky / entry.runs, -entry.flaky, entry.case))


def latest_by_place(series: Series) -> Mapping[str, RunData]:
    """Return the latest run with the latest baseline on each device, driver and host."""
    baseline = series.latest.entry.baseline
    return {run.entry.place: run for run in series.runs if run.entry.baseline == baseline}


def place_differences(series: Series) -> Sequence[PlaceDifference]:
    """Return the functions whose latest results differ between places, in the order of `latest_by_place`."""
    runs = list(latest_by_place(series).values())
    names = sorted({name for run in runs for name in run.functions})
    rows = (
        PlaceDifference(
            function=name,
            ratios=[_ratio(run, name) for run in runs],
            unsuccessful=[run.functions[name].unsuccessful if name in run.functions else None for run in runs],
        )
        for name in names
    )
    return [row for row in rows if _differs(row)]


def _differs(row: PlaceDifference) -> bool:
    """Return whether the results of a function differ between places."""
    counts = {number for number in row.unsuccessful if number is not None}
    ratios = [ratio for ratio in row.ratios if ratio is not None]
    has_other_ratio = len(ratios) > 1 and max(ratios) >= LEAST_RATIO and max(ratios) > FACTOR * min(ratios)
    return len(counts) > 1 or has_other_ratio


def speed_changes(series: Series) -> Sequence[SpeedChange]:
    """Return the functions whose calls take more than twice as long as in the previous timed run, by factor."""
    by_place: dict[str, list[RunData]] = defaultdict(list)
    for run in series.runs:
        if run.timings:
            by_place[run.entry.place].append(run)
    changes = (
        change for place, runs in by_place.items() if len(runs) > 1 for change in _slower(place, runs[-2], runs[-1])
    )
    return sorted(changes, key=lambda change: (change.before / change.after, change.function))


def _slower(place: str, before: RunData, after: RunData) -> Iterator[SpeedChange]:
    """Yield functions whose timed calls took longer than before by `FACTOR`."""
    totals: dict[str, tuple[float, float]] = {}
    for case in before.timings.keys() & after.timings.keys():
        function = case.partition("[")[0]
        was, now = totals.get(function, (0.0, 0.0))
        totals[function] = was + before.timings[case], now + after.timings[case]
    for function, (was, now) in totals.items():
        if now > FACTOR * was and now - was >= LEAST_TIMED:
            yield SpeedChange(function=function, place=place, before=was, after=now)
