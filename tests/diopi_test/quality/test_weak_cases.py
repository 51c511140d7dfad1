"""Distrust: every rule finds what it is for and nothing else; every reason is needed."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baselines import enter

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype, Reduction
from diopi_test.baseline import store
from diopi_test.baseline.evaluate import make_baseline_case
from diopi_test.baseline.shuffle import shuffled
from diopi_test.cases.domains import Domain, choice, normal, uniform
from diopi_test.cases.model import Case, ResultOverride, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.quality import weak_cases as rules
from diopi_test.quality.weak_cases import Examined

nan, inf = float("nan"), float("inf")


def examined(function: str, **arguments: Any) -> Examined:
    """A made-up case in float32."""
    case = Case("float32-made-up", Dtype.float32, arguments, results=arguments.pop("results", {}))
    return Examined(case, make_baseline_case(lookup(function), case))


def tensor(domain: Domain, *shape: int, dtype: Dtype = Dtype.float32) -> TensorSpec:
    return TensorSpec(shape, dtype, domain)


def given(*values: float) -> Domain:
    return lambda rng, count, dtype: np.array(values)


def seen(rule: str, *cases: Examined) -> list[str]:
    """What a rule sees in these cases of one function."""
    return [text for one, text in rules.RULES[rule]([one for one in cases if one.is_examined])]


# All NaN


def test_roots_of_negative_numbers_are_all_nan() -> None:
    assert seen("all NaN", examined("diopiSqrt", input=tensor(uniform(-2, -1), 3))) == ["out"]


def test_one_number_among_nan_is_enough() -> None:
    assert not seen("all NaN", examined("diopiSqrt", input=tensor(given(-1, 1, -2), 3)))


def test_nan_where_anything_may_be_is_not_counted() -> None:
    one = examined("diopiSqrt", input=tensor(given(-1, 1, -2), 3))
    (expected,) = one.expected
    object.__setattr__(expected, "specified", np.array([True, False, True]))
    assert seen("all NaN", one) == ["out"]


# One value


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([2, -2, 2], True),
        ([2, -2, 3], False),
        ([2] * 19 + [3], True),
        ([2] * 17 + [3] * 3, False),
        ([0] * 90 + [1] * 7, True),
        ([0] * 90 + [1] * 8, False),
        ([2] * 90 + [1] * 8, True),
        ([5], False),
        ([0], True),
        ([nan] * 9, False),
    ],
)
def test_one_value(values: Sequence[float], found: bool) -> None:
    one = examined("diopiAbs", input=tensor(given(*values), len(values)))
    assert bool(seen("one value", one)) == found


@pytest.mark.parametrize(("count", "found"), [(7, False), (8, True)])
def test_few_truth_values_may_be_alike(count: int, found: bool) -> None:
    one = examined("diopiIsNan", input=tensor(normal(), count))
    assert bool(seen("one value", one)) == found


def test_a_zero_beside_other_results_is_an_answer() -> None:
    assert not seen("one value", examined("diopiMax", input=tensor(given(0), 1, 1), dim=1))


# Budget wider than the values


def test_the_sine_of_numbers_known_to_more_than_a_period_tells_nothing() -> None:
    assert seen("budget wider than the values", examined("diopiSin", input=tensor(uniform(1e8, 2e8), 20))) == ["out"]


def test_sharp_and_exact_results_and_those_of_nothing_finite_are_not_blunt() -> None:
    for function, domain in {"diopiSin": normal(), "diopiFloor": normal(1e9), "diopiSqrt": uniform(-2, -1)}.items():
        assert not seen("budget wider than the values", examined(function, input=tensor(domain, 20)))


# Does not depend on a tensor


def test_the_larger_of_two_numbers_does_not_depend_on_the_other() -> None:
    def larger(left: Domain, right: Domain) -> Examined:
        return examined("diopiMaximum", input=tensor(left, 3, 4), other=tensor(right, 3, 4))

    assert seen("does not depend on a tensor", larger(uniform(-2, 0), uniform(8, 9))) == ["input"]
    assert not seen("does not depend on a tensor", larger(normal(), normal()))


def test_a_list_is_one_tensor_argument() -> None:
    def added(number: float) -> Examined:
        return examined("diopiForeachaddScalar", inputs=[tensor(normal(), 3), tensor(normal(), 2)], other=number)

    assert seen("does not depend on a tensor", added(inf)) == ["inputs"]
    assert not seen("does not depend on a tensor", added(1.5))


def test_a_tensor_nobody_reads_is_not_asked_for() -> None:
    gradient = examined(
        "diopiNLLLossBackward",
        grad_output=tensor(normal(), 2),
        input=tensor(normal(), 2, 3),
        target=tensor(given(0, 2), 2, dtype=Dtype.int64),
        weight=None,
        reduction=Reduction.none,
        ignore_index=-100,
    )
    assert not seen("does not depend on a tensor", gradient)


def test_few_truth_values_need_not_depend_on_a_tensor() -> None:
    def compared(count: int) -> Examined:
        return examined("diopiLt", input=tensor(choice([nan]), count), other=tensor(normal(), count))

    assert not seen("does not depend on a tensor", compared(7))
    assert seen("does not depend on a tensor", compared(8)) == ["other"]


def test_where_results_are_left_out_tensors_may_be_unread() -> None:
    gradients = examined(
        "diopiLayerNormBackward",
        grad_output=tensor(normal(), 3, 4),
        input=tensor(normal(), 3, 4),
        weight=tensor(normal(), 4),
        bias=None,
        mean=tensor(normal(), 3),
        rstd=tensor(uniform(1, 2), 3),
        normalized_shape=(4,),
        results={"grad_input": None, "grad_weight": None},
    )
    assert not seen("does not depend on a tensor", gradients)


# Does not depend on an attribute


def leaky(slope: float, domain: Domain) -> Examined:
    return examined("diopiLeakyRelu", input=tensor(domain, 9), negative_slope=slope)


def test_without_negative_numbers_their_slope_is_not_seen() -> None:
    frequent = [leaky(0.5, normal()), leaky(0.5, normal())]
    rule = "does not depend on an attribute"
    assert seen(rule, *frequent, leaky(0.25, uniform(1, 2))) == ["negative_slope=0.25"]
    assert not seen(rule, *frequent, leaky(0.25, normal()))
    assert not seen(rule, *frequent, leaky(0.25, uniform(1, 2)), leaky(0.25, normal())), "one case is enough"
    assert not seen(rule, *frequent)


def test_a_value_with_which_there_is_no_result_or_another_one_in_size_cannot_be_taken_for_this_one() -> None:
    def along(axis: int, *shape: int) -> Examined:
        reduced = [length for i, length in enumerate(shape) if i != axis]
        out = {"out": ResultOverride(shape=tuple(reduced))}
        return examined("diopiAmax", self=tensor(normal(), *shape), dim=(axis,), keepdim=False, results=out)

    rule = "does not depend on an attribute"
    assert not seen(rule, along(1, 2, 3), along(1, 2, 3), along(0, 2, 3))
    assert not seen(rule, along(1, 2, 3), along(1, 2, 3), along(0, 5))


# What is examined


@pytest.mark.parametrize(
    ("function", "arguments", "found"),
    [
        ("diopiAbs", {"input": tensor(normal(), 3)}, True),
        ("diopiAbs", {"input": tensor(normal())}, False),
        ("diopiAbs", {"input": tensor(normal(), 0)}, False),
        ("diopiAmax", {"self": tensor(normal(), 3), "dim": (), "keepdim": False}, True),
        ("diopiSum", {"input": tensor(normal(), 0, 3), "dim": (0,)}, False),
    ],
)
def test_what_is_examined(function: str, arguments: dict[str, Any], found: bool) -> None:
    assert examined(function, **arguments).is_examined == found


def test_random_results_are_not_examined() -> None:
    (case, *_) = select_cases("diopiBernoulli", "smoke")
    assert not Examined(case, make_baseline_case(lookup("diopiBernoulli"), case)).is_examined


# All of them


def test_weak_cases_of_a_baseline_are_found_less_those_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        Case(label, Dtype.float32, {"input": tensor(domain, 9)}, weak=reason)
        for label, domain, reason in (
            ("float32-good", normal(), ""),
            ("float32-weak", choice([2.0]), ""),
            ("float32-excused", choice([2.0]), "it must be so"),
        )
    ]
    made = [make_baseline_case(lookup("diopiAbs"), case) for case in cases]
    folder = tmp_path / "full"
    store.write(store.file_of(folder, "diopiAbs"), "diopiAbs", made, store.Provenance("full", "key", {}))
    enter(folder, "diopiAbs")
    monkeypatch.setattr(rules, "select_cases", lambda function, level: cases)

    def spread(work: Callable[[str], Any], items: Sequence[str]) -> Iterator[tuple[str, Any]]:
        return ((item, work(item)) for item in items)

    told: dict[str, Any] = {}
    found = rules.find_weak_cases(["diopiAbs"], "full", folder, spread, told.__setitem__)
    assert [str(finding) for finding in found] == [
        "diopiAbs[float32-weak]: one value: 9 of 9 elements of out are 2.0",
    ]
    assert told == {"diopiAbs": found}
    assert all(rules.weak_cases("diopiAbs", "full", folder, seed) == found for seed in range(3))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_the_cases_makes_no_difference(seed: int) -> None:
    """Weak cases of every rule, among them values of an attribute that are as frequent as others."""
    cases = [
        Case(f"float32-{label}", Dtype.float32, {"input": tensor(domain, 9), "negative_slope": slope})
        for label, domain, slope in (
            ("positive", choice([2.0]), 0.1),
            ("also-positive", choice([3.0]), 0.2),
            ("nan", choice([np.nan]), 0.3),
            ("positive-too", uniform(1.0, 2.0), 0.4),
        )
    ]
    made = [make_baseline_case(lookup("diopiLeakyRelu"), case) for case in cases]
    examined = [Examined(case, one, place) for place, (case, one) in enumerate(zip(cases, made, strict=True))]
    mixed = shuffled(examined, seed, lambda one: one.case.label)
    found, drawn = ({str(weak) for _, weak in rules.findings(order)} for order in (examined, mixed))
    assert found == drawn
    assert {text.split(": ")[1] for text in found} == {"all NaN", "one value", "does not depend on an attribute"}


# Reasons


def _reasons() -> dict[tuple[str, str], list[str]]:
    """The functions whose cases give each reason, by family and reason."""
    given: dict[tuple[str, str], list[str]] = {}
    for name, prototype in prototypes().items():
        for reason in {case.weak for case in select_cases(name, "full")} - {""}:
            given.setdefault((prototype.family, reason), []).append(name)
    return given


def _all(function: str) -> list[Examined]:
    return [Examined(case, make_baseline_case(lookup(function), case)) for case in select_cases(function, "full")]


def _is_needed(functions: Sequence[str], reason: str) -> bool:
    """Whether a rule finds a case that gives the reason, looked for in each case alone, then in whole functions."""
    alone = chain.from_iterable(_having(_made(function, reason)) for function in functions)
    return any(alone) or any(
        one.case.weak == reason for function in functions for one, _ in rules.findings(_all(function))
    )


def _having(cases: Iterator[Examined]) -> Iterator[Examined]:
    return (one for case in cases for one, _ in rules.findings([case]))


def _made(function: str, reason: str) -> Iterator[Examined]:
    for case in select_cases(function, "full"):
        if case.weak == reason:
            yield Examined(case, make_baseline_case(lookup(function), case))


def test_every_reason_is_needed() -> None:
    assert not [key for key, functions in _reasons().items() if not _is_needed(functions, key[1])]
