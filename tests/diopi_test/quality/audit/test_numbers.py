"""Faults of numbers and their types: what shows them, and that they do not show where they do no harm."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, RoundMode
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.records import BaselineCase, Expected
from diopi_test.cases.domains import choice, integer_values, normal
from diopi_test.cases.model import Case, ResultOverride, TensorSpec
from diopi_test.quality.audit.fault import Answer, Effect
from diopi_test.quality.audit.formula import formula_faults
from diopi_test.quality.audit.matrix import Trial, try_fault
from diopi_test.quality.audit.numbers import number_faults


def tried(function: str, fault: str, *cases: Case) -> Trial:
    made = [compute_baseline_case(lookup(function), case) for case in cases]
    return try_fault(next(one for one in number_faults(function) if one.name == fault), made)


def beside(dtype: Dtype, values: Sequence[Any], **attributes: Any) -> Case:
    """A case of the function's one tensor, with these values repeated, and of the attributes."""
    return Case(f"{dtype.name}-made-up", dtype, {"input": TensorSpec((6,), dtype, choice(values)), **attributes})


@pytest.mark.parametrize(
    ("function", "fault", "showing", "silent"),
    [
        (
            "diopiPow",
            "exponent modulo 64",
            beside(Dtype.int64, [2, 3], exponent=65),
            beside(Dtype.int64, [2, 3], exponent=5),
        ),
        (
            "diopiAddScalar",
            "other cut to 32 bits",
            beside(Dtype.int64, [1, 2], other=2**40, alpha=1),
            beside(Dtype.int64, [1, 2], other=2**30, alpha=1),
        ),
        (
            "diopiAddScalar",
            "other through float32",
            beside(Dtype.int32, [1, 2], other=2**24 + 1, alpha=1),
            beside(Dtype.int32, [1, 2], other=2**24 + 2, alpha=1),
        ),
        (
            "diopiAddScalar",
            "input through float64",
            beside(Dtype.int64, [2**53 + 1], other=1, alpha=1),
            beside(Dtype.int64, [2**53 + 2], other=1, alpha=1),
        ),
        (
            "diopiMulScalar",
            "other through float32",
            beside(Dtype.float64, [1.0, 3.0], other=0.1),
            beside(Dtype.float32, [1.0, 3.0], other=0.1),
        ),
        (
            "diopiClampScalar",
            "max without its fraction",
            beside(Dtype.int32, [7, 9], min=None, max=2.5),
            beside(Dtype.int32, [7, 9], min=None, max=2),
        ),
        (
            "diopiClampScalar",
            "max rounded to whole numbers",
            beside(Dtype.int32, [7, 9], min=None, max=2.75),
            beside(Dtype.float32, [7, 9], min=None, max=2.75),
        ),
    ],
)
def test_a_mistaken_number_shows_where_it_matters(function: str, fault: str, showing: Case, silent: Case) -> None:
    assert tried(function, fault, showing).caught_by == (showing.label, ("values",))
    assert not tried(function, fault, silent).shown


def subtraction(one: Dtype, other: Dtype) -> Case:
    tensors = {"input": TensorSpec((8,), one, integer_values(-9, 9)), "other": TensorSpec((8,), other, normal())}
    return Case(f"{one.name}-with-{other.name}", one, {**tensors, "alpha": 1})


def test_operands_of_two_types_show_that_the_first_one_decides() -> None:
    fault = "operands converted to the type of the first"
    assert tried("diopiSub", fault, subtraction(Dtype.int32, Dtype.float32)).caught_by
    assert not tried("diopiSub", fault, subtraction(Dtype.float32, Dtype.float32)).shown
    assert not tried("diopiSub", fault, subtraction(Dtype.float32, Dtype.float16)).shown


@pytest.mark.parametrize(("shape", "effect"), [((), Effect.shown), ((1,), Effect.absent)])
def test_an_operand_without_axes_shows_that_its_type_does_not_count(shape: tuple[int, ...], effect: Effect) -> None:
    """3000.5 has no place in float16."""
    tensors = {
        "input": TensorSpec((8,), Dtype.float16, integer_values(-9, 9)),
        "other": TensorSpec(shape, Dtype.float32, choice([3000.5])),
    }
    case = Case("float16-with-one", Dtype.float16, {**tensors, "alpha": 1})
    trial = tried("diopiSub", "type of operands without axes ignored", case)
    assert trial.effects == {effect: 1}
    assert (trial.caught_by is not None) == (effect is Effect.shown)


def comparison(one: Dtype, other: Dtype) -> Mapping[str, TensorSpec]:
    return {"input": TensorSpec((4,), one, choice([2049])), "other": TensorSpec((4,), other, choice([2048]))}


def test_operands_that_are_not_converted_show_where_the_common_type_is_narrower() -> None:
    """2049 is 2048 in float16."""
    case = compute_baseline_case(
        lookup("diopiEq"), Case("int32-rounded", Dtype.int32, comparison(Dtype.int32, Dtype.float16))
    )
    right = replace(case, expected={"out": Expected(np.ones(4, bool), Dtype.bool)})
    fault = next(one for one in number_faults("diopiEq") if one.name == "arguments not converted first")
    assert fault.corrupt(Answer.right(right)) is Effect.shown
    assert try_fault(fault, [right]).caught_by == ("int32-rounded", ("values",))
    exact = Case("int32-exact", Dtype.int32, comparison(Dtype.int32, Dtype.int64))
    assert not tried("diopiEq", fault.name, exact).shown


def steps(dtype: Dtype, end: float) -> Case:
    override = {"out": ResultOverride(dtype, shape=(5,))}
    return Case(f"{dtype.name}-up", dtype, {"start": 0.0, "end": end, "steps": 5}, override)


def test_the_type_of_the_callers_result_shows_where_it_is_an_order_to_compute_in_it() -> None:
    fault = "result in its usual type, converted"
    assert tried("diopiLinspace", fault, steps(Dtype.int32, 9.5)).caught_by == ("int32-up", ("values",))
    assert not tried("diopiLinspace", fault, steps(Dtype.float32, 9.5)).shown


def changed(function: str, text: str, case: BaselineCase) -> Trial:
    fault = next(fault for fault in formula_faults(function) if text in fault.name)
    return try_fault(fault, [case])


def quotient(*numerators: float) -> Case:
    tensors = {
        "input": TensorSpec((6,), Dtype.float32, choice(numerators)),
        "other": TensorSpec((6,), Dtype.float32, choice([2.0])),
    }
    return Case("float32-trunc", Dtype.float32, {**tensors, "rounding_mode": RoundMode.trunc}, exact=True)


@pytest.mark.parametrize(
    ("function", "change", "showing", "silent"),
    [
        ("diopiDiv", "np.trunc -> np.rint", quotient(-7.0, 7.0), quotient(-8.0, 8.0)),
        ("diopiDiv", "np.trunc -> np.floor", quotient(-7.0, 7.0), quotient(7.0, 9.0)),
        ("diopiDiv", "input, other) * 0.99", quotient(-8.0, 8.0), quotient(-7.0, 7.0)),
    ],
)
def test_a_fraction_dropped_or_rounded_shows(function: str, change: str, showing: Case, silent: Case) -> None:
    prototype = lookup(function)
    assert changed(function, change, compute_baseline_case(prototype, showing)).caught_by
    assert not changed(function, change, compute_baseline_case(prototype, silent)).shown


def test_numbers_that_are_rounded_before_they_are_converted_show() -> None:
    case = Case("float32-one", Dtype.float32, {"input": TensorSpec((5,), Dtype.float32, normal())})
    text = "input.astype(np.float64) -> np.rint(input).astype(np.float64)"
    assert changed("diopiSin", text, compute_baseline_case(lookup("diopiSin"), case)).caught_by
