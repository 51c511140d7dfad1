"""Trends in the history: causes of failures, accuracy, flaky cases, differences between devices, and speed.

A *cause* is a group of failed cases that probably have the same defect. The *ratio* of a function is the largest error
of its passed cases, divided by the largest error that is allowed (the budget). Runs are compared within a `Series`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar, final

from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.reporting.comparison import FACTOR, LEAST_RATIO, LEAST_TIMED
from diopi_test.reporting.history.database import History
from diopi_test.reporting.history.entry import CauseEntry, FunctionEntry, RunEntry

T = TypeVar("T")
"""An element of a sequence."""


@final
@dataclass(frozen=True, kw_only=True)
class RunData:
    """A run with everything that the trends need.

    Attributes:
        number: the number of the run in the database.
        entry: the row of the run.
        functions: the results of its functions by name.
        causes: the causes of its failures by ID.
        cause_functions: the functions with failed or waived cases of each of these causes.
        verdicts: the number of its cases by verdict.
        flaky: the IDs of its flaky cases.
        timings: the duration of each timed call in seconds, by the ID of the case.
    """

    number: int
    entry: RunEntry
    functions: Mapping[str, FunctionEntry]
    causes: Mapping[str, CauseEntry]
    cause_functions: Mapping[str, frozenset[str]]
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

    def has_tested(self, functions: Collection[str]) -> bool:
        """Return whether a case of one of the functions passed or failed."""
        entries = (self.functions[name] for name in functions if name in self.functions)
        return any(entry.passed or entry.unsuccessful for entry in entries)


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """The runs of one vendor at one level (set of cases) with one declared arithmetic.

    Attributes:
        vendor: the name of the vendor.
        level: the name of the level.
        numerics: the declared arithmetic, as `RunEntry.numerics` states it.
        runs: the runs, oldest first; at least one.
    """

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
        is_tested: whether each run tested at least one of the functions that had the cause in any run.
        devices: the name of the device of each run.

    All sequences have one element per run of the series, oldest first.
    """

    cause: CauseEntry
    cases: Sequence[int]
    waived: Sequence[int]
    is_tested: Sequence[bool]
    devices: Sequence[str]

    @property
    def tested_cases(self) -> Sequence[int | None]:
        """Return the number of failed cases without a waiver in each run; None if the run did not test the cause."""
        pairs = zip(self.cases, self.is_tested, strict=True)
        return [cases if is_tested else None for cases, is_tested in pairs]

    @property
    def states(self) -> Mapping[str, str]:
        """Return the state of the cause by device; each state is one of `STATES`."""
        runs: dict[str, list[tuple[int, int, bool]]] = defaultdict(list)
        for device, cases, waived, is_tested in zip(self.devices, self.cases, self.waived, self.is_tested, strict=True):
            runs[device].append((cases, waived, is_tested))
        return {device: _state(of_device) for device, of_device in runs.items()}

    @property
    def state(self) -> str:
        """Return the most severe state on any device: the one that comes first in `STATES`."""
        return min(self.states.values(), key=STATES.index)

    @property
    def latest(self) -> tuple[int, int] | None:
        """Return the numbers of failed and of waived cases in the latest run of the device with the most failed cases.

        Only the latest run of each device counts, and only if it tested the cause. If there is no such run, return
        None.
        """
        runs = zip(self.devices, self.cases, self.waived, self.is_tested, strict=True)
        latest = {device: (cases, waived, is_tested) for device, cases, waived, is_tested in runs}
        return max(((cases, waived) for cases, waived, is_tested in latest.values() if is_tested), default=None)


STATES = ("present", "new", "waived", "gone", "not_run")
"""The states of a cause on a device. If the state differs between devices, the one that comes first here counts.

- `present`: the latest run has failed cases of the cause without a waiver.
- `new`: as `present`, but the previous run that tested the cause had neither failed nor waived cases of the cause.
- `waived`: the latest run has only waived cases of the cause.
- `gone`: the latest run tested the functions of the cause, and no case has it.
- `not_run`: the latest run did not test these functions.
"""


def _state(runs: Sequence[tuple[int, int, bool]]) -> str:
    """Return the state of a cause on one device.

    Args:
        runs: For each run on the device, oldest first: the number of failed cases without a waiver, the number of
            waived cases, and whether the run tested the cause.

    Returns:
        One of `STATES`.
    """
    cases, waived, is_tested = runs[-1]
    if not is_tested:
        return "not_run"
    if cases:
        earlier = [bool(failed or allowed) for failed, allowed, was_tested in runs[:-1] if was_tested]
        return "new" if earlier and not earlier[-1] else "present"
    return "waived" if waived else "gone"


@final
@dataclass(frozen=True, kw_only=True)
class AccuracyDrift:
    """A function whose largest error / budget grew on one device.

    Attributes:
        function: the name of the function.
        place: the device of the latest run that measured the function, with its driver and host.
        ratios: the ratio in each run on the device, oldest first; None if the run did not measure the function.
        before: the median ratio in the older half of the runs before the latest one.
        after: the ratio in the latest run that measured the function.
        case: the ID of the case with this ratio.
    """

    function: str
    place: str
    ratios: Sequence[float | None]
    before: float
    after: float
    case: str


@final
@dataclass(frozen=True, kw_only=True)
class FlakyCase:
    """A case that was flaky in at least one run: it failed, and passed when it was repeated.

    Attributes:
        case: the ID of the case.
        flaky: the number of runs in which it was flaky.
        runs: the number of runs that include cases of its function.
        last: the start of the last run in which it was flaky, as ISO 8601.
    """

    case: str
    flaky: int
    runs: int
    last: str


@final
@dataclass(frozen=True, kw_only=True)
class PlaceDifference:
    """A function whose results differ between devices, drivers or hosts.

    A place is a device with its driver and host. The order of the places is that of `latest_by_place`.

    Attributes:
        function: the name of the function.
        ratios: the largest error / budget at each place; None where it was not measured.
        unsuccessful: the number of unsuccessful cases at each place; None where the function was not tested.
    """

    function: str
    ratios: Sequence[float | None]
    unsuccessful: Sequence[int | None]


@final
@dataclass(frozen=True, kw_only=True)
class SpeedChange:
    """A function whose timed calls take longer than in earlier runs on the same device.

    Attributes:
        function: the name of the function.
        place: the device with its driver and host.
        before: the total duration in seconds, in an earlier run, of the calls that both runs timed.
        after: the total duration in seconds of the same calls in the latest run.
    """

    function: str
    place: str
    before: float
    after: float


def read_series(history: History, vendor: str = "", level: str = "") -> Sequence[Series]:
    """Read runs from the history and group them into series.

    Args:
        history: The history.
        vendor: Only runs of the vendor with this name; empty for all.
        level: Only runs of this level; empty for all.

    Returns:
        The series, sorted by vendor, level and declared arithmetic.
    """
    grouped: dict[tuple[str, str, str], list[RunData]] = defaultdict(list)
    for number, entry in history.runs(vendor, level).items():
        grouped[entry.vendor, entry.level, entry.numerics].append(_run_data(history, number, entry))
    return [
        Series(vendor=name, level=of_level, numerics=numerics, runs=runs)
        for (name, of_level, numerics), runs in sorted(grouped.items())
    ]


def _run_data(history: History, number: int, entry: RunEntry) -> RunData:
    """Return everything that the trends need about a run, from the database.

    Args:
        history: the database.
        number: the number of the run.
        entry: the entry of the run.
    """
    return RunData(
        number=number,
        entry=entry,
        functions=history.functions(number),
        causes=history.causes(number),
        cause_functions=history.cause_functions(number),
        verdicts=history.verdicts(number),
        flaky=history.flaky(number),
        timings=history.timings(number),
    )


def cause_trends(series: Series) -> Sequence[CauseTrend]:
    """Return the trend of each cause that any run of a series has.

    The causes with the most failed cases in the latest runs come first, then those with the most waived cases.
    """
    latest: dict[str, CauseEntry] = {}
    functions: dict[str, set[str]] = defaultdict(set)
    for run in series.runs:
        latest.update(run.causes)
        for cause, names in run.cause_functions.items():
            functions[cause].update(names)
    trends = [
        CauseTrend(
            cause=cause,
            cases=[entry.cases if entry else 0 for entry in entries],
            waived=[entry.waived if entry else 0 for entry in entries],
            is_tested=[name in run.causes or run.has_tested(functions[name]) for run in series.runs],
            devices=[run.entry.device_name for run in series.runs],
        )
        for name, cause in latest.items()
        for entries in [[run.causes.get(name) for run in series.runs]]
    ]
    return sorted(trends, key=_rank)


def _rank(trend: CauseTrend) -> tuple[int, int, int, str]:
    """Return the sort key of a trend in `cause_trends`: failed, waived and past cases, all negated, then the ID."""
    failed, waived = trend.latest or (0, 0)
    return -failed, -waived, -max(trend.cases), trend.cause.cause


def _with_latest_baseline(series: Series) -> Sequence[RunData]:
    """Return the runs with the baseline of the latest run, oldest first."""
    return [run for run in series.runs if run.entry.baseline == series.latest.entry.baseline]


def _group_by(runs: Sequence[RunData], name: Callable[[RunEntry], str]) -> Mapping[str, Sequence[RunData]]:
    """Return the runs grouped by `name(entry)`, the oldest run of each group first."""
    groups: dict[str, list[RunData]] = defaultdict(list)
    for run in runs:
        groups[name(run.entry)].append(run)
    return groups


def _older_half(values: Sequence[T]) -> Sequence[T]:
    """Return the first half of a sequence, including the middle element.

    If a value drifts slowly, the previous runs have almost drifted as far as the latest one. The latest value is
    therefore compared with the older half of the values only.
    """
    return values[: (len(values) + 1) // 2]


def accuracy_drifts(series: Series) -> Sequence[AccuracyDrift]:
    """Return the functions whose ratio is much larger than before on the same device, the largest increase first.

    Only runs with the baseline of the latest run are compared. The ratio must be at least `LEAST_RATIO`, and more than
    `FACTOR` times the median of the older half of the earlier runs.
    """
    by_device = _group_by(_with_latest_baseline(series), lambda entry: entry.device_name)
    drifts = (drift for runs in by_device.values() for drift in _drifts(runs))
    return sorted(drifts, key=lambda drift: (drift.before / drift.after, drift.function, drift.place))


def _drifts(runs: Sequence[RunData]) -> Iterator[AccuracyDrift]:
    """Yield the functions whose accuracy became worse, for runs on one device, oldest first."""
    for name in sorted({name for run in runs for name in run.functions}):
        ratios = [_ratio(run, name) for run in runs]
        measured = [(ratio, run) for ratio, run in zip(ratios, runs, strict=True) if ratio is not None]
        if len(measured) < 2 or measured[-1][0] < LEAST_RATIO:
            continue
        latest_ratio, latest = measured[-1]
        median_before = median(ratio for ratio, _ in _older_half(measured[:-1]))
        if latest_ratio > FACTOR * median_before:
            case = latest.functions[name].ratio_case
            place = latest.entry.place
            yield AccuracyDrift(
                function=name, place=place, ratios=ratios, before=median_before, after=latest_ratio, case=case
            )


def _ratio(run: RunData, function: str) -> float | None:
    """Return the ratio of a function in a run; None if the run did not measure it."""
    return run.functions[function].ratio if function in run.functions else None


def rank_flaky_cases(series: Series) -> Sequence[FlakyCase]:
    """Return the flaky cases, sorted by the share of runs in which they were flaky, the largest share first."""
    counts = Counter(case for run in series.runs for case in run.flaky)
    cases = [
        FlakyCase(
            case=case,
            flaky=flaky,
            runs=sum(case.partition("[")[0] in run.functions for run in series.runs),
            last=max(run.entry.started for run in series.runs if case in run.flaky),
        )
        for case, flaky in counts.items()
    ]
    return sorted(cases, key=lambda entry: (-entry.flaky / entry.runs, -entry.flaky, entry.case))


def latest_by_place(series: Series) -> Mapping[str, Mapping[str, FunctionEntry]]:
    """Return the latest results of each function by place (device, driver and host) and by name of the function.

    Only runs with the baseline of the latest run are used.
    """
    return {
        place: {name: function for run in runs for name, function in run.functions.items()}
        for place, runs in _group_by(_with_latest_baseline(series), lambda entry: entry.place).items()
    }


def place_differences(series: Series) -> Sequence[PlaceDifference]:
    """Return the functions whose latest results differ between places, sorted by name."""
    results = list(latest_by_place(series).values())
    names = sorted({name for functions in results for name in functions})
    rows = (
        PlaceDifference(
            function=name,
            ratios=[entry and entry.ratio for entry in entries],
            unsuccessful=[entry and entry.unsuccessful for entry in entries],
        )
        for name in names
        for entries in [[functions.get(name) for functions in results]]
    )
    return [row for row in rows if _differs(row)]


def _differs(row: PlaceDifference) -> bool:
    """Return whether a function has different numbers of failures at two places, or much larger errors at one."""
    counts = {number for number in row.unsuccessful if number is not None}
    ratios = [ratio for ratio in row.ratios if ratio is not None]
    has_other_ratio = len(ratios) > 1 and max(ratios) >= LEAST_RATIO and max(ratios) > FACTOR * min(ratios)
    return len(counts) > 1 or has_other_ratio


def speed_changes(series: Series) -> Sequence[SpeedChange]:
    """Return the functions whose timed calls became slower on a device by more than `FACTOR`, the slowest first."""
    by_device = _group_by([run for run in series.runs if run.timings], lambda entry: entry.device_name)
    changes = (change for runs in by_device.values() for change in _slower(runs))
    return sorted(changes, key=lambda change: (change.before / change.after, change.function, change.place))


def _slower(runs: Sequence[RunData]) -> Iterator[SpeedChange]:
    """Yield the functions whose timed calls became slower, for timed runs on one device, oldest first.

    The latest run is compared with each run of the older half of the earlier runs. A comparison uses only the calls
    that both runs timed. The median of the quotients decides.
    """
    timings: dict[str, list[dict[str, float]]] = defaultdict(list)
    places: dict[str, str] = {}
    for run in runs:
        by_function: dict[str, dict[str, float]] = defaultdict(dict)
        for case, seconds in run.timings.items():
            by_function[case.partition("[")[0]][case] = seconds
        for function, cases in by_function.items():
            timings[function].append(cases)
            places[function] = run.entry.place
    for function, (*earlier, latest) in timings.items():
        times = [
            (sum(before[case] for case in common), sum(latest[case] for case in common))
            for before in earlier
            if (common := [case for case in before if before[case] and case in latest])
        ]
        if not times:
            continue
        older = sorted(_older_half(times), key=lambda pair: pair[1] / pair[0])
        was, now = older[(len(older) - 1) // 2]
        if now > FACTOR * was and now - was >= LEAST_TIMED:
            yield SpeedChange(function=function, place=places[function], before=was, after=now)
