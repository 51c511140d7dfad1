"""Result values: exact where they must be, else within the error budget, element by element and as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT
from diopi_test.baseline.records import Expected
from diopi_test.baseline.units import from_ulps, to_ulps
from diopi_test.cases.formats import FloatArray, format_of, ulp
from diopi_test.checks import where
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import CheckResult
from diopi_test.oracle.budget import EXACT, R_ELEMENTS, K, R
from lib_rt.dtypes import to_numpy

Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Comparison:
    """How one result compares with its expectation.

    Attributes:
        wrong: elements outside their budget.
        ratio: largest error / (K · unit) among the finite elements, unit = s + ulp + eps·m.
        rms: root mean square of error / unit over the elements that may be rounded, equal ones counting once where it
            is above R; None for exact results and few elements.
        flushed: subnormal elements given as zero, or computed from subnormal inputs taken for zero.
    """

    wrong: Mask
    ratio: float | None = None
    rms: float | None = None
    flushed: int = 0


def check(run: CallRecord) -> CheckResult:
    """Every result element is exact or within its budget, and the errors' root mean square is at most R.

    The check `validity` covers results that need a validator.
    """
    problems: list[str] = []
    places: list[Difference] = []
    ratios: list[float] = []
    means: list[float] = []
    flushed = 0
    for result in _results(run):
        if result.actual.size != result.expected.values.size:
            problems.append(f"{result.name} has {result.actual.size} elements, expected {result.expected.values.size}")
            ratios.append(math.inf)
            continue
        comparison = compare(result.shaped, result.expected)
        flushed += comparison.flushed
        ratios += [ratio] if (ratio := _beyond_budget(comparison)) is not None else []
        means += [comparison.rms] if comparison.rms is not None else []
        if comparison.wrong.any():
            places.append(_locate(run, result, comparison.wrong, "are wrong"))
            problems.append(_describe(places[-1]))
        if comparison.rms is not None and comparison.rms > R:
            if not comparison.wrong.any():
                places.append(_locate(run, result, _far(result), f"have errors above {R:g} unit"))
            mean = f"root mean square {comparison.rms:.3g} units, at most {R:g} is allowed"
            problems.append(f"the errors of {result.name} have {mean}")
    note = f"{flushed} subnormal elements flushed to zero" if flushed else ""
    return CheckResult(
        "values",
        not problems,
        "; ".join(problems) or note,
        max(ratios, default=None),
        max(means, default=None),
        tuple(places[: where.MOST]),
    )


def _beyond_budget(comparison: Comparison) -> float | None:
    """The largest error / budget; infinite where a result without a budget is wrong, None where one is right."""
    return math.inf if comparison.ratio is None and comparison.wrong.any() else comparison.ratio


@final
@dataclass(frozen=True)
class _Result:
    """A result of a call that has one right answer: what was given and what must be, and the strides of its tensor."""

    name: str
    actual: NDArray[Any]
    expected: Expected
    strides: Sequence[int] = ()

    @property
    def shaped(self) -> NDArray[Any]:
        """What was given, in the expected shape, which it has but for axes of length 1."""
        return self.actual.reshape(self.expected.values.shape)


def _results(run: CallRecord) -> Iterator[_Result]:
    for record, expected in run.results():
        if not expected.needs_validator:
            strides = record.strides if record.shape == expected.values.shape else ()
            yield _Result(record.name, record.values, expected, strides)
    for value in run.values:
        yield _Result(value.name, np.asarray(value.actual), value.expected)


@np.errstate(invalid="ignore")  # poison is a signalling NaN
def compare(given: NDArray[Any], expected: Expected) -> Comparison:
    """Compare a result with its expectation, element by element, where the standard specifies it."""
    if (where := expected.specified) is None:
        return _compare_all(given, expected)
    comparison = _compare_all(given[where], _part(expected, where))
    wrong = np.zeros(where.shape, bool)
    wrong[where] = comparison.wrong
    return replace(comparison, wrong=wrong)


def _part(expected: Expected, where: Mask) -> Expected:
    """The expectation of the elements at `where` alone."""
    unit, flushed = (None if array is None else array[where] for array in (expected.unit, expected.flushed))
    return replace(expected, values=expected.values[where], unit=unit, flushed=flushed, specified=None)


def _compare_all(given: NDArray[Any], expected: Expected) -> Comparison:
    if expected.unit is None and expected.dtype in COMPONENT:
        return _compare_parts(given, expected)
    if expected.values.dtype.kind not in "fc":
        wrong = given != expected.values
        if expected.flushed is None or not wrong.any():
            return Comparison(wrong)
        flushed = wrong & (given == expected.flushed)
        return Comparison(wrong & ~flushed, flushed=int(flushed.sum()))
    if expected.unit is None:
        wrong = ~_same(given, _narrow(expected.values, expected))
        if not wrong.any():
            return Comparison(wrong)
        flushed = wrong & _is_flushed_exactly(given, expected)
        return Comparison(wrong & ~flushed, flushed=int(flushed.sum()))
    given = given.astype(np.complex128 if given.dtype.kind == "c" else np.float64)
    units = _units(given, expected)
    far = units > R
    if not far.any():
        return Comparison(far, _ratio(units), _rms(units, expected))
    flushed = far & _is_flushed(given, expected)
    units = np.where(flushed, 0, units)
    return Comparison(units > K, _ratio(units), _rms(units, expected), int(flushed.sum()))


def _compare_parts(given: NDArray[Any], expected: Expected) -> Comparison:
    """Real and imaginary parts of an exact complex result, each for itself; the signs of zero parts mean nothing."""

    def compare_part(part: Any) -> Comparison:
        flushed = None if expected.flushed is None else part(expected.flushed) + 0.0
        values, dtype = part(expected.values) + 0.0, COMPONENT[expected.dtype]
        return _compare_all(part(given) + 0.0, replace(expected, values=values, dtype=dtype, flushed=flushed))

    real, imaginary = compare_part(np.real), compare_part(np.imag)
    return Comparison(real.wrong | imaginary.wrong, flushed=real.flushed + imaginary.flushed)


def _narrow(values: NDArray[Any], expected: Expected) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return values.astype(to_numpy(expected.dtype))


def _same(given: NDArray[Any], wanted: NDArray[Any]) -> Mask:
    """Equal including the sign of zero, or both NaN."""
    return ((given == wanted) & _same_sign(given, wanted)) | (np.isnan(given) & np.isnan(wanted))


def _is_flushed_exactly(given: NDArray[Any], expected: Expected) -> Mask:
    tiny = np.abs(expected.values) < format_of(expected.dtype).tiny
    alternative = False if expected.flushed is None else _same(given, _narrow(expected.flushed, expected))
    return (tiny & (given == 0) & (expected.values != 0)) | alternative


def _is_flushed(given: NDArray[Any], expected: Expected) -> Mask:
    """Where a subnormal result, or a subnormal part of it, is zero, or subnormal inputs were taken for zero."""
    restored, is_restored = _restored(given, expected.values, format_of(expected.dtype).tiny + K * _unit(expected))
    flushed = is_restored & (_units(restored, expected) <= K)
    if expected.flushed is None:
        return flushed
    unit = from_ulps(to_ulps(expected), expected.flushed, expected.dtype)
    return flushed | (_units(given, replace(expected, values=expected.flushed, unit=unit)) <= K)


def _restored(given: NDArray[Any], values: NDArray[Any], limit: FloatArray) -> tuple[NDArray[Any], Mask]:
    """Return `given` with the expected values for zeros where these are below a limit, and where that changes it."""
    if np.iscomplexobj(given) or np.iscomplexobj(values):
        real, is_real = _restored(given.real, values.real, limit)
        imaginary, is_imaginary = _restored(given.imag, values.imag, limit)
        restored = given.astype(np.complex128)
        restored.real, restored.imag = real, imaginary
        return restored, is_real | is_imaginary
    with np.errstate(all="ignore"):
        is_restored: Mask = (given == 0) & (values != 0) & (np.abs(values) < limit)
    return np.where(is_restored, values, given), is_restored


def _unit(expected: Expected) -> FloatArray:
    """What the errors of a result that may be rounded are measured in."""
    assert expected.unit is not None
    return expected.unit


def _units(given: NDArray[Any], expected: Expected) -> FloatArray:
    """Error of each element in units of s + ulp + eps·m, infinite where a NaN, an infinity or a zero's sign is wrong.

    A zero that is left when normal numbers cancel, as its budget shows, has whatever sign rounding gives it.
    """
    reference, unit = expected.values, _unit(expected)
    with np.errstate(all="ignore"):
        units = np.abs(_difference(given, reference)) / unit
        if not np.isfinite(units).all():
            units = _units_beyond_numbers(units, given, expected)
        zeros = (given == 0) & (reference == 0)
        if zeros.any():
            cancelled = K * unit >= format_of(expected.dtype).tiny
            units = np.where(zeros & ~cancelled & ~_same_sign(given, reference), np.inf, units)
    return units


def _units_beyond_numbers(units: FloatArray, given: NDArray[Any], expected: Expected) -> FloatArray:
    """`units` with those in their places where the result or its expectation is an infinity or a NaN."""
    reference = expected.values
    infinite = ~np.isfinite(given) if np.iscomplexobj(given) else np.isinf(given)  # parts of what overflows may cancel
    overflowed = (
        infinite
        & np.isfinite(reference)
        & (np.abs(reference) + K * _unit(expected) >= format_of(expected.dtype).overflow)
    )
    right = _same(given, reference) | (overflowed & _same_sign(given, reference))
    return np.where(right, 0, np.where(np.isfinite(units), units, np.inf))


def _difference(given: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    """given − reference; nothing for a part of a complex number that is the same infinity or a NaN in both."""
    difference = np.asarray(given - reference)
    if np.iscomplexobj(difference):
        for part in (np.real, np.imag):
            part(difference)[(part(given) == part(reference)) | (np.isnan(part(given)) & np.isnan(part(reference)))] = 0
    return difference


def _same_sign(given: NDArray[Any], reference: NDArray[Any]) -> Mask:
    """Whether the signs agree; complex numbers have none, and the signs of their zero parts mean nothing."""
    if np.iscomplexobj(given) or np.iscomplexobj(reference):
        return np.ones(reference.shape, bool)
    return np.signbit(given) == np.signbit(reference)


def _ratio(units: FloatArray) -> float | None:
    return float(units.max()) / K if units.size else None


def _rms(units: FloatArray, expected: Expected) -> float | None:
    """The root mean square of the errors of elements that may be rounded; None for few.

    What is computed of equal numbers is off alike, however often. So where it is above R, equal elements count once.
    """
    exact = _unit(expected) <= 2 * EXACT * ulp(expected.values, expected.dtype)
    rounded = ~exact
    squares = np.square(units[rounded])
    if squares.size >= R_ELEMENTS and np.mean(squares) > R**2:
        _, places = np.unique(expected.values[rounded], return_inverse=True)
        squares = np.bincount(places.reshape(-1), squares) / np.bincount(places.reshape(-1))
    return float(np.sqrt(np.mean(squares))) if squares.size >= R_ELEMENTS else None


def _locate(run: CallRecord, result: _Result, wrong: Mask, problem: str) -> Difference:
    """Where a result is wrong, with its budgets."""
    expected = result.expected
    budget = None if expected.unit is None else K * expected.unit
    return where.locate(
        run,
        result.name,
        problem,
        wrong,
        result.shaped,
        expected.values,
        expected.dtype,
        strides=result.strides,
        budget=budget,
    )


@np.errstate(invalid="ignore")
def _far(result: _Result) -> Mask:
    """The elements without which the root mean square would not be above R."""
    expected = result.expected
    far = _units(result.shaped.astype(expected.values.dtype), expected) > R
    return far if expected.specified is None else far & expected.specified


def _describe(place: Difference) -> str:
    """`out: 3 of 15 elements are wrong, the worst at (0, 2): 1.25, expected 1.5 ± 1e-07 (exactly [0, :])`."""
    margin = f" ± {place.budget:.2g}" if place.budget is not None else ""
    wrong = f"{place.tensor}: {place.wrong_count} of {place.total} elements {place.problem}"
    return f"{wrong}, the worst at {place.index}: {place.actual}, expected {place.expected}{margin}{place.common}"
