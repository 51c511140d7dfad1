"""Test the validator of the engine's sampling: correct draws pass, and each kind of wrong draw is rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from sampling import sampled

from diopi_impl import ErrorBound, Numerics, find_numerics
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.arithmetic.array import Arithmetic
from diopi_test.oracle.arithmetic.change import carry_arrays
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.arithmetic.elementary import DeclaredErrors, make_elementary_rules
from diopi_test.oracle.arithmetic.signs import Signs
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.oracle.reference.lmdeploy.sampling import STATE_NAMES, top_k_draw, top_p_draw
from diopi_test.oracle.validators import CompletedCall, find_validator

Array = np.ndarray[Any, Any]

DRAWS = {"diopiTopKSampling": top_k_draw, "diopiTopPSampling": top_p_draw}


@cache
def case_of(function: str, label: str) -> BaselineCase:
    """Compute the case of a function with this label."""
    prototype = lookup(function)
    return compute_baseline_case(
        prototype, next(case for case in select_cases(function, "full") if case.label == label)
    )


def numbers_of(case: BaselineCase, call: int) -> Array:
    """Return a number from (0, 1] per sequence, by its seed and the call."""
    seeds = case.arguments["generators"]
    return np.array([1 - np.random.default_rng([seed, call]).random() for seed in seeds])


def complete_call(case: BaselineCase, arguments: Any, numbers: Array, has_redraws: bool = True) -> CompletedCall:
    """Return the results of a call with these arguments and numbers."""
    updated = DRAWS[case.function](arguments)[1](numbers)
    results = {name: value for name, value in zip(STATE_NAMES, updated, strict=True) if value is not None}
    further = {"the next call": complete_call(case, arguments, numbers_of(case, 1), False)} if has_redraws else {}
    return CompletedCall(
        arguments=case.plain_arguments(), results=results, expected=results, dtypes={}, redraws=further
    )


def problems(case: BaselineCase, call: CompletedCall) -> list[str]:
    """Return the problems that the validator finds in a call."""
    return list(find_validator(lookup(case.function))(call))


@pytest.mark.parametrize("function", DRAWS)
@pytest.mark.parametrize("label", ["sample", "bare", "little", "own-shares", "twins", "ties", "only-cum", "no-ends"])
def test_validator_accepts_correct_draws(function: str, label: str) -> None:
    case = case_of(function, f"float32-{label}")
    assert problems(case, complete_call(case, case.plain_arguments(), numbers_of(case, 0))) == []


def other_weights(arguments: dict[str, Any]) -> None:
    """Change the cumulative probability up to which tokens may be sampled."""
    arguments["runtime_top_p"] = np.full(len(arguments["logits"]), 0.4)


def all_weights(arguments: dict[str, Any]) -> None:
    """Let all tokens be sampled."""
    arguments["runtime_top_p"] = np.ones(len(arguments["logits"]))


def lower_temperature(arguments: dict[str, Any]) -> None:
    """Make the distribution of tokens narrower."""
    arguments["logits"] = 4 * arguments["logits"]


def nobody_ends(arguments: dict[str, Any]) -> None:
    """Let no unfinished sequence end."""
    arguments["end_ids"] = np.where(arguments["finished"], arguments["end_ids"], -1)


def no_log_probs(arguments: dict[str, Any]) -> None:
    """Change the cumulative log-probabilities before the call."""
    arguments["cum_log_probs"] = arguments["cum_log_probs"] - 0.001


def another_step(arguments: dict[str, Any]) -> None:
    """Change the number of the step."""
    arguments["step"] = 1


@pytest.mark.parametrize("function", DRAWS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_weights, "a weight is drawn"),
        (all_weights, "tokens that can be drawn"),
        (lower_temperature, "a weight is drawn"),
        (nobody_ends, "finished"),
        (no_log_probs, "cum_log_probs"),
        (another_step, "unchanged"),
    ],
)
def test_validator_rejects_draws_from_other_arguments(
    function: str, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    case = case_of(function, "float32-sample")
    mistaken = case.plain_arguments()
    change(mistaken)
    found = problems(case, complete_call(case, mistaken, numbers_of(case, 0)))
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize("function", DRAWS)
def test_validator_rejects_numbers_that_are_not_random(function: str) -> None:
    case = case_of(function, "float32-sample")
    batch = len(case.arguments["generators"])
    same = complete_call(case, case.plain_arguments(), np.full(batch, 0.9), False)
    assert any("a weight is drawn" in problem for problem in problems(case, same))
    constant_call = complete_call(case, case.plain_arguments(), numbers_of(case, 0), False)
    repeated = replace(constant_call, redraws={"the next call": constant_call})
    assert any("depend on elements of the next call" in problem for problem in problems(case, repeated))


@pytest.mark.parametrize("function", DRAWS)
def test_validator_rejects_different_tokens_of_equal_states(function: str) -> None:
    case = case_of(function, "float32-twins")
    by_place = 1 - np.random.default_rng(5).random(len(case.arguments["generators"]))
    found = problems(case, complete_call(case, case.plain_arguments(), by_place))
    assert any("in the same state" in problem for problem in found)


def test_validator_accepts_any_order_of_equal_logits() -> None:
    case = case_of("diopiTopKSampling", "float32-ties")
    arguments = case.plain_arguments()
    first_call = complete_call(case, arguments, numbers_of(case, 0))
    flipped = {**arguments, "logits": arguments["logits"][:, ::-1]}
    tokens = complete_call(case, flipped, numbers_of(case, 0)).results["output_ids"][arguments["step"]]
    output_ids = first_call.results["output_ids"].copy()
    free = ~arguments["skip_decode"] & ~arguments["finished"]
    width = arguments["logits"].shape[1]
    output_ids[arguments["step"], free] = width - 1 - tokens[free]
    finished = np.where(free, output_ids[arguments["step"]] == arguments["end_ids"], first_call.results["finished"])
    call = replace(first_call, results={**first_call.results, "output_ids": output_ids, "finished": finished})
    assert (output_ids != first_call.results["output_ids"]).any()
    assert problems(case, call) == []


COARSE = Numerics(
    name="coarse",
    elementary={name: (ErrorBound(relative=1e-3),) for name in ("exp", "log", "divide")},
)


def call_in_arithmetic(case: BaselineCase, numerics: Numerics, number: int) -> CompletedCall:
    """Return a call of a correct vendor with the arithmetic, in one of the directions of its errors."""
    signs = Signs(np.random.default_rng(number), number)
    arithmetic = Arithmetic(make_elementary_rules(numerics.elementary, signs))
    carried = {name: carry_arrays(value, arithmetic, "f") for name, value in case.plain_arguments().items()}
    return complete_call(case, carried, numbers_of(case, 0))


def declare(call: CompletedCall, numerics: Numerics) -> CompletedCall:
    """Return a call that the validator judges by a declared arithmetic."""
    redraws = {name: declare(redraw, numerics) for name, redraw in call.redraws.items()}
    return replace(call, errors=DeclaredErrors(numerics.elementary), redraws=redraws)


@pytest.mark.parametrize(
    ("function", "label"), sampled(product(DRAWS, ["sample", "little", "ties", "only-cum"]), 2, slow=6)
)
def test_validator_allows_for_declared_errors(function: str, label: str) -> None:
    case = case_of(function, f"float32-{label}")
    call = call_in_arithmetic(case, COARSE, 0)
    assert any("logarithms" in problem for problem in problems(case, call))
    assert problems(case, declare(call, COARSE)) == []
    exact = call_in_arithmetic(case, find_numerics("fast-math"), 1)
    assert problems(case, declare(exact, find_numerics("fast-math"))) == []


@pytest.mark.parametrize("function", DRAWS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_weights, "a weight is drawn"),
        (all_weights, "tokens that can be drawn"),
        (lower_temperature, "a weight is drawn"),
    ],
)
def test_validator_rejects_wrong_draws_with_declared_errors(
    function: str, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    case = case_of(function, "float32-sample")
    mistaken = case.plain_arguments()
    change(mistaken)
    call = complete_call(case, mistaken, numbers_of(case, 0))
    for numerics in (COARSE, find_numerics("fast-math")):
        found = problems(case, declare(call, numerics))
        assert any(message in problem for problem in found), found


def test_validator_rejects_errors_beyond_the_declared_ones() -> None:
    case = case_of("diopiTopKSampling", "float32-sample")
    call = declare(call_in_arithmetic(case, COARSE, 0), find_numerics("fast-math"))
    assert any("logarithms" in problem for problem in problems(case, call))


@pytest.mark.parametrize("function", DRAWS)
def test_budgets_of_certain_tokens_allow_for_declared_errors(function: str) -> None:
    case = case_of(function, "float32-certain")
    declared = derive_declared_case(case, COARSE)
    for name in ("cum_log_probs", "output_log_probs"):
        before, after = case.expected[name], declared.expected[name]
        assert isinstance(before, Expected) and isinstance(after, Expected)
        assert before.budget is not None and after.budget is not None
        assert (after.budget.unit >= before.budget.unit).all()
        assert (after.budget.unit > before.budget.unit).any()


def test_cases_with_drawn_tokens_tell_the_validator_what_is_declared() -> None:
    single = derive_declared_case(case_of("diopiTopKSampling", "float32-sample"), COARSE)
    assert (single.precision.elementary, single.precision.sum_epsilon) == (COARSE.elementary, 0)
    half = derive_declared_case(
        case_of("diopiTopKSampling", "float16-sample"), Numerics(name="half", half_accumulation="half")
    )
    assert (half.precision.elementary, half.precision.sum_epsilon) == ({}, 2**-10)
