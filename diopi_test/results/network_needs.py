"""Derive from the results of a run what prevents networks from working.

An obstacle is something that the vendor has to change before a network works: for example, a function that is not
implemented. `planning.py` orders the obstacles of several networks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from diopi_test.cases.selection import LEVELS
from diopi_test.execution.verdict import Verdict
from diopi_test.results.planning import BlockedCalls, Obstacle, ObstacleKind
from diopi_test.results.records import CaseRecord, Report
from diopi_test.traces.calls import NetworkTrace, TracedCall
from diopi_test.traces.files import load_shipped_trace, model_names


def networks_of_run(report: Report) -> Sequence[str]:
    """Return the names of the networks that a run can evaluate.

    A run of level `models` evaluates the networks with a call in the run. Any other run evaluates all networks, because
    it has cases of functions.
    """
    is_of_models = report.baseline.level in LEVELS and LEVELS[report.baseline.level].models
    return [network.name for network in report.models] if is_of_models else model_names()


def needs_in_runs(reports: Iterable[Report], names: Iterable[str]) -> Mapping[str, Mapping[Obstacle, BlockedCalls]]:
    """Return the obstacles of each network, according to the first run that can evaluate it.

    Args:
        reports: The reports of the runs.
        names: The names of the networks.

    Returns:
        For each network that a run can evaluate, the calls that each obstacle blocks.
    """
    needs: dict[str, Mapping[Obstacle, BlockedCalls]] = {}
    for report in reports:
        contained = set(networks_of_run(report))
        needs |= network_needs(report, [name for name in names if name in contained and name not in needs])
    return needs


def network_needs(report: Report, names: Iterable[str]) -> Mapping[str, Mapping[Obstacle, BlockedCalls]]:
    """Return the obstacles of each network.

    If the run contains cases that are calls of a network (level `models`), only these calls decide. Otherwise, all
    cases of the functions that the network calls decide, and unsupported element types are not obstacles.

    Args:
        report: The report of the run.
        names: The names of the networks.

    Returns:
        For each network, the calls that each obstacle blocks.
    """
    by_id = {case.id: case for case in report.cases}
    by_function: dict[str, list[CaseRecord]] = defaultdict(list)
    for case in report.cases:
        by_function[case.function].append(case)
    return {name: _needs(load_shipped_trace(name), report, by_id, by_function) for name in names}


def _needs(
    network: NetworkTrace,
    report: Report,
    by_id: Mapping[str, CaseRecord],
    by_function: Mapping[str, Sequence[CaseRecord]],
) -> Mapping[Obstacle, BlockedCalls]:
    """Return the obstacles of a network and the calls that each of them blocks.

    Args:
        network: the recorded calls of the network.
        report: the report of the run.
        by_id: the cases of the run by ID.
        by_function: the cases of the run by function.

    Returns:
        The blocked calls by obstacle.
    """
    ids = {f"{call.function}[{call.label}]": call for call in network.calls}
    calls_by_obstacle: dict[Obstacle, list[TracedCall]] = defaultdict(list)
    if any(name in by_id for name in ids):
        for name, call in ids.items():
            for obstacle in _obstacles_of_case(by_id.get(name), call.function, report):
                calls_by_obstacle[obstacle].append(call)
    else:
        for call in network.calls:
            for obstacle in _obstacles_of_function(call.function, by_function.get(call.function, ()), report):
                calls_by_obstacle[obstacle].append(call)
    return {
        obstacle: BlockedCalls(cases=len(calls), calls_per_step=sum(call.count for call in calls))
        for obstacle, calls in calls_by_obstacle.items()
    }


def _obstacles_of_case(case: CaseRecord | None, function: str, report: Report) -> Sequence[Obstacle]:
    """Return the obstacle of a call.

    Args:
        case: the record of the case that makes the call; None if there is none.
        function: the function that is called.
        report: the report of the run.

    Returns:
        A sequence with one obstacle; empty if the case passed or its failure does not count.
    """
    if case is None or case.verdict is Verdict.not_run:
        return [Obstacle(ObstacleKind.not_run, function)]
    if case.verdict is Verdict.not_implemented:
        return [Obstacle(ObstacleKind.function, function)]
    if case.verdict is Verdict.unsupported:
        return [Obstacle(ObstacleKind.element_type, f"{function} ({case.dtype})")]
    return [_failure(case)] if report.counts(case) else []


def _obstacles_of_function(function: str, cases: Sequence[CaseRecord], report: Report) -> Sequence[Obstacle]:
    """Return the obstacles of a function, derived from all of its cases in a run whose classes decide conformance.

    These are the different causes of its failures, or else a single obstacle: the function is not implemented, or no
    case was run. If the vendor implements only some cases, the others are not obstacles.
    """
    tested = [case for case in cases if case.verdict is not Verdict.not_run and report.decides(case.class_)]
    if not tested:
        return [Obstacle(ObstacleKind.not_run, function)]
    if all(case.verdict is Verdict.not_implemented for case in tested):
        return [Obstacle(ObstacleKind.function, function)]
    return sorted({_failure(case) for case in tested if report.counts(case)})


def _failure(case: CaseRecord) -> Obstacle:
    """Return the obstacle of a failed case: its cause, or the function in reports of older versions without causes."""
    if case.cause:
        return Obstacle(ObstacleKind.cause, case.cause)
    return Obstacle(ObstacleKind.failure, case.function)
