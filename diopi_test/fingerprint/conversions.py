"""Probes of conversions between element types by diopiCastDtype.

A probe converts chosen numbers and states in words how they are rounded. It also states the results of numbers out of
range, of subnormal numbers and of NaN. In this module, a *unit* is the distance between neighboring numbers of the
target type. Each function `measure_…` receives the operator, the source type and the target type, and returns the
observations in words, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, integer, is_floating
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, yes_or_no
from diopi_test.fingerprint.subnormals import describe_flushing, subnormals
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, flush_to_zero, format_of

Floats = NDArray[np.float64]

ROUNDINGS: dict[str, Callable[[Floats], Floats]] = {
    "to nearest, ties to even": np.rint,
    "to nearest, ties away from zero": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "to nearest, ties towards zero": lambda x: np.copysign(np.ceil(np.abs(x) - 0.5), x),
    "towards zero": np.trunc,
    "away from zero": lambda x: np.copysign(np.ceil(np.abs(x)), x),
    "down": np.floor,
    "up": np.ceil,
}
"""The roundings to integers that the probes recognize, by name."""

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2.0])
"""Numbers of units, in quarters, for which any two of `ROUNDINGS` have different results."""

LENGTH = 64
"""Number of elements that one call converts. The numbers are repeated, so that they fill several vector registers."""


def _convert(operator: ProbedOperator, values: Any, source: Dtype, target: Dtype) -> Any:
    """Let the vendor convert values, and return the results as float64 or, for integer types, as Python integers.

    Args:
        operator: the operator that converts.
        values: the numbers, which `source` represents exactly.
        source: the element type of the argument.
        target: the element type of the result.

    Returns:
        An array with the result of each value.
    """
    numbers_of_source = np.array(values, np.float64 if is_floating(source) else np.int64).astype(to_numpy(source))
    result = operator(np.resize(numbers_of_source, LENGTH), shape=(LENGTH,), dtype=target)[: len(numbers_of_source)]
    return result.astype(np.float64 if is_floating(target) else object)


def find_rounding(units: Floats, result: Floats) -> str:
    """Find the rounding that a vendor uses.

    Args:
        units: numbers of units, with fractions.
        result: the integers to which they were rounded.

    Returns:
        The name of the rounding in `ROUNDINGS` that has these results; an example of a result if there is none.
    """
    for name, rounded in ROUNDINGS.items():
        if np.array_equal(rounded(units), result):
            return name
    mismatches = int(np.argmax(np.rint(units) != result))
    return f"unknown: {units[mismatches]:g} → {result[mismatches]:g} units"


def _both_signs(values: Floats) -> Floats:
    """Return the values, followed by their negatives."""
    return np.concatenate([values, -values])


def _describe_rounding(operator: ProbedOperator, source: Dtype, target: Dtype) -> str:
    """Return in words how numbers of the source type are rounded to a floating-point target type.

    Each converted number is a large even number of units plus or minus quarters of a unit.
    """
    bits = FORMATS[target].precision
    units = _both_signs(QUARTERS)
    base = np.copysign(np.ldexp(1.0, bits - 1), units)
    unit = np.ldexp(1.0, 1 - bits) if is_floating(source) else 4.0
    values = (base + units) * unit if is_floating(source) else np.int64(4 * base) + np.int64(4 * units)
    return find_rounding(units, _convert(operator, values, source, target) / unit - base)


def measure_narrowing(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from a floating-point type to one of lower precision or smaller range.

    The observations are `rounded`, `by way of float32`, `too large` and `subnormal numbers`. Those that do not apply to
    the types are missing.

    Returns:
        The observations in words, by name.
    """
    form, wider = FORMATS[target], FORMATS[source]
    observations = {}
    if wider.precision >= form.precision + 2:
        observations["rounded"] = _describe_rounding(operator, source, target)
    if source is Dtype.float64 and target is not Dtype.float32:
        observations["by way of float32"] = _is_rounded_twice(operator, target)
    if wider.largest >= form.overflow:
        observations["too large"] = _describe_overflow(operator, source, target)
    if wider.subnormal <= form.subnormal:
        subnormal_numbers = subnormals(form)
        observations["subnormal numbers"] = describe_flushing(
            _convert(operator, subnormal_numbers, source, target),
            subnormal_numbers,
            flush_to_zero(subnormal_numbers, target),
            target,
        )
    return observations


def _is_rounded_twice(operator: ProbedOperator, target: Dtype) -> str:
    """Return "yes" if float64 is rounded to float32 before it is rounded to the target, otherwise "no".

    The converted number lies just above the middle between two numbers of the target, and float32 rounds it to the
    middle. The second rounding then goes down, whereas a single rounding goes up.
    """
    middle = 1 + FORMATS[target].epsilon / 2
    return "yes" if _convert(operator, [middle + 2.0**-40], Dtype.float64, target)[0] == 1 else "no"


def _describe_overflow(operator: ProbedOperator, source: Dtype, target: Dtype) -> str:
    """Return in words what becomes of numbers that exceed the largest number of the target."""
    form, wider = FORMATS[target], FORMATS[source]
    large = _both_signs(np.array([min(2.0 ** (form.max_exponent + 1), wider.largest), wider.largest]))
    result = _convert(operator, large, source, target)
    if np.array_equal(result, np.copysign(np.inf, large)):
        return "infinite"
    return yes_or_no(
        result == np.copysign(form.largest, large), "the largest number", "neither infinite nor the largest"
    )


def measure_widening(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Return whether a conversion to a floating-point type that represents all numbers keeps subnormal numbers."""
    subnormal_numbers = subnormals(FORMATS[source])
    result = _convert(operator, subnormal_numbers, source, target)
    return {
        "subnormal numbers": describe_flushing(
            result, subnormal_numbers, flush_to_zero(subnormal_numbers, source), source
        )
    }


def measure_from_integers(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Return how integers are rounded to a floating-point type that can't represent all of them."""
    return {"rounded": _describe_rounding(operator, source, target)}


Range = tuple[int, int]
"""The smallest and the largest number of an integer type."""

# Each of the following functions is a rule for an integer that may be out of the range of a type.


def _saturate(number: int, limits: Range) -> int:
    """Return the number of the range that is nearest to an integer."""
    return min(max(number, limits[0]), limits[1])


def _wrap(number: int, limits: Range) -> int:
    """Return the number of the range that equals an integer modulo the size of the range."""
    return (number - limits[0]) % (limits[1] - limits[0] + 1) + limits[0]


def _indefinite(number: int, limits: Range) -> int:
    """Return the smallest integer for numbers out of range, as x86 processors do; otherwise the number itself."""
    return number if limits[0] <= number <= limits[1] else limits[0]


_INT32, _INT64 = ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (32, 64))
"""The ranges of int32 and int64."""

OUT_OF_RANGE: dict[str, Callable[[int, Range], int]] = {
    "saturated": _saturate,
    "modulo 2^bits": _wrap,
    "the smallest number": _indefinite,
    "zero": lambda number, limits: number if limits[0] <= number <= limits[1] else 0,
    "saturated as int32, then modulo 2^bits": lambda number, limits: _wrap(_saturate(number, _INT32), limits),
    "saturated as int64, then modulo 2^bits": lambda number, limits: _wrap(_saturate(number, _INT64), limits),
    "smallest int32, then modulo 2^bits": lambda number, limits: _wrap(_indefinite(number, _INT32), limits),
    "smallest int64, then modulo 2^bits": lambda number, limits: _wrap(_indefinite(number, _INT64), limits),
    "smallest int64, then saturated": lambda number, limits: _saturate(_indefinite(number, _INT64), limits),
    "smallest int32, then saturated": lambda number, limits: _saturate(_indefinite(number, _INT32), limits),
}
"""The rules for numbers out of range that the probes recognize, by the name in the fingerprint."""


def limits_of(dtype: Dtype) -> Range:
    """Return the smallest and the largest number of an integer type."""
    info = np.iinfo(to_numpy(dtype))
    return int(info.min), int(info.max)


def find_range_rule(numbers: Sequence[int], result: Sequence[int], limits: Range) -> str:
    """Return the name of the rule in `OUT_OF_RANGE` that maps `numbers` to `result`.

    If there is none, return all numbers with their results as text.

    Args:
        numbers: The integers that are out of range.
        result: The result of each conversion.
        limits: The range of the target type.
    """
    for name, rule in OUT_OF_RANGE.items():
        if [rule(number, limits) for number in numbers] == list(result):
            return name
    return ", ".join(f"{number:.6g} → {converted}" for number, converted in zip(numbers, result, strict=True))


def _numbers_out_of_range(limits: Range, source: Dtype) -> list[int]:
    """Return numbers out of range that the source type represents, for which the rules have different results.

    Args:
        limits: the range of the target type.
        source: a floating-point type.

    Returns:
        The numbers as Python integers; empty if the source type has no numbers out of range.
    """
    low, high = limits
    steps = [high + 1, 3 * (high + 1) // 2, 2**32 + 19795, 2**63 + 5 * 2**11, 2**66]
    candidates = [*steps, *(-step for step in steps), 2 * low]
    finite = [number for number in candidates if abs(number) <= FORMATS[source].largest]
    representable = [int(number) for number in np.array(finite, np.float64).astype(to_numpy(source)).astype(np.float64)]
    return [number for number in representable if not low <= number <= high]


def measure_to_integers(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from a floating-point type to an integer type.

    The observations are `rounded`, `too large` (for numbers out of range), `−∞, ∞` and `NaN`.

    Returns:
        The observations in words, by name.
    """
    limits = limits_of(target)
    halves = QUARTERS if limits[0] == 0 else _both_signs(QUARTERS)
    observations = {"rounded": find_rounding(halves, _convert(operator, halves, source, target).astype(np.float64))}
    numbers = _numbers_out_of_range(limits, source)
    if numbers:
        observations["too large"] = find_range_rule(numbers, _convert(operator, numbers, source, target), limits)
    names = {limits[0]: "smallest", limits[1]: "largest"} if limits[0] else {limits[1]: "largest"}
    of_minus_infinity, of_infinity, of_nan = (
        names.get(number, str(number)) for number in _convert(operator, [-np.inf, np.inf, np.nan], source, target)
    )
    return {**observations, "−∞, ∞": f"{of_minus_infinity}, {of_infinity}", "NaN": of_nan}


def measure_between_integers(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Return how numbers out of range are converted from an integer type to another one."""
    limits, numbers_of_source = limits_of(target), limits_of(source)
    numbers = [
        number
        for number in (limits[1] + 1, limits[0] - 1, *numbers_of_source)
        if numbers_of_source[0] <= number <= numbers_of_source[1]
    ]
    numbers = [number for number in numbers if not limits[0] <= number <= limits[1]]
    return {"too large": find_range_rule(numbers, _convert(operator, numbers, source, target), limits)}


def measure_to_bool(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Return which numbers of a floating-point type are true; all numbers except zero should be."""
    numbers = np.array([0.0, -0.0, 0.25, 1.0, -1.0, 256.0, FORMATS[source].subnormal, np.inf, np.nan])
    result = _convert(operator, numbers, source, target).astype(bool)
    mismatches = [
        f"{number:g}" for number, converted in zip(numbers, result, strict=True) if converted != (number != 0)
    ]
    return {"true": f"all but zero, wrong for {', '.join(mismatches)}" if mismatches else "all but zero"}


def _can_represent(target: Dtype, source: Dtype) -> bool:
    """Return whether `target` can represent every number of `source`."""
    if is_floating(source) and is_floating(target):
        source_format, target_format = format_of(source), format_of(target)
        return (
            source_format.precision <= target_format.precision
            and source_format.max_exponent <= target_format.max_exponent
        )
    if is_floating(target):
        return limits_of(source)[1].bit_length() <= format_of(target).precision
    if is_floating(source):
        return False
    (low, high), limits = limits_of(source), limits_of(target)
    return limits[0] <= low and high <= limits[1]


def _pairs(sources: Sequence[Dtype], targets: Sequence[Dtype], *, is_exact: bool) -> list[tuple[Dtype, ...]]:
    """Return the pairs of different types whose conversion is exact for every number, or not exact for every number.

    Args:
        sources: the source types.
        targets: the target types.
        is_exact: whether the conversions of the returned pairs are exact for every number of the source type.

    Returns:
        The pairs (source, target).
    """
    return [
        (source, target)
        for source in sources
        for target in targets
        if source is not target and _can_represent(target, source) is is_exact
    ]


_WIDE_INTEGERS = [Dtype.int32, Dtype.int64]
"""Integer types with at least two more bits than the significand of the floating types that can't represent them."""


def _probe(measure: Callable[..., Observations], variants: Sequence[tuple[Dtype, ...]]) -> Probe:
    """Return a probe of conversions between these pairs of a source and a target type."""
    return Probe(function="diopiCastDtype", measure=measure, variants=variants)


TO_FLOATS = (
    _probe(measure_narrowing, _pairs(floating, floating, is_exact=False)),
    _probe(measure_from_integers, _pairs(_WIDE_INTEGERS, floating, is_exact=False)),
    _probe(measure_widening, _pairs(floating, floating, is_exact=True)),
)
"""The probes of conversions to floating-point types."""

TO_INTEGERS = (
    _probe(measure_to_integers, _pairs(floating, integer, is_exact=False)),
    _probe(measure_between_integers, _pairs(integer, integer, is_exact=False)),
)
"""The probes of conversions to integers."""

TO_BOOL = (_probe(measure_to_bool, [(source, Dtype.bool) for source in floating]),)
"""The probe of conversions from floating-point types to bool."""
