"""Every rule finds the non-discriminating cases it is for and no others; every reason is needed."""

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
from diopi_test.baseline.shuffle import shuffle_by_seed
from diopi_test.cases import resized
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.domains import Domain, choice, normal, uniform
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality import non_discriminating as rules
from diopi_test.quality.non_discriminating import ExaminedCase

nan, inf = float("nan"), float("inf")


def examine(function: str, **arguments: Any) -> ExaminedCase:
    """Return a case in float32 for the rules to examine."""
    case = Case("float32-made-up", Dtype.float32, arguments, results=arguments.pop("results", {}))
    return ExaminedCase(case, compute_baseline_case(lookup(function), case))


def tensor(domain: Domain, *shape: int, dtype: Dtype = Dtype.float32) -> TensorSpec:
    """Return the description of a tensor with values of this domain."""
    return TensorSpec(shape, dtype, domain)


def literal(*values: float) -> Domain:
    """Return a domain that returns these values."""
    return lambda rng, count, dtype: np.array(values)


def observe(rule: str, *cases: ExaminedCase) -> list[str]:
    """Return the observations of a rule about these cases of one function."""
    return [text for _, text in rules.RULES[rule]([case for case in cases if case.is_examined])]


# All NaN


def test_all_nan_finds_roots_of_negative_numbers() -> None:
    assert observe("all NaN", examine("diopiSqrt", input=tensor(uniform(-2, -1), 3))) == ["out"]


def test_all_nan_accepts_one_number_among_nans() -> None:
    assert not observe("all NaN", examine("diopiSqrt", input=tensor(literal(-1, 1, -2), 3)))


def test_all_nan_ignores_unspecified_elements() -> None:
    case = examine("diopiSqrt", input=tensor(literal(-1, 1, -2), 3))
    (expected,) = case.expected
    object.__setattr__(expected, "specified", np.array([True, False, True]))
    assert observe("all NaN", case) == ["out"]


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
def test_one_value_finds_dominant_values(values: Sequence[float], found: bool) -> None:
    case = examine("diopiAbs", input=tensor(literal(*values), len(values)))
    assert bool(observe("one value", case)) == found


@pytest.mark.parametrize(("count", "found"), [(7, False), (8, True)])
def test_one_value_accepts_few_equal_truth_values(count: int, found: bool) -> None:
    case = examine("diopiIsNan", input=tensor(normal(), count))
    assert bool(observe("one value", case)) == found


def test_one_value_accepts_a_single_zero_beside_other_results() -> None:
    assert not observe("one value", examine("diopiMax", input=tensor(literal(0), 1, 1), dim=1))


# Budget wider than the values


def test_wide_budget_is_found_for_the_sine_of_huge_numbers() -> None:
    assert observe("budget wider than the values", examine("diopiSin", input=tensor(uniform(1e8, 2e8), 20))) == ["out"]


def test_wide_budget_is_not_found_for_narrow_exact_or_non_finite_results() -> None:
    for function, domain in {"diopiSin": normal(), "diopiFloor": normal(1e9), "diopiSqrt": uniform(-2, -1)}.items():
        assert not observe("budget wider than the values", examine(function, input=tensor(domain, 20)))


# Does not depend on a tensor


def test_maximum_does_not_depend_on_a_tensor_that_is_always_smaller() -> None:
    def maximum(first: Domain, second: Domain) -> ExaminedCase:
        return examine("diopiMaximum", input=tensor(first, 3, 4), other=tensor(second, 3, 4))

    assert observe("does not depend on a tensor", maximum(uniform(-2, 0), uniform(8, 9))) == ["input"]
    assert not observe("does not depend on a tensor", maximum(normal(), normal()))


def test_tensor_array_counts_as_one_tensor_argument() -> None:
    def add(number: float) -> ExaminedCase:
        return examine("diopiForeachaddScalar", inputs=[tensor(normal(), 3), tensor(normal(), 2)], other=number)

    assert observe("does not depend on a tensor", add(inf)) == ["inputs"]
    assert not observe("does not depend on a tensor", add(1.5))


def test_ignored_tensor_is_not_reported() -> None:
    gradient = examine(
        "diopiNLLLossBackward",
        grad_output=tensor(normal(), 2),
        input=tensor(normal(), 2, 3),
        target=tensor(literal(0, 2), 2, dtype=Dtype.int64),
        weight=None,
        reduction=Reduction.none,
        ignore_index=-100,
    )
    assert not observe("does not depend on a tensor", gradient)


def test_few_truth_values_may_be_independent_of_a_tensor() -> None:
    def compare(count: int) -> ExaminedCase:
        return examine("diopiLt", input=tensor(choice([nan]), count), other=tensor(normal(), count))

    assert not observe("does not depend on a tensor", compare(7))
    assert observe("does not depend on a tensor", compare(8)) == ["other"]


def test_tensors_may_have_no_effect_if_results_are_omitted() -> None:
    gradients = examine(
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
    assert not observe("does not depend on a tensor", gradients)


# Does not depend on an attribute


def leaky_relu(slope: float, domain: Domain) -> ExaminedCase:
    """Return an examined case of leaky ReLU."""
    return examine("diopiLeakyRelu", input=tensor(domain, 9), negative_slope=slope)


def test_slope_of_negative_numbers_has_no_effect_on_positive_input() -> None:
    frequent = [leaky_relu(0.5, normal()), leaky_relu(0.5, normal())]
    rule = "does not depend on an attribute"
    assert observe(rule, *frequent, leaky_relu(0.25, uniform(1, 2))) == ["negative_slope=0.25"]
    assert not observe(rule, *frequent, leaky_relu(0.25, normal()))
    assert not observe(rule, *frequent, leaky_relu(0.25, uniform(1, 2)), leaky_relu(0.25, normal())), (
        "a single case is enough"
    )
    assert not observe(rule, *frequent)


def test_attribute_value_without_a_result_of_the_same_size_is_not_a_possible_mistake() -> None:
    def maximum_along(axis: int, *shape: int) -> ExaminedCase:
        reduced = [length for i, length in enumerate(shape) if i != axis]
        out = {"out": ResultOverride(shape=tuple(reduced))}
        return examine("diopiAmax", self=tensor(normal(), *shape), dim=(axis,), keepdim=False, results=out)

    rule = "does not depend on an attribute"
    assert not observe(rule, maximum_along(1, 2, 3), maximum_along(1, 2, 3), maximum_along(0, 2, 3))
    assert not observe(rule, maximum_along(1, 2, 3), maximum_along(1, 2, 3), maximum_along(0, 5))


# Which cases are examined


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
def test_examined_cases_could_show_a_mistake(function: str, arguments: dict[str, Any], found: bool) -> None:
    assert examine(function, **arguments).is_examined == found


def test_random_results_are_not_examined() -> None:
    (case, *_) = select_cases("diopiBernoulli", "smoke")
    assert not ExaminedCase(case, compute_baseline_case(lookup("diopiBernoulli"), case)).is_examined


# All of them


def test_cases_of_a_baseline_without_a_reason_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        Case(label, Dtype.float32, {"input": tensor(domain, 9)}, non_discriminating=reason)
        for label, domain, reason in (
            ("float32-good", normal(), ""),
            ("float32-constant", choice([2.0]), ""),
            ("float32-excused", choice([2.0]), "it must be so"),
        )
    ]
    baseline_cases = [compute_baseline_case(lookup("diopiAbs"), case) for case in cases]
    folder = tmp_path / "full"
    store.write_baseline_file(
        store.baseline_file(folder, "diopiAbs"), "diopiAbs", baseline_cases, store.Provenance("full", "key", {})
    )
    enter(folder, "diopiAbs")
    monkeypatch.setattr(rules, "select_cases", lambda function, level: cases)

    def spread(work: Callable[[str], Any], items: Sequence[str]) -> Iterator[tuple[str, Any]]:
        return ((item, work(item)) for item in items)

    reported: dict[str, Any] = {}
    found = rules.find_non_discriminating_cases(["diopiAbs"], "full", folder, spread, reported.__setitem__)
    assert [str(case) for case in found] == ["diopiAbs[float32-constant]: one value: 9 of 9 elements of out are 2.0"]
    assert reported == {"diopiAbs": found}
    assert all(rules.find_in_function("diopiAbs", "full", folder, seed) == found for seed in range(3))


@pytest.mark.parametrize("seed", [1, 2])
def test_rules_find_the_same_in_any_order_of_the_cases(seed: int) -> None:
    """The cases include attribute values that are equally frequent."""
    cases = [
        Case(f"float32-{label}", Dtype.float32, {"input": tensor(domain, 9), "negative_slope": slope})
        for label, domain, slope in (
            ("positive", choice([2.0]), 0.1),
            ("also-positive", choice([3.0]), 0.2),
            ("nan", choice([np.nan]), 0.3),
            ("positive-too", uniform(1.0, 2.0), 0.4),
        )
    ]
    baseline_cases = [compute_baseline_case(lookup("diopiLeakyRelu"), case) for case in cases]
    pairs = zip(cases, baseline_cases, strict=True)
    ordered = [ExaminedCase(case, baseline_case, place) for place, (case, baseline_case) in enumerate(pairs)]
    mixed = shuffle_by_seed(ordered, seed, lambda case: case.case.label)
    found, found_in_mixed = ({str(result) for _, result in rules.apply_rules(order)} for order in (ordered, mixed))
    assert found == found_in_mixed
    assert {text.split(": ")[1] for text in found} == {"all NaN", "one value", "does not depend on an attribute"}


# Reasons


def _reasons() -> dict[tuple[str, str], list[str]]:
    """Return the functions whose cases give each reason, by family and reason; resized cases belong to no family."""
    functions: dict[tuple[str, str], list[str]] = {}
    for name, prototype in prototypes().items():
        for reason in {case.non_discriminating for case in select_cases(name, "full")} - {""}:
            family = "" if reason == resized.REASON else prototype.family
            functions.setdefault((family, reason), []).append(name)
    return functions


def _examine_all(function: str) -> list[ExaminedCase]:
    """Return the examined cases of a function."""
    return [
        ExaminedCase(case, compute_baseline_case(lookup(function), case)) for case in select_cases(function, "full")
    ]


def _is_needed(functions: Sequence[str], reason: str) -> bool:
    """Return whether a rule finds a case that gives the reason, first in single cases, then in whole functions."""
    single_findings = chain.from_iterable(
        _find_in_single_cases(_examine_with_reason(function, reason)) for function in functions
    )
    return any(single_findings) or any(
        case.case.non_discriminating == reason
        for function in functions
        for case, _ in rules.apply_rules(_examine_all(function))
    )


def _find_in_single_cases(cases: Iterator[ExaminedCase]) -> Iterator[ExaminedCase]:
    """Yield the cases that a rule finds when it examines each case on its own."""
    return (found for case in cases for found, _ in rules.apply_rules([case]))


def _examine_with_reason(function: str, reason: str) -> Iterator[ExaminedCase]:
    """Yield the examined cases that state this reason."""
    for case in select_cases(function, "full"):
        if case.non_discriminating == reason:
            yield ExaminedCase(case, compute_baseline_case(lookup(function), case))


@pytest.mark.exhaustive
def test_every_reason_is_needed() -> None:
    assert not [key for key, functions in _reasons().items() if not _is_needed(functions, key[1])]
