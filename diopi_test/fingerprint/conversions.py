"""Probes of conversions between element types: rounding, numbers out of range, subnormal numbers, NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, integer, is_floating
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, yes_or_no
from diopi_test.fingerprint.subnormals import fate, flush, subnormals
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, format_of

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

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2.0])

LENGTH = 64
"""Number of elements that one call converts. Few numbers are repeated, so that they fill the vectors of a processor."""


def _converted(operator: ProbedOperator, values: Any, source: Dtype, target: Dtype) -> Any:
    """Return values, which `source` represents exactly, converted to `target`: as float64 or as Python integers."""
    numbers_of_source = np.array(values, np.float64 if is_floating(source) else np.int64).astype(to_numpy(source))
    result = operator(np.resize(numbers_of_source, LENGTH), shape=(LENGTH,), dtype=target)[: len(numbers_of_source)]
    return result.astype(np.float64 if is_floating(target) else object)


def rounding(units: Floats, result: Floats) -> str:
    """Return the name of the rounding that maps `units` to the integers `result`; an example if it is not known."""
    for name, rounded in ROUNDINGS.items():
        if np.array_equal(rounded(units), result):
            return name
    mismatches = int(np.argmax(np.rint(units) != result))
    return f"unknown: {units[mismatches]:g} → {result[mismatches]:g} units"


def _both_signs(values: Floats) -> Floats:
    return np.concatenate([values, -values])


def _rounded_floats(operator: ProbedOperator, source: Dtype, target: Dtype) -> str:
    """Return how quarters of a unit are rounded beside a large even number whose last place is one unit."""
    bits = FORMATS[target].precision
    units = _both_signs(QUARTERS)
    base = np.copysign(np.ldexp(1.0, bits - 1), units)
    unit = np.ldexp(1.0, 1 - bits) if is_floating(source) else 4.0
    values = (base + units) * unit if is_floating(source) else np.int64(4 * base) + np.int64(4 * units)
    return rounding(units, _converted(operator, values, source, target) / unit - base)


def measure_narrowing(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from a floating-point type to one of lower precision or smaller range."""
    form, wider = FORMATS[target], FORMATS[source]
    observations = {}
    if wider.precision >= form.precision + 2:
        observations["rounded"] = _rounded_floats(operator, source, target)
    if source is Dtype.float64 and target is not Dtype.float32:
        observations["by way of float32"] = _twice_rounded(operator, target)
    if wider.largest >= form.overflow:
        observations["too large"] = _overflow(operator, source, target)
    if wider.subnormal <= form.subnormal:
        small = subnormals(form)
        observations["subnormal numbers"] = fate(
            _converted(operator, small, source, target), small, flush(small, target), target
        )
    return observations


def _twice_rounded(operator: ProbedOperator, target: Dtype) -> str:
    """Return "yes" if float64 is rounded to float32 first: a number just above a middle then becomes the middle."""
    middle = 1 + FORMATS[target].epsilon / 2
    return "yes" if _converted(operator, [middle + 2.0**-40], Dtype.float64, target)[0] == 1 else "no"


def _overflow(operator: ProbedOperator, source: Dtype, target: Dtype) -> str:
    form, wider = FORMATS[target], FORMATS[source]
    large = _both_signs(np.array([min(2.0 ** (form.max_exponent + 1), wider.largest), wider.largest]))
    result = _converted(operator, large, source, target)
    if np.array_equal(result, np.copysign(np.inf, large)):
        return "infinite"
    return yes_or_no(
        result == np.copysign(form.largest, large), "the largest number", "neither infinite nor the largest"
    )


def measure_widening(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from a floating-point type to one that can represent all its numbers."""
    small = subnormals(FORMATS[source])
    result = _converted(operator, small, source, target)
    return {"subnormal numbers": fate(result, small, flush(small, source), source)}


def measure_from_integers(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from integers to a floating-point type that can't represent all of them."""
    return {"rounded": _rounded_floats(operator, source, target)}


Range = tuple[int, int]


def _clipped(number: int, limits: Range) -> int:
    return min(max(number, limits[0]), limits[1])


def _wrapped(number: int, limits: Range) -> int:
    return (number - limits[0]) % (limits[1] - limits[0] + 1) + limits[0]


def _indefinite(number: int, limits: Range) -> int:
    """Return what x86 gives for numbers out of range: the smallest integer."""
    return number if limits[0] <= number <= limits[1] else limits[0]


_INT32, _INT64 = ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (32, 64))

OUT_OF_RANGE: dict[str, Callable[[int, Range], int]] = {
    "saturated": _clipped,
    "modulo 2^bits": _wrapped,
    "the smallest number": _indefinite,
    "zero": lambda number, limits: number if limits[0] <= number <= limits[1] else 0,
    "saturated as int32, then modulo 2^bits": lambda number, limits: _wrapped(_clipped(number, _INT32), limits),
    "saturated as int64, then modulo 2^bits": lambda number, limits: _wrapped(_clipped(number, _INT64), limits),
    "smallest int32, then modulo 2^bits": lambda number, limits: _wrapped(_indefinite(number, _INT32), limits),
    "smallest int64, then modulo 2^bits": lambda number, limits: _wrapped(_indefinite(number, _INT64), limits),
    "smallest int64, then saturated": lambda number, limits: _clipped(_indefinite(number, _INT64), limits),
    "smallest int32, then saturated": lambda number, limits: _clipped(_indefinite(number, _INT32), limits),
}
"""The rules for integers out of the range of a type, by name; each maps an integer and the limits of the type."""


def limits_of(dtype: Dtype) -> Range:
    """Return the smallest and the largest number of an integer type."""
    info = np.iinfo(to_numpy(dtype))
    return int(info.min), int(info.max)


def out_of_range(numbers: Sequence[int], result: Sequence[int], limits: Range) -> str:
    """Return the name of the rule that maps `numbers` to `result`; all numbers with their results if unknown."""
    for name, rule in OUT_OF_RANGE.items():
        if [rule(number, limits) for number in numbers] == list(result):
            return name
    return ", ".join(f"{number:.6g} → {converted}" for number, converted in zip(numbers, result, strict=True))


def _beyond(limits: Range, source: Dtype) -> list[int]:
    """Return numbers of the source that are out of range; some exceed int32 and int64 and have nonzero low bits."""
    low, high = limits
    steps = [high + 1, 3 * (high + 1) // 2, 2**32 + 19795, 2**63 + 5 * 2**11, 2**66]
    candidates = [*steps, *(-step for step in steps), 2 * low]
    finite = [number for number in candidates if abs(number) <= FORMATS[source].largest]
    representable = [int(number) for number in np.array(finite, np.float64).astype(to_numpy(source)).astype(np.float64)]
    return [number for number in representable if not low <= number <= high]


def measure_to_integers(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from a floating-point type to integers."""
    limits = limits_of(target)
    halves = QUARTERS if limits[0] == 0 else _both_signs(QUARTERS)
    observations = {"rounded": rounding(halves, _converted(operator, halves, source, target).astype(np.float64))}
    numbers = _beyond(limits, source)
    if numbers:
        observations["too large"] = out_of_range(numbers, _converted(operator, numbers, source, target), limits)
    names = {limits[0]: "smallest", limits[1]: "largest"} if limits[0] else {limits[1]: "largest"}
    below, above, nan = (
        names.get(number, str(number)) for number in _converted(operator, [-np.inf, np.inf, np.nan], source, target)
    )
    return {**observations, "−∞, ∞": f"{below}, {above}", "NaN": nan}


def measure_between_integers(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe the conversion from an integer type to one that can't represent all its numbers."""
    limits, numbers_of_source = limits_of(target), limits_of(source)
    numbers = [
        number
        for number in (limits[1] + 1, limits[0] - 1, *numbers_of_source)
        if numbers_of_source[0] <= number <= numbers_of_source[1]
    ]
    numbers = [number for number in numbers if not limits[0] <= number <= limits[1]]
    return {"too large": out_of_range(numbers, _converted(operator, numbers, source, target), limits)}


def measure_to_bool(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe which numbers of a floating-point type are true; all numbers except zero should be."""
    numbers = np.array([0.0, -0.0, 0.25, 1.0, -1.0, 256.0, FORMATS[source].subnormal, np.inf, np.nan])
    result = _converted(operator, numbers, source, target).astype(bool)
    mismatches = [
        f"{number:g}" for number, converted in zip(numbers, result, strict=True) if converted != (number != 0)
    ]
    return {"true": f"all but zero, wrong for {', '.join(mismatches)}" if mismatches else "all but zero"}


def _holds(target: Dtype, source: Dtype) -> bool:
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


def _pairs(sources: Sequence[Dtype], targets: Sequence[Dtype], holds: bool) -> list[tuple[Dtype, ...]]:
    """Return the pairs of different types whose target can represent all numbers of the source, or can't (`holds`)."""
    return [
        (source, target)
        for source in sources
        for target in targets
        if source is not target and _holds(target, source) is holds
    ]


_WIDE_INTEGERS = [Dtype.int32, Dtype.int64]
"""Integers wide enough for two more bits than any half-precision or float32 number."""


def _probe(measure: Callable[..., Observations], variants: Sequence[tuple[Dtype, ...]]) -> Probe:
    return Probe(function="diopiCastDtype", measure=measure, variants=variants)


TO_FLOATS = (
    _probe(measure_narrowing, _pairs(floating, floating, holds=False)),
    _probe(measure_from_integers, _pairs(_WIDE_INTEGERS, floating, holds=False)),
    _probe(measure_widening, _pairs(floating, floating, holds=True)),
)

TO_INTEGERS = (
    _probe(measure_to_integers, _pairs(floating, integer, holds=False)),
    _probe(measure_between_integers, _pairs(integer, integer, holds=False)),
)

TO_BOOL = (_probe(measure_to_bool, [(source, Dtype.bool) for source in floating]),)
