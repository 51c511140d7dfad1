"""Mutants of numbers and their types: cases kill them where they matter, and only there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, RoundMode
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.domains import choice, integer_values, normal
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.quality.mutation.formula import formula_mutants
from diopi_test.quality.mutation.matrix import MutantResult, run_mutant
from diopi_test.quality.mutation.mutant import Effect, SimulatedCall
from diopi_test.quality.mutation.numbers import number_mutants


def run_number_mutant(function: str, name: str, *cases: Case) -> MutantResult:
    """Run cases against a mutant of number conversions."""
    baseline_cases = [compute_baseline_case(lookup(function), case) for case in cases]
    return run_mutant(next(mutant for mutant in number_mutants(function) if mutant.name == name), baseline_cases)


def tensor_case(dtype: Dtype, values: Sequence[Any], **attributes: Any) -> Case:
    """Return a case with one tensor that repeats these values, and with these attributes."""
    return Case(f"{dtype.name}-made-up", dtype, {"input": TensorSpec((6,), dtype, choice(values)), **attributes})


@pytest.mark.parametrize(
    ("function", "mutant", "killing", "equivalent"),
    [
        (
            "diopiPow",
            "exponent reduced modulo 64",
            tensor_case(Dtype.int64, [2, 3], exponent=65),
            tensor_case(Dtype.int64, [2, 3], exponent=5),
        ),
        (
            "diopiAddScalar",
            "other truncated to 32 bits",
            tensor_case(Dtype.int64, [1, 2], other=2**40, alpha=1),
            tensor_case(Dtype.int64, [1, 2], other=2**30, alpha=1),
        ),
        (
            "diopiAddScalar",
            "other converted to float32 and back",
            tensor_case(Dtype.int32, [1, 2], other=2**24 + 1, alpha=1),
            tensor_case(Dtype.int32, [1, 2], other=2**24 + 2, alpha=1),
        ),
        (
            "diopiAddScalar",
            "input converted to float64 and back",
            tensor_case(Dtype.int64, [2**53 + 1], other=1, alpha=1),
            tensor_case(Dtype.int64, [2**53 + 2], other=1, alpha=1),
        ),
        (
            "diopiMulScalar",
            "other converted to float32 and back",
            tensor_case(Dtype.float64, [1.0, 3.0], other=0.1),
            tensor_case(Dtype.float32, [1.0, 3.0], other=0.1),
        ),
        (
            "diopiClampScalar",
            "max truncated to integers",
            tensor_case(Dtype.int32, [7, 9], min=None, max=2.5),
            tensor_case(Dtype.int32, [7, 9], min=None, max=2),
        ),
        (
            "diopiClampScalar",
            "max rounded to integers",
            tensor_case(Dtype.int32, [7, 9], min=None, max=2.75),
            tensor_case(Dtype.float32, [7, 9], min=None, max=2.75),
        ),
        (
            "diopiHardtanh",
            "scalars rounded instead of truncated",
            tensor_case(Dtype.int32, [-9, 9], min_val=-2, max_val=2.75),
            tensor_case(Dtype.int32, [-9, 9], min_val=-2, max_val=2.25),
        ),
    ],
)
def test_number_mutant_is_killed_where_it_matters(function: str, mutant: str, killing: Case, equivalent: Case) -> None:
    assert run_number_mutant(function, mutant, killing).killed_by == (killing.label, ("values",))
    assert not run_number_mutant(function, mutant, equivalent).change_count


def subtraction(first: Dtype, second: Dtype) -> Case:
    """Return a case of a difference of tensors with two element types."""
    tensors = {"input": TensorSpec((8,), first, integer_values(-9, 9)), "other": TensorSpec((8,), second, normal())}
    return Case(f"{first.name}-with-{second.name}", first, {**tensors, "alpha": 1})


def test_operands_of_two_types_kill_conversion_to_the_type_of_the_first() -> None:
    mutant = "operands converted to the type of the first"
    assert run_number_mutant("diopiSub", mutant, subtraction(Dtype.int32, Dtype.float32)).killed_by
    assert not run_number_mutant("diopiSub", mutant, subtraction(Dtype.float32, Dtype.float32)).change_count
    assert not run_number_mutant("diopiSub", mutant, subtraction(Dtype.float32, Dtype.float16)).change_count


@pytest.mark.parametrize(("shape", "effect"), [((), Effect.changed), ((1,), Effect.not_applicable)])
def test_0d_operand_kills_conversion_to_the_type_of_the_others(shape: tuple[int, ...], effect: Effect) -> None:
    """The number 3000.5 is not representable in float16."""
    tensors = {
        "input": TensorSpec((8,), Dtype.float16, integer_values(-9, 9)),
        "other": TensorSpec(shape, Dtype.float32, choice([3000.5])),
    }
    case = Case("float16-with-one", Dtype.float16, {**tensors, "alpha": 1})
    result = run_number_mutant("diopiSub", "0-d operands converted to the type of the others", case)
    assert result.effects == {effect: 1}
    assert (result.killed_by is not None) == (effect is Effect.changed)


def comparison(first: Dtype, second: Dtype) -> Mapping[str, TensorSpec]:
    """Return arguments of a comparison: numbers that half precision can't distinguish."""
    return {"input": TensorSpec((4,), first, choice([2049])), "other": TensorSpec((4,), second, choice([2048]))}


def test_narrower_common_type_kills_operands_that_are_not_converted() -> None:
    """The number 2049 rounds to 2048 in float16."""
    case = compute_baseline_case(
        lookup("diopiEq"), Case("int32-rounded", Dtype.int32, comparison(Dtype.int32, Dtype.float16))
    )
    rounded = replace(case, expected={"out": Expected(values=np.ones(4, bool), dtype=Dtype.bool)})
    mutant = next(m for m in number_mutants("diopiEq") if m.name == "arguments not converted before computing")
    assert mutant.corrupt(SimulatedCall.from_expected(rounded)) is Effect.changed
    assert run_mutant(mutant, [rounded]).killed_by == ("int32-rounded", ("values",))
    exact = Case("int32-exact", Dtype.int32, comparison(Dtype.int32, Dtype.int64))
    assert not run_number_mutant("diopiEq", mutant.name, exact).change_count


def steps(dtype: Dtype, end: float) -> Case:
    """Return a case of `diopiLinspace` with five elements."""
    override = {"out": ResultOverride(dtype, shape=(5,))}
    return Case(f"{dtype.name}-up", dtype, {"start": 0.0, "end": end, "steps": 5}, results=override)


def test_result_type_of_the_caller_kills_computation_in_the_standards_type() -> None:
    mutant = "computed in the standard's result type, then converted"
    assert run_number_mutant("diopiLinspace", mutant, steps(Dtype.int32, 9.5)).killed_by == ("int32-up", ("values",))
    assert not run_number_mutant("diopiLinspace", mutant, steps(Dtype.float32, 9.5)).change_count


def run_formula_mutant(function: str, text: str, case: BaselineCase) -> MutantResult:
    """Run a case against the mutant of a formula whose name contains a text."""
    mutant = next(mutant for mutant in formula_mutants(function) if text in mutant.name)
    return run_mutant(mutant, [case])


def quotient(*numerators: float) -> Case:
    """Return a case of a truncated division by 2."""
    tensors = {
        "input": TensorSpec((6,), Dtype.float32, choice(numerators)),
        "other": TensorSpec((6,), Dtype.float32, choice([2.0])),
    }
    return Case("float32-trunc", Dtype.float32, {**tensors, "rounding_mode": RoundMode.trunc}, exact=True)


@pytest.mark.parametrize(
    ("function", "change", "killing", "equivalent"),
    [
        ("diopiDiv", "np.trunc -> np.rint", quotient(-7.0, 7.0), quotient(-8.0, 8.0)),
        ("diopiDiv", "np.trunc -> np.floor", quotient(-7.0, 7.0), quotient(7.0, 9.0)),
        ("diopiDiv", "divisor) * 0.99", quotient(-8.0, 8.0), quotient(-7.0, 7.0)),
    ],
)
def test_mutant_that_rounds_a_quotient_is_killed(function: str, change: str, killing: Case, equivalent: Case) -> None:
    prototype = lookup(function)
    assert run_formula_mutant(function, change, compute_baseline_case(prototype, killing)).killed_by
    assert not run_formula_mutant(function, change, compute_baseline_case(prototype, equivalent)).change_count


def test_mutant_that_rounds_before_converting_is_killed() -> None:
    case = Case("float32-one", Dtype.float32, {"input": TensorSpec((5,), Dtype.float32, normal())})
    text = "input.astype(np.float64) -> np.rint(input).astype(np.float64)"
    assert run_formula_mutant("diopiSin", text, compute_baseline_case(lookup("diopiSin"), case)).killed_by
