"""The check of the values of results: exact where the standard requires it, else within the error budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT
from diopi_test.checks import location
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import CheckResult, RoundingErrors
from diopi_test.oracle.budget import Budget, K
from diopi_test.oracle.records import Expected
from diopi_test.oracle.rms_limit import MIN_ELEMENTS, rms_limit
from diopi_test.oracle.subnormals import must_keep_subnormals
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FloatArray, format_of

Mask = NDArray[np.bool_]
"""A Boolean array with the shape of a result, which selects elements."""

MAX_POOLED = 1 << 16
"""The maximum number of rounded elements from which the root mean square of a result is computed. In larger results, it
is computed from every n-th element, unless the errors of all elements exceed the limit."""


@final
@dataclass(frozen=True, kw_only=True)
class ResultComparison:
    """The comparison of a result with its expectation.

    Attributes:
        is_wrong: which elements are outside their budget.
        ratio: the largest error / (K · unit), where unit = s + ulp + eps·m. It is infinite if a NaN, an infinity or the
            sign of a zero is wrong, and None if the elements must be exact or there are none.
        errors: the errors of the distinct elements that may be rounded; None if all elements are exact.
        flushed: the number of elements that are accepted although subnormal numbers were replaced by zero: the elements
            themselves, or inputs from which they are computed.
    """

    is_wrong: Mask
    ratio: float | None = None
    errors: RoundingErrors | None = None
    flushed: int = 0

    @property
    def rms(self) -> float | None:
        """The root mean square of error / unit over distinct rounded elements; None for too few elements."""
        return self.errors.rms if self.errors is not None and self.errors.elements >= MIN_ELEMENTS else None

    @property
    def exceeds_rms_limit(self) -> bool:
        """Whether the root mean square of the errors is above its limit."""
        return self.errors is not None and self.errors.excess > 1


def check(run: CallRecord) -> CheckResult:
    """Check that every result element is within its budget, and the errors' root mean square within its limit.

    Elements without a budget must be exact. The check `validity` covers results that need a validator.

    Args:
        run: the record of the call.

    Returns:
        The result of the check.
    """
    results = list(_comparable_results(run))
    comparisons = [result.compare() for result in results]
    pairs = zip(results, comparisons, strict=True)
    problems = [problem for result, comparison in pairs for problem in _find_problems(run, result, comparison)]
    comparable = [comparison for comparison in comparisons if comparison is not None]
    ratios = [math.inf if comparison is None else _largest_ratio(comparison) for comparison in comparisons]
    flushed = sum(comparison.flushed for comparison in comparable)
    note = f"{flushed} subnormal elements flushed to zero" if flushed else ""
    return CheckResult(
        check="values",
        passed=not problems,
        message="; ".join(text for text, _ in problems) or note,
        ratio=max((ratio for ratio in ratios if ratio is not None), default=None),
        rms=max((comparison.rms for comparison in comparable if comparison.rms is not None), default=None),
        errors=tuple(comparison.errors for comparison in comparable if comparison.errors is not None),
        differences=tuple(place for _, place in problems if place is not None)[: location.MAX_LOCATIONS],
    )


def _find_problems(
    run: CallRecord, result: _ComparableResult, comparison: ResultComparison | None
) -> Iterator[tuple[str, Difference | None]]:
    """Yield each problem of a result, and its place; None for problems that have no place or the same place.

    Args:
        run: the record of the call.
        result: the result.
        comparison: the comparison of the elements; None if there are more or fewer elements than expected.
    """
    if comparison is None:
        yield f"{result.name} has {result.actual.size} elements, expected {result.expected.values.size}", None
        return
    if comparison.is_wrong.any():
        place = _locate_wrong(run, result, comparison.is_wrong, "are wrong")
        yield _describe(place), place
    if comparison.errors is not None and comparison.exceeds_rms_limit:
        limit = comparison.errors.limit
        text = f"have errors above {limit:.3g} {'unit' if limit == 1 else 'units'}"
        is_located = comparison.is_wrong.any()
        outliers = None if is_located else _locate_wrong(run, result, _outliers(result, limit), text)
        yield f"the errors of {result.name} have {comparison.errors.describe_excess()}", outliers


def _largest_ratio(comparison: ResultComparison) -> float | None:
    """Return the largest error / budget; for an exact result, return infinity if an element is wrong, else None."""
    return math.inf if comparison.ratio is None and comparison.is_wrong.any() else comparison.ratio


@final
@dataclass(frozen=True, kw_only=True)
class _ComparableResult:
    """A result of a call with a single valid value.

    Attributes:
        name: the name of the result.
        actual: the actual elements.
        expected: the expected result.
        strides: the strides of the result's tensor; empty for a number.
    """

    name: str
    actual: NDArray[Any]
    expected: Expected
    strides: Sequence[int] = ()

    @property
    def shaped(self) -> NDArray[Any]:
        """The actual result in the expected shape; the two shapes differ at most in axes of size 1."""
        return self.actual.reshape(self.expected.values.shape)

    def compare(self) -> ResultComparison | None:
        """Compare the result with its expectation; return None if the numbers of elements differ."""
        return compare(self.shaped, self.expected) if self.actual.size == self.expected.values.size else None


def _comparable_results(run: CallRecord) -> Iterator[_ComparableResult]:
    """Yield the results of a call that do not need a validator: tensors, and values returned through pointers."""
    keeps_subnormals = run.prototype.moves_numbers and must_keep_subnormals(run.case)
    for record, expected in run.results():
        if not expected.needs_validator:
            if keeps_subnormals:
                expected = replace(expected, may_flush=False, flushed=None)
            strides = record.strides if record.shape == expected.values.shape else ()
            yield _ComparableResult(name=record.name, actual=record.values, expected=expected, strides=strides)
    for value in run.values:
        yield _ComparableResult(name=value.name, actual=np.asarray(value.actual), expected=value.expected)


@np.errstate(invalid="ignore")  # poison is a signaling NaN
def compare(actual: NDArray[Any], expected: Expected) -> ResultComparison:
    """Compare the specified elements of a result with the expected elements.

    Args:
        actual: the actual elements, in the shape of the expected ones.
        expected: the expected result.

    Returns:
        The comparison. Unspecified elements are never wrong.
    """
    if not expected.has_signed_zeros:
        actual = _with_expected_zeros(actual, expected.values)
    if (is_specified := expected.specified) is None:
        return _compare_elements(actual, expected)
    comparison = _compare_elements(actual[is_specified], _select_specified(expected, is_specified))
    is_wrong = np.zeros(is_specified.shape, bool)
    is_wrong[is_specified] = comparison.is_wrong
    return replace(comparison, is_wrong=is_wrong)


def _with_expected_zeros(actual: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return a real result in which zeros have the sign of the expected zero; return a complex result unchanged."""
    if actual.dtype.kind not in "f" or values.dtype.kind not in "f":
        return actual
    return np.where((actual == 0) & (values == 0), values.astype(actual.dtype), actual)


def _select_specified(expected: Expected, is_specified: Mask) -> Expected:
    """Return the expected result of the elements that `is_specified` selects, as a flat array."""
    budget = None if expected.budget is None else expected.budget.select(is_specified)
    flushed = None if expected.flushed is None else expected.flushed[is_specified]
    return replace(expected, values=expected.values[is_specified], budget=budget, flushed=flushed, specified=None)


def _compare_elements(actual: NDArray[Any], expected: Expected) -> ResultComparison:
    """Return the comparison of all elements of a result, within the budget or exactly.

    Subnormal numbers that are flushed as the standard permits count as correct.
    """
    if expected.budget is None and expected.dtype in COMPONENT:
        return _compare_parts(actual, expected)
    if expected.values.dtype.kind not in "fc":
        is_wrong = actual != expected.values
        if expected.flushed is None or not is_wrong.any():
            return ResultComparison(is_wrong=is_wrong)
        flushed = is_wrong & (actual == expected.flushed)
        return ResultComparison(is_wrong=is_wrong & ~flushed, flushed=int(flushed.sum()))
    if expected.budget is None:
        is_wrong = ~_are_equal(actual, _to_result_type(expected.values, expected))
        if not is_wrong.any():
            return ResultComparison(is_wrong=is_wrong)
        flushed = is_wrong & _is_flushed_exactly(actual, expected)
        return ResultComparison(is_wrong=is_wrong & ~flushed, flushed=int(flushed.sum()))
    actual = actual.astype(np.complex128 if actual.dtype.kind == "c" else np.float64)
    units = _errors_in_units(actual, expected)
    exceeds_budget = units > 1
    flushed = exceeds_budget & _is_flushed(actual, expected) if exceeds_budget.any() else exceeds_budget
    if flushed.any():
        units = np.where(flushed, 0, units)
    return ResultComparison(
        is_wrong=units > K,
        ratio=_ratio_to_budget(units),
        errors=_rounding_errors(units, expected),
        flushed=int(flushed.sum()),
    )


def _compare_parts(actual: NDArray[Any], expected: Expected) -> ResultComparison:
    """Return the comparison of an exact complex result, part by part; the signs of zero parts are ignored."""

    def compare_part(part: Any) -> ResultComparison:
        """Compare the real or the imaginary parts, which `part` extracts."""
        flushed = None if expected.flushed is None else part(expected.flushed) + 0.0
        values, dtype = part(expected.values) + 0.0, COMPONENT[expected.dtype]
        return _compare_elements(part(actual) + 0.0, replace(expected, values=values, dtype=dtype, flushed=flushed))

    real, imaginary = compare_part(np.real), compare_part(np.imag)
    return ResultComparison(is_wrong=real.is_wrong | imaginary.is_wrong, flushed=real.flushed + imaginary.flushed)


def _to_result_type(values: NDArray[Any], expected: Expected) -> NDArray[Any]:
    """Return values in the element type of the expected result."""
    with np.errstate(all="ignore"):
        return values.astype(to_numpy(expected.dtype))


def _are_equal(actual: NDArray[Any], expected: NDArray[Any]) -> Mask:
    """Return a mask of the elements that are equal, including the sign of zero, or both NaN."""
    return ((actual == expected) & _has_same_sign(actual, expected)) | (np.isnan(actual) & np.isnan(expected))


def _is_flushed_exactly(actual: NDArray[Any], expected: Expected) -> Mask:
    """Return a mask of the elements of an exact result that are 0 or have their `flushed` value, as they may."""
    if not expected.may_flush:
        return np.zeros(actual.shape, bool)
    tiny = np.abs(expected.values) < format_of(expected.dtype).tiny
    alternative = False if expected.flushed is None else _are_equal(actual, _to_result_type(expected.flushed, expected))
    return (tiny & (actual == 0) & (expected.values != 0)) | alternative


def _is_flushed(actual: NDArray[Any], expected: Expected) -> Mask:
    """Return a mask of the elements that are within the budget if subnormal numbers are flushed to zero.

    Either the expected element, or a part of it, is subnormal or nearly so, and the actual one is zero. Or the element
    is within the budget of the value that results if subnormal inputs are replaced by zero.
    """
    if not expected.may_flush:
        return np.zeros(actual.shape, bool)
    restored, is_restored = _restore_flushed(
        actual, expected.values, format_of(expected.dtype).tiny + _required_budget(expected).limit
    )
    flushed = is_restored & (_errors_in_units(restored, expected) <= K)
    if expected.flushed is None:
        return flushed
    budget = _required_budget(expected).rescale(expected.values, expected.flushed, expected.dtype)
    return flushed | (_errors_in_units(actual, replace(expected, values=expected.flushed, budget=budget)) <= K)


def _restore_flushed(actual: NDArray[Any], values: NDArray[Any], limit: FloatArray) -> tuple[NDArray[Any], Mask]:
    """Return a result in which zeros are replaced by the expected values where these are smaller than a limit.

    The parts of complex numbers are treated separately.

    Args:
        actual: the actual elements.
        values: the expected elements.
        limit: the limit of each element.

    Returns:
        The elements, and a mask of those that were replaced.
    """
    if np.iscomplexobj(actual) or np.iscomplexobj(values):
        real, is_real = _restore_flushed(actual.real, values.real, limit)
        imaginary, is_imaginary = _restore_flushed(actual.imag, values.imag, limit)
        restored = actual.astype(np.complex128)
        restored.real, restored.imag = real, imaginary
        return restored, is_real | is_imaginary
    with np.errstate(all="ignore"):
        is_restored: Mask = (actual == 0) & (values != 0) & (np.abs(values) < limit)
    return np.where(is_restored, values, actual), is_restored


def _required_budget(expected: Expected) -> Budget:
    """Return the budget of a result that may be rounded."""
    assert expected.budget is not None
    return expected.budget


def _errors_in_units(actual: NDArray[Any], expected: Expected) -> FloatArray:
    """Return the error of each element in units of s + ulp + eps·m.

    The error is infinite if a NaN, an infinity or the sign of a zero is wrong. A zero that results from a cancellation
    of normal numbers, as its budget shows, may have either sign.
    """
    reference, budget = expected.values, _required_budget(expected)
    with np.errstate(all="ignore"):
        units = budget.in_units(np.abs(_subtract(actual, reference)))
        if not np.isfinite(units).all():
            units = _with_special_values(units, actual, expected)
        zeros = (actual == 0) & (reference == 0)
        if zeros.any():
            cancels = budget.covers_subnormals(expected.dtype)
            units = np.where(zeros & ~cancels & ~_has_same_sign(actual, reference), np.inf, units)
    return units


def _with_special_values(units: FloatArray, actual: NDArray[Any], expected: Expected) -> FloatArray:
    """Return `units` with the errors of infinities and NaN: 0 if the element is correct, else infinity.

    An infinity with the correct sign is also correct if the expected value is finite, but the value plus its error
    exceeds the largest number of the type.
    """
    reference = expected.values
    # if a complex number overflows, a part of it may be NaN, as the difference of two infinities
    infinite = ~np.isfinite(actual) if np.iscomplexobj(actual) else np.isinf(actual)
    overflowed = (
        infinite
        & np.isfinite(reference)
        & (np.abs(reference) + _required_budget(expected).limit >= format_of(expected.dtype).overflow)
    )
    is_correct = _are_equal(actual, reference) | (overflowed & _has_same_sign(actual, reference))
    return np.where(is_correct, 0, np.where(np.isfinite(units), units, np.inf))


def _subtract(actual: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    """Return actual − reference; for complex numbers, a part is 0 if it is the same infinity or NaN in both."""
    difference = np.asarray(actual - reference)
    if np.iscomplexobj(difference):
        for part in (np.real, np.imag):
            part(difference)[
                (part(actual) == part(reference)) | (np.isnan(part(actual)) & np.isnan(part(reference)))
            ] = 0
    return difference


def _has_same_sign(actual: NDArray[Any], reference: NDArray[Any]) -> Mask:
    """Return a mask of the elements with equal signs; complex numbers have no sign."""
    if np.iscomplexobj(actual) or np.iscomplexobj(reference):
        return np.ones(reference.shape, bool)
    return np.signbit(actual) == np.signbit(reference)


def _ratio_to_budget(units: FloatArray) -> float | None:
    """Return the largest error / budget; None if there are no elements."""
    return float(units.max()) / K if units.size else None


def _rounding_errors(units: FloatArray, expected: Expected) -> RoundingErrors | None:
    """Return the errors of the distinct elements that may be rounded; None if there are none.

    Elements that are computed from equal numbers have equal errors. Therefore elements with equal expected values count
    once, with the mean of their squares.
    """
    rounded = ~_required_budget(expected).is_exact(expected.values, expected.dtype)
    with np.errstate(over="ignore"):  # wrong results can be far from the expected ones
        squares = np.square(units[rounded])
    values = expected.values[rounded]
    if not squares.size:
        return None
    is_far = np.mean(squares) > rms_limit(expected.dtype, squares.size) ** 2
    step = 1 if is_far else -(-squares.size // MAX_POOLED)
    _, places = np.unique(values[::step], return_inverse=True)
    distinct = np.bincount(places.reshape(-1), squares[::step]) / np.bincount(places.reshape(-1))
    return RoundingErrors(dtype=expected.dtype, elements=distinct.size, rms=float(np.sqrt(np.mean(distinct))))


def _locate_wrong(run: CallRecord, result: _ComparableResult, is_wrong: Mask, problem: str) -> Difference:
    """Return where the wrong elements of a result are.

    Args:
        run: the record of the call.
        result: the result.
        is_wrong: the mask of the elements.
        problem: what is wrong with them, as the predicate of a sentence, such as "are wrong".
    """
    expected = result.expected
    budget = None if expected.budget is None else expected.budget.limit
    return location.locate(
        run,
        result.name,
        problem,
        is_wrong,
        result.shaped,
        expected.values,
        expected.dtype,
        strides=result.strides,
        budget=budget,
    )


@np.errstate(invalid="ignore")
def _outliers(result: _ComparableResult, limit: float) -> Mask:
    """Return a mask of the elements whose errors exceed the limit of the root mean square, in units."""
    expected = result.expected
    is_outlier = _errors_in_units(result.shaped.astype(expected.values.dtype), expected) > limit
    return is_outlier if expected.specified is None else is_outlier & expected.specified


def _describe(place: Difference) -> str:
    """Return a text such as `out: 3 of 15 elements are wrong, the worst at (0, 2): 1.25, expected 1.5 ± 1e-07`."""
    margin = f" ± {place.budget:.2g}" if place.budget is not None else ""
    is_wrong = f"{place.tensor}: {place.wrong_count} of {place.total} elements {place.problem}"
    elements = f"{place.actual}, expected {place.expected}{margin}"
    return f"{is_wrong}, the worst at {place.index}: {elements}{place.pattern_suffix}"
