"""Results of a correct vendor whose matrix products round float32 factors to a narrower format, such as TF32.

Tests assert that these results pass if the vendor declares the format, and fail if it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_impl import Numerics
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.checks.values import compare
from diopi_test.oracle.arithmetic.array import Arithmetic, Rule
from diopi_test.oracle.arithmetic.change import carry_arrays
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case, describe_call
from diopi_test.oracle.evaluation import Evaluation, compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays
from diopi_test.oracle.reference import find_reference
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]
Change = Callable[[Array], Array]
"""Changes the elements of a factor."""


def round_significand(numbers: Array, bits: int) -> Array:
    """Return float32 numbers rounded to a number of significant bits, ties to even.

    Both parts of complex numbers are rounded.
    """
    if np.iscomplexobj(numbers):
        return round_significand(numbers.real, bits) + np.complex64(1j) * round_significand(numbers.imag, bits)
    dropped = 24 - bits
    words = np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.uint64)
    words += (1 << dropped - 1) - 1 + (words >> dropped & 1)
    rounded = (words >> dropped << dropped).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(numbers), rounded, numbers).astype(np.float32)


def to_tf32(numbers: Array) -> Array:
    """Return numbers rounded to TF32; both parts of complex numbers are rounded."""
    return round_significand(numbers, 11)


def multiply_rounded(change: Change) -> Rule:
    """Return the rule of products whose factors are changed and whose sums are accumulated in float32."""

    def multiply(function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]) -> Any:
        changed = [change(x) if isinstance(x, np.ndarray) else x for x in operands]
        product = np.asarray(function(*changed, **keywords))
        return product.astype(np.complex128 if product.dtype.kind == "c" else np.float64)

    return multiply


def compute_results(case: BaselineCase, rule: Rule) -> list[Array]:
    """Return the results of a vendor that computes matrix products by a rule, and all else correctly rounded."""
    function = find_reference(case.function)
    assert function is not None
    evaluation = Evaluation(lookup(case.function), function, describe_call(case))
    arithmetic = Arithmetic(dict.fromkeys([(np.matmul, "__call__"), (np.einsum, ""), (np.dot, "")], rule))
    carried = {name: carry_arrays(value, arithmetic, "fc") for name, value in case.plain_arguments().items()}
    with np.errstate(all="ignore"):
        expected = [entry for value in case.expected.values() for entry in expected_arrays(value)]
        results = evaluation.arrays(carried)
        return [np.asarray(x).astype(to_numpy(e.dtype)) for x, e in zip(results, expected, strict=True)]


def find_failures(case: BaselineCase, results: Sequence[Array]) -> list[str]:
    """Return a message for each result of a case that a run would find wrong."""
    expected = [entry for value in case.expected.values() for entry in expected_arrays(value)]
    problems = []
    for entry, actual in zip(expected, results, strict=True):
        comparison = compare(actual, entry)
        if comparison.is_wrong.any() or comparison.exceeds_rms_limit:
            problems.append(f"{case.id}: ratio {comparison.ratio}, root mean square {comparison.rms}")
    return problems


def cases_of(function: str, dtype: str, level: str = "full") -> list[BaselineCase]:
    """Return the cases of a function in an element type, except those that draw random numbers."""
    selected = (case for case in select_cases(function, level) if case.dtype.name == dtype)
    computed = (compute_baseline_case(lookup(function), case) for case in selected)
    return [case for case in computed if not case.draws]


def declare(cases: Sequence[BaselineCase], numerics: Numerics) -> list[BaselineCase]:
    """Return the cases with the budgets of a declared arithmetic."""
    return [derive_declared_case(case, numerics) for case in cases]
