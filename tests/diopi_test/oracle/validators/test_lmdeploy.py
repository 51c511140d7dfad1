"""The judge of the engine's sampling: right draws pass, and each way of drawing wrong is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.evaluate import make_baseline_case
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference.lmdeploy.sampling import UPDATED, top_k_draw, top_p_draw
from diopi_test.oracle.validators import Answer, find_validator

Array = np.ndarray[Any, Any]

DRAWS = {"diopiTopKSampling": top_k_draw, "diopiTopPSampling": top_p_draw}


@cache
def case_of(function: str, label: str) -> BaselineCase:
    prototype = lookup(function)
    return make_baseline_case(prototype, next(case for case in select_cases(function, "full") if case.label == label))


def numbers_of(case: BaselineCase, call: int) -> Array:
    """A number of (0, 1] a sequence, by its seed and the call."""
    seeds = case.arguments["generators"]
    return np.array([1 - np.random.default_rng([seed, call]).random() for seed in seeds])


def answered(case: BaselineCase, arguments: Any, numbers: Array, others: bool = True) -> Answer:
    """What is drawn with these numbers in a call with these arguments, as an answer to the case."""
    updated = DRAWS[case.function](arguments)[1](numbers)
    results = {name: value for name, value in zip(UPDATED, updated, strict=True) if value is not None}
    further = {"the next call": answered(case, arguments, numbers_of(case, 1), False)} if others else {}
    return Answer(case.plain_arguments(), results, results, {}, further)


def problems(case: BaselineCase, answer: Answer) -> list[str]:
    return list(find_validator(lookup(case.function))(answer))


@pytest.mark.parametrize("function", DRAWS)
@pytest.mark.parametrize("label", ["sample", "bare", "little", "own-shares", "twins", "ties", "only-cum", "no-ends"])
def test_right_draws_pass(function: str, label: str) -> None:
    case = case_of(function, f"float32-{label}")
    assert problems(case, answered(case, case.plain_arguments(), numbers_of(case, 0))) == []


def other_shares(arguments: dict[str, Any]) -> None:
    arguments["runtime_top_p"] = np.full(len(arguments["logits"]), 0.4)


def all_shares(arguments: dict[str, Any]) -> None:
    arguments["runtime_top_p"] = np.ones(len(arguments["logits"]))


def colder(arguments: dict[str, Any]) -> None:
    arguments["logits"] = 4 * arguments["logits"]


def nobody_ends(arguments: dict[str, Any]) -> None:
    arguments["end_ids"] = np.where(arguments["finished"], arguments["end_ids"], -1)


def no_log_probs(arguments: dict[str, Any]) -> None:
    arguments["cum_log_probs"] = arguments["cum_log_probs"] - 0.001


def another_step(arguments: dict[str, Any]) -> None:
    arguments["step"] = 1


@pytest.mark.parametrize("function", DRAWS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_shares, "a weight is drawn"),
        (all_shares, "tokens that can be drawn"),
        (colder, "a weight is drawn"),
        (nobody_ends, "finished"),
        (no_log_probs, "cum_log_probs"),
        (another_step, "what they were"),
    ],
)
def test_wrong_draws_are_refused(function: str, change: Callable[[dict[str, Any]], None], message: str) -> None:
    case = case_of(function, "float32-sample")
    mistaken = case.plain_arguments()
    change(mistaken)
    found = problems(case, answered(case, mistaken, numbers_of(case, 0)))
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize("function", DRAWS)
def test_numbers_that_are_not_random_are_refused(function: str) -> None:
    case = case_of(function, "float32-sample")
    batch = len(case.arguments["generators"])
    same = answered(case, case.plain_arguments(), np.full(batch, 0.9), False)
    assert any("a weight is drawn" in problem for problem in problems(case, same))
    again = answered(case, case.plain_arguments(), numbers_of(case, 0), False)
    repeated = replace(again, others={"the next call": again})
    assert any("depend on those of the next call" in problem for problem in problems(case, repeated))


@pytest.mark.parametrize("function", DRAWS)
def test_equal_states_draw_equal_tokens(function: str) -> None:
    case = case_of(function, "float32-twins")
    by_place = 1 - np.random.default_rng(5).random(len(case.arguments["generators"]))
    found = problems(case, answered(case, case.plain_arguments(), by_place))
    assert any("in one state" in problem for problem in found)


def test_a_tie_may_be_broken_either_way() -> None:
    case = case_of("diopiTopKSampling", "float32-ties")
    given = case.plain_arguments()
    right = answered(case, given, numbers_of(case, 0))
    flipped = {**given, "logits": given["logits"][:, ::-1]}
    tokens = answered(case, flipped, numbers_of(case, 0)).results["output_ids"][given["step"]]
    other = right.results["output_ids"].copy()
    free = ~given["skip_decode"] & ~given["finished"]
    width = given["logits"].shape[1]
    other[given["step"], free] = width - 1 - tokens[free]
    finished = np.where(free, other[given["step"]] == given["end_ids"], right.results["finished"])
    answer = replace(right, results={**right.results, "output_ids": other, "finished": finished})
    assert (other != right.results["output_ids"]).any()
    assert problems(case, answer) == []
