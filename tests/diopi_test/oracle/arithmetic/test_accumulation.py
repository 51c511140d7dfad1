"""Test which results have larger errors if half-precision sums are accumulated in half precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling import sampled

import baseline_data
from diopi_impl import Numerics
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.baseline.level import open_level
from diopi_test.oracle.arithmetic.accumulation import find_overflowing_sums
from diopi_test.oracle.arithmetic.array import Arithmetic, Operation, Rule
from diopi_test.oracle.arithmetic.change import carry_arrays
from diopi_test.oracle.arithmetic.declared_case import HALF, derive_declared_case, describe_call
from diopi_test.oracle.evaluation import Evaluation
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference import find_reference
from lib_rt.formats import FORMATS

DECLARED = Numerics(name="half", half_accumulation="half")

SUMS: tuple[Operation, ...] = (
    (np.add, "reduce"),
    (np.add, "accumulate"),
    (np.matmul, "__call__"),
    (np.einsum, ""),
    (np.dot, ""),
    (np.tensordot, ""),
    (np.cumsum, ""),
)
"""The operations with which references add up elements."""

SUMS_WITHIN_BUDGET = ["diopiBallQueryMmcv", "diopiChamferDistanceMmcv", "diopiStackBallQueryMmcv", "diopiThreeNnMmcv"]
"""The functions that add up elements and keep their budgets: sums of three squares, whose errors are within them."""


@cache
def half_cases(function: str) -> list[BaselineCase]:
    """Return some cases of a function in half precision, of the level that ships."""
    level = open_level(Path(baseline_data.__file__).parent / "smoke")
    if function not in level.functions:
        return []
    return [case for case in level.open(function) if case.dtype in HALF and case.case_class.is_demanded][:4]


def adds_elements(case: BaselineCase) -> bool:
    """Return whether the reference of a case adds up elements."""
    sums = []

    def record(operation: Operation) -> Rule:
        """Return a rule that records a sum of at least two floating-point numbers."""

        def compute(function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]) -> Any:
            result = function(*operands, **keywords)
            is_numeric = np.asarray(result).dtype.kind in "fc" and np.size(result) > 0
            if is_numeric and (operation[1] != "reduce" or np.size(operands[0]) > np.size(result)):
                sums.append(operation)
            return result

        return compute

    arithmetic = Arithmetic({operation: record(operation) for operation in SUMS})
    function = find_reference(case.function)
    assert function is not None
    carried = {name: carry_arrays(value, arithmetic, "fc") for name, value in case.plain_arguments().items()}
    Evaluation(lookup(case.function), function, describe_call(case)).arrays(carried)
    return bool(sums)


def has_larger_errors(function: str) -> bool:
    """Return whether the declaration changes a case of a function."""
    return any(derive_declared_case(case, DECLARED) is not case for case in half_cases(function))


@pytest.mark.parametrize(
    "function",
    ["diopiErfinv", "diopiGelu", "diopiGeluBackward", "diopiSiluBackward", "diopiRotaryEmbedding", "diopiMul"],
)
def test_element_wise_functions_keep_their_budgets(function: str) -> None:
    assert half_cases(function)
    assert not has_larger_errors(function)


@pytest.mark.parametrize(
    "function", ["diopiSum", "diopiSoftmax", "diopiRMSNorm", "diopiUpsampleLinear", "diopiCol2Im", "diopiMm"]
)
def test_sums_have_larger_budgets(function: str) -> None:
    assert has_larger_errors(function)


@pytest.mark.parametrize("function", sampled(list(prototypes()), 5, slow=15))
def test_a_function_that_adds_elements_has_larger_budgets_or_a_reason(function: str) -> None:
    if any(map(adds_elements, half_cases(function))):
        assert has_larger_errors(function) is (function not in SUMS_WITHIN_BUDGET)


ADDENDS = np.array([[40_000.0, 40_000.0, -40_000.0], [40_000.0, 20_000.0, -40_000.0], [60_000.0, 60_000.0, 60_000.0]])
"""Rows of float16 numbers: in the first, only a partial sum overflows, in the second no sum, in the third the sum."""


@pytest.mark.parametrize(("dtype", "expected"), [(Dtype.float16, [True, False, False]), (Dtype.bfloat16, [False] * 3)])
def test_only_finite_sums_with_infinite_partial_sums_overflow(dtype: Dtype, expected: list[bool]) -> None:
    [overflows] = find_overflowing_sums(
        [ADDENDS.sum(1)], lambda values: [values["input"].sum(1)], {"input": ADDENDS}, FORMATS[dtype]
    )
    assert overflows.tolist() == expected
