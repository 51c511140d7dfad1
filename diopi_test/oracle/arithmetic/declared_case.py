"""`derive_declared_case`: the case that a vendor with a declared arithmetic must pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from diopi_impl.numerics.declaration import Numerics
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.arithmetic.accumulation import accumulation_errors, find_overflowing_sums
from diopi_test.oracle.arithmetic.change import Change, Deviations, measure_change
from diopi_test.oracle.arithmetic.emulation import emulation_error, leaves_range
from diopi_test.oracle.arithmetic.products import represents
from diopi_test.oracle.budget import EXACT, Budget
from diopi_test.oracle.evaluation import Evaluation
from diopi_test.oracle.records import BaselineCase, DeclaredPrecision, Expected, expected_arrays
from diopi_test.oracle.reference import find_reference
from lib_rt.formats import FloatArray, format_of, is_inexact, ulp

SINGLE = (Dtype.float32, Dtype.complex64)
"""The element types whose products a vendor may compute with rounded factors."""

HALF = (Dtype.float16, Dtype.bfloat16)
"""The half-precision types."""

DOUBLE = (Dtype.float64, Dtype.complex128)
"""The element types that are computed in double precision."""

ARITHMETIC = "declared arithmetic"
"""A part of the seed of the directions of declared errors: they differ from the other random numbers of a case."""

DROPOUT_PROBABILITIES = ("p_dropout", "dropout_p")
"""The names of the probability with which functions of attention drop a weight."""


def measure_case(case: BaselineCase, numerics: Numerics) -> Sequence[Change] | None:
    """Return how much a declared arithmetic changes the results of a case, in the order of the results.

    Args:
        case: The case.
        numerics: The declared arithmetic.

    Returns:
        The changes; None if the arithmetic does not affect the case, if the results are random or have no reference,
        or if their shapes depend on the arithmetic. If a random function gives a certain result in this case, such as
        dropout with probability 0, the result does not count as random.
    """
    deviations = find_deviations(case, numerics)
    prototype, function = lookup(case.function), find_reference(case.function)
    if not deviations or function is None or (prototype.guarantee == "random" and case.needs_validator):
        return None
    evaluation = Evaluation(prototype, function, describe_call(case))
    plain = case.plain_arguments()
    if case.draws:  # another draw drops other elements, so the changes of all elements are needed
        plain |= {name: 0.0 for name in DROPOUT_PROBABILITIES if name in plain}
    changes = None
    if deviations.changes_operations or deviations.emulates_float64:
        make_rng = partial(random_generator, case.id, ARITHMETIC)
        changes = measure_change(evaluation.arrays, plain, deviations, make_rng)
    if deviations.half is not None or deviations.emulates_float64:
        errors = _rounding_errors(evaluation, plain, deviations)
        changes = errors if changes is None else [a + b for a, b in zip(changes, errors, strict=True)]
    return changes if changes is not None and any(changes) else None


def _rounding_errors(evaluation: Evaluation, plain: Mapping[str, Any], deviations: Deviations) -> list[Change]:
    """Return the errors of sums that are accumulated in half precision, or else of emulated float64 results."""
    arrays, terms = evaluation.arrays_and_terms(plain)
    if deviations.half is not None:
        errors = accumulation_errors(terms, evaluation.terms, plain, deviations.half)
        overflows = find_overflowing_sums(arrays, evaluation.arrays, plain, deviations.half)
        return [Change(error, overflow & (error > 0)) for error, overflow in zip(errors, overflows, strict=True)]
    return [
        Change(emulation_error(array, array_terms), leaves_range(array))
        for array, array_terms in zip(arrays, terms, strict=True)
    ]


def derive_declared_case(case: BaselineCase, numerics: Numerics) -> BaselineCase:
    """Return a case with the error budgets and the checks of a declared arithmetic.

    The reference is evaluated in several rounds in the declared arithmetic. The unit of each element becomes the stored
    unit plus the largest change of the element in these rounds (docs/budgets.md). An element that must be exact and
    does not change stays exact. An integer or truth value that changes is unspecified, and so is a number that becomes
    infinite or NaN.

    Args:
        case: The case with the budgets of IEEE 754 arithmetic.
        numerics: The declared arithmetic.

    Returns:
        The case; the same object if the arithmetic does not affect it.
    """
    changes = measure_case(case, numerics)
    return declare_checks(case if changes is None else apply_changes(case, changes), numerics)


def declare_checks(case: BaselineCase, numerics: Numerics) -> BaselineCase:
    """Return a case that is checked as a declared arithmetic permits.

    The arithmetic may permit a vendor to flush subnormal numbers, to lose the signs of zeros, and to vary the order of
    sums between calls. It also determines the errors that a validator allows for.

    Args:
        case: The case.
        numerics: The declared arithmetic.

    Returns:
        The case; the same object if the arithmetic does not affect the checks of its function.
    """
    varies = numerics.sum_order.get(lookup(case.function).family) == "run-to-run"
    may_flush, has_signed_zeros = numerics.subnormals != "keep", numerics.signed_zeros == "keep"
    case = _declare_precision(case, numerics)
    if may_flush and has_signed_zeros and not varies:
        return case

    def declare(value: Expected | list[Expected] | None) -> Any:
        """Return the expected result, or each entry of an array, with the permissions of the arithmetic."""
        if isinstance(value, list):
            return [declare(entry) for entry in value]
        if value is None:
            return None
        flushed = value.flushed if may_flush else None
        return replace(value, flushed=flushed, may_flush=may_flush, has_signed_zeros=has_signed_zeros)

    expected = {name: declare(value) for name, value in case.expected.items()}
    return replace(case, expected=expected, has_unordered_sums=varies)


def _declare_precision(case: BaselineCase, numerics: Numerics) -> BaselineCase:
    """Return a case with the declared errors that its validator allows for; the same object if there are none."""
    deviations = find_deviations(case, numerics)
    if not (deviations.has_elementary or deviations.half) or not case.needs_validator:
        return case
    elementary = numerics.elementary if deviations.has_elementary else {}
    epsilon = deviations.half.epsilon if deviations.half else 0.0
    return replace(case, precision=DeclaredPrecision(elementary=elementary, sum_epsilon=epsilon))


def find_deviations(case: BaselineCase, numerics: Numerics) -> Deviations:
    """Return the deviations of an arithmetic that may affect a case, judged by the function and the element types.

    In a half-precision case with a result in float32, an implementation may convert the factors to float32 and multiply
    them as declared. It must not lose bits of the factors, so the format must represent all numbers of their type.
    """
    results = {entry.dtype for value in case.expected.values() for entry in expected_arrays(value)}
    prototype = lookup(case.function)
    declared = numerics.products_of(prototype.family) if prototype.multiplies_matrices else "ieee"
    rounds_factors = case.dtype in SINGLE or (
        case.dtype in HALF and Dtype.float32 in results and represents(declared, format_of(case.dtype))
    )
    has_float32 = case.dtype not in DOUBLE and not results & set(DOUBLE)
    return Deviations(
        numerics=numerics,
        products=declared if rounds_factors else "ieee",
        has_elementary=has_float32 and any(map(bool, numerics.elementary.values())),
        convolutions=numerics.convolutions if has_float32 and prototype.family == "conv" else frozenset({"direct"}),
        stored=format_of(case.dtype if is_inexact(case.dtype) else Dtype.float32),
        half=format_of(case.dtype) if case.dtype in HALF and numerics.half_accumulation == "half" else None,
        emulates_float64=case.dtype in DOUBLE and numerics.float64 == "emulated",
        converts_integers=not is_inexact(case.dtype),
    )


def describe_call(case: BaselineCase) -> Case:
    """Return the description of a case's call that the evaluation of its reference needs."""
    return Case(case.label, case.dtype, case.arguments, results=_find_overrides(case.expected))


def _find_overrides(expected: Mapping[str, Expected | list[Expected] | None]) -> dict[str, ResultOverride | None]:
    """Return the caller's choices for the results that are single tensors: element type and shape; None if omitted."""
    return {
        name: None if value is None else ResultOverride(dtype=value.dtype, shape=value.values.shape)
        for name, value in expected.items()
        if not isinstance(value, list)
    }


def apply_changes(case: BaselineCase, changes: Sequence[Change]) -> BaselineCase:
    """Return a case whose expected results allow the changes, which are listed in the order of the results."""
    remaining = iter(changes)

    def widen(value: Expected | list[Expected] | None) -> Any:
        """Return the expected result, or each entry of an array, with its change allowed; take the next changes."""
        if isinstance(value, list):
            return [_allow(entry, next(remaining)) for entry in value]
        return None if value is None else _allow(value, next(remaining))

    return replace(case, expected={name: widen(value) for name, value in case.expected.items()})


def _allow(expected: Expected, change: Change) -> Expected:
    """Return an expected result that allows a change.

    The change of a result with a validator is stored in `Expected.change`. Otherwise, elements that differ are
    unspecified, and the budget is widened by the size of the change.
    """
    if expected.needs_validator:
        return replace(expected, change=change.size) if (change.size > 0).any() else expected
    differs = change.differs if is_inexact(expected.dtype) else change.differs | (change.size > 0)
    if differs.any():
        specified = ~differs if expected.specified is None else expected.specified & ~differs
        expected = replace(expected, specified=specified)
    if not is_inexact(expected.dtype) or not (change.size > 0).any():
        return expected
    return replace(expected, budget=_widen_budget(expected, change.size))


def _widen_budget(expected: Expected, size: FloatArray) -> Budget:
    """Return the budget plus the absolute changes `size`; an exact element that changes gets an ulp plus its change."""
    spacing = ulp(expected.values, expected.dtype)
    unit = EXACT * spacing if expected.budget is None else expected.budget.unit
    is_exact = Budget(unit).is_exact(expected.values, expected.dtype)
    with np.errstate(all="ignore"):
        widened = np.where(is_exact, spacing, unit) + size
    return Budget(np.where(size > 0, np.minimum(widened, np.finfo(np.float64).max), unit))
