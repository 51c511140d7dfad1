"""The plan names what unlocks the next network, and the obstacles come from the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from case_records import case_record, report_of

from diopi_test.results.network_needs import network_needs
from diopi_test.results.planning import BlockedCalls, Needs, Obstacle, ObstacleKind, Stage, plan_stages
from diopi_test.traces.files import load_shipped_trace

ADD, MUL, EXP = (Obstacle(ObstacleKind.function, f"diopi{name}") for name in ("Add", "Mul", "Exp"))
NAN = Obstacle(ObstacleKind.cause, "c1")
CALLS = BlockedCalls(cases=2, calls_per_step=10)


def summarize_stages(stages: Sequence[Stage]) -> list[tuple[list[str], tuple[str, ...]]]:
    """Return the names of the obstacles and the networks of each stage."""
    return [([entry.obstacle.name for entry in stage.obstacles], stage.networks) for stage in stages]


def test_networks_with_few_obstacles_come_first_and_later_stages_need_less() -> None:
    needs: Needs = {
        "large": {ADD: CALLS, MUL: CALLS, NAN: CALLS},
        "small": {NAN: CALLS, MUL: CALLS},
        "done": {},
    }
    assert summarize_stages(plan_stages(needs)) == [
        ([], ("done",)),
        (["c1", "diopiMul"], ("small",)),
        (["diopiAdd"], ("large",)),
    ]


def test_a_stage_unlocks_every_network_whose_obstacles_it_removes() -> None:
    needs: Needs = {"a": {ADD: CALLS}, "b": {ADD: CALLS}, "c": {EXP: CALLS}}
    assert summarize_stages(plan_stages(needs)) == [(["diopiAdd"], ("a", "b")), (["diopiExp"], ("c",))]


def test_obstacles_are_ordered_by_networks_then_cases_then_calls() -> None:
    needs: Needs = {
        "a": {
            ADD: CALLS,
            MUL: BlockedCalls(cases=3, calls_per_step=1),
            EXP: BlockedCalls(cases=2, calls_per_step=11),
            NAN: CALLS,
        },
        "b": {NAN: CALLS, **{Obstacle(ObstacleKind.function, f"diopi{n}"): CALLS for n in range(9)}},
    }
    (first, second) = plan_stages(needs)
    assert [entry.obstacle.name for entry in first.obstacles] == ["c1", "diopiMul", "diopiExp", "diopiAdd"]
    shared = first.obstacles[0]
    assert (shared.networks, shared.cases, shared.calls_per_step) == (("a", "b"), 4, 20)
    assert second.networks == ("b",) and plan_stages({}) == []


def test_the_calls_of_a_network_decide_if_the_run_has_them() -> None:
    calls = load_shipped_trace("alexnet").calls
    records = [case_record(f"{call.function}[{call.label}]", "passed") for call in calls]
    missing, failing, unsupported = calls[0], calls[1], calls[2]
    changed = {0: "not_implemented", 1: "failed", 2: "unsupported"}
    cases = [replace(record, verdict=changed.get(number, "passed")) for number, record in enumerate(records)][:-1]
    report = report_of([case_record(record.id, record.verdict) for record in cases])
    causes = {case.function: case.cause for case in report.cases if case.cause}
    needs = network_needs(report, ["alexnet"])["alexnet"]
    found = {(obstacle.kind.name, obstacle.name.partition(" ")[0]) for obstacle in needs}
    assert found == {
        ("function", missing.function),
        ("cause", causes[failing.function]),
        ("element_type", unsupported.function),
        ("not_run", calls[-1].function),
    }
    assert needs[Obstacle(ObstacleKind.function, missing.function)] == BlockedCalls(
        cases=1, calls_per_step=missing.count
    )
    assert network_needs(report_of(records), ["alexnet"]) == {"alexnet": {}}


def test_the_functions_of_a_network_decide_at_other_levels() -> None:
    functions = sorted(load_shipped_trace("alexnet").functions)
    records = [case_record(f"{name}[float32-a]", "passed") for name in functions[2:]]
    report = report_of(
        [
            *records,
            case_record(f"{functions[0]}[float32-a]", "not_implemented"),
            case_record(f"{functions[1]}[float32-a]", "failed"),
            case_record(f"{functions[1]}[float16-a]", "unsupported"),
        ]
    )
    found = {(entry.kind.name, entry.name) for entry in network_needs(report, ["alexnet"])["alexnet"]}
    (cause,) = report.causes
    assert found == {("function", functions[0]), ("cause", cause.id)}
