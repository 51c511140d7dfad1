"""Result values: exact where they must be, else within the error budget, element by element and as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT
from diopi_test.baseline import Expected
from diopi_test.budget import R_ELEMENTS, K, R
from diopi_test.formats import FloatArray, format_of, ulp
from diopi_test.run import Run
from diopi_test.verdict import Finding
from lib_rt.dtypes import to_numpy

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Comparison:
    """How one result compares with its expectation.

    Attributes:
        wrong: elements outside their budget.
        ratio: largest error / (K · unit) among the finite elements, unit = s + ulp + eps·m.
        rms: root mean square of error / unit, None for exact results and those with few elements.
        flushed: subnormal elements given as zero, or computed from subnormal inputs taken for zero.
    """

    wrong: Mask
    ratio: float | None = None
    rms: float | None = None
    flushed: int = 0


def check(run: Run) -> Finding:
    """Every result element is exact or within its budget, and the errors' root mean square is at most R.

    A result whose meaning is judged is left to its judge.
    """
    problems: list[str] = []
    ratios: list[float] = []
    means: list[float] = []
    flushed = 0
    for name, given, expected in _results(run):
        if given.size != expected.values.size:
            problems.append(f"{name} has {given.size} elements, expected {expected.values.size}")
            continue
        given = given.reshape(expected.values.shape)
        comparison = compare(given, expected)
        flushed += comparison.flushed
        ratios += [comparison.ratio] if comparison.ratio is not None else []
        means += [comparison.rms] if comparison.rms is not None else []
        if comparison.wrong.any():
            problems.append(_describe(name, given, expected, comparison))
        if comparison.rms is not None and comparison.rms > R:
            problems.append(
                f"the errors of {name} have root mean square {comparison.rms:.3g} units, at most {R:g} is allowed"
            )
    note = f"{flushed} subnormal elements flushed to zero" if flushed else ""
    return Finding(
        "values", not problems, "; ".join(problems) or note, max(ratios, default=None), max(means, default=None)
    )


def _results(run: Run) -> list[tuple[str, NDArray[Any], Expected]]:
    tensors = [(record.name, record.values, expected) for record, expected in run.results() if not expected.judged]
    return tensors + [(value.name, np.asarray(value.given), value.expected) for value in run.values]


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
    blur, flushed = (None if array is None else array[where] for array in (expected.blur, expected.flushed))
    return replace(expected, values=expected.values[where], blur=blur, flushed=flushed, specified=None)


def _compare_all(given: NDArray[Any], expected: Expected) -> Comparison:
    if expected.blur is None and expected.dtype in COMPONENT:
        return _compare_parts(given, expected)
    if expected.values.dtype.kind not in "fc":
        wrong = given != expected.values
        flushed = wrong & (given == expected.flushed) if expected.flushed is not None else np.zeros_like(wrong)
        return Comparison(wrong & ~flushed, flushed=int(flushed.sum()))
    if expected.blur is None:
        right = _same(given, _narrow(expected.values, expected))
        flushed = ~right & _is_flushed_exactly(given, expected)
        return Comparison(~(right | flushed), flushed=int(flushed.sum()))
    given = given.astype(np.complex128 if given.dtype.kind == "c" else np.float64)
    units = _units(given, expected.values, expected)
    flushed = (units > K) & _is_flushed(given, expected)
    units = np.where(flushed, 0, units)
    return Comparison(units > K, _ratio(units), _rms(units), int(flushed.sum()))


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
    """Where a subnormal result is given as zero, or subnormal inputs were taken for zero."""
    with np.errstate(all="ignore"):
        reach = K * _unit(expected.values, expected)
        tiny = np.abs(expected.values) < format_of(expected.dtype).tiny + reach
    flushed: Mask = (given == 0) & (expected.values != 0) & tiny
    return flushed if expected.flushed is None else flushed | (_units(given, expected.flushed, expected) <= K)


def _units(given: NDArray[Any], reference: NDArray[Any], expected: Expected) -> FloatArray:
    """Error of each element in units of s + ulp + eps·m, infinite where it is wrong in kind or in the sign of zero.

    A zero that is left when normal numbers cancel, which its budget tells, has whatever sign rounding gives it.
    """
    with np.errstate(all="ignore"):
        unit = _unit(reference, expected)
        units = np.abs(given - reference) / unit
        overflowed = np.isinf(given) & (np.abs(reference) + K * unit >= format_of(expected.dtype).overflow)
    finite = np.isfinite(reference) & np.isfinite(given)
    cancelled = K * unit >= format_of(expected.dtype).tiny
    wrong_zero = (given == 0) & (reference == 0) & ~_same_sign(given, reference) & ~cancelled
    units = np.where(finite & ~wrong_zero, units, np.where(_same(given, reference), 0, np.inf))
    return np.where(overflowed & _same_sign(given, reference), 0, units)


def _unit(reference: NDArray[Any], expected: Expected) -> FloatArray:
    """s + ulp + eps·m at each element."""
    return ulp(reference, expected.dtype) * (1.0 if expected.blur is None else expected.blur)


def _same_sign(given: NDArray[Any], reference: NDArray[Any]) -> Mask:
    """Whether the signs agree; complex numbers have none, and the signs of their zero parts mean nothing."""
    if np.iscomplexobj(given) or np.iscomplexobj(reference):
        return np.ones(reference.shape, bool)
    return np.signbit(given) == np.signbit(reference)


def _ratio(units: FloatArray) -> float | None:
    return float(units.max()) / K if units.size else None


def _rms(units: FloatArray) -> float | None:
    return float(np.sqrt(np.mean(np.square(units)))) if units.size >= R_ELEMENTS else None


@np.errstate(invalid="ignore")
def _describe(name: str, given: NDArray[Any], expected: Expected, comparison: Comparison) -> str:
    """`out: 3 of 15 elements are wrong, the first at (0, 2): 1.25, expected 1.5 ± 1e-07`."""
    first = tuple(int(i) for i in np.argwhere(comparison.wrong)[0])
    wanted = expected.values[first]
    margin = ""
    if expected.blur is not None and np.isfinite(wanted):
        margin = f" ± {K * float(expected.blur[first]) * float(ulp(wanted, expected.dtype)):.2g}"
    wrong = f"{int(comparison.wrong.sum())} of {comparison.wrong.size} elements"
    return f"{name}: {wrong} are wrong, the first at {first}: {given[first]}, expected {wanted}{margin}"
