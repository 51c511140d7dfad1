"""Derive how the wrong elements of a tensor deviate from the expected elements.

The result (`Deviation`) has the kinds of the errors, and a relation between wrong and expected elements, such as a
common factor. It also has the regions of input values that contain the wrong elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT
from diopi_proto.types import Dtype
from diopi_test.checks.pattern import Mask, is_unlikely, rarest_special_class
from diopi_test.checks.wraparound import are_places_wrapped
from diopi_test.execution.deviation import NARROWER_TYPES, Deviation, DeviationKind, Region, ValueRelation
from diopi_test.oracle.budget import K
from diopi_test.oracle.data import widen
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, FloatArray, format_of, is_inexact

MAX_ROUNDING = 2.0**-4
"""The largest error that counts as rounding, relative to the expected value, or to the size that its budget implies."""

MAX_BUDGETS = 4
"""An error of at most this many budgets always counts as rounding, because the budgets of a narrow type are large."""

MIN_DISTINCT = 3
"""The minimum number of different values for which a relation is not considered chance."""

MIN_MOVED_BOOLS, MIN_REARRANGED = 8, 4
"""The minimum numbers of wrong elements for which a relation is not considered chance: in a type with few values; and
if the tensor has the expected elements in one of a few orders."""

MIN_SCALED = 4
"""The minimum number of elements other than 0 that must have a common factor if the wrong elements have few values."""

MIN_EXCESS = 16
"""Scaled elements may also have rounding errors if most errors exceed the budget by more than this factor."""

MIN_SHARE_LOSSY = 0.5
"""Integers are considered converted to a floating-point type if this type can't represent at least this share of the
expected values of the wrong integers."""

MIN_TRUNCATED = 2**16
"""If all wrong integers are smaller in magnitude, they may have been truncated to fewer than 32 bits."""

MAX_ELEMENTS = 2**20
"""Tensors with more elements are not sorted to find misplaced elements."""


@final
@dataclass(frozen=True, kw_only=True)
class IncorrectTensor:
    """A tensor with at least one wrong element, and everything needed to describe the deviation.

    Attributes:
        is_wrong: which elements are wrong; at least one is.
        actual: the actual elements, in the shape of `is_wrong`.
        expected: the expected elements, in this shape.
        dtype: the element type of the tensor.
        budget: the error budget of each element; None if the elements must be exact.
        before: the elements before the call if the call updates the tensor, else None.
        inputs: by name, the inputs from whose elements at the same index each element is computed, broadcast to this
            shape, with their element types.
    """

    is_wrong: Mask
    actual: NDArray[Any]
    expected: NDArray[Any]
    dtype: Dtype
    budget: FloatArray | None
    before: NDArray[Any] | None
    inputs: Mapping[str, tuple[NDArray[Any], Dtype]]

    @property
    def wrong_actual(self) -> NDArray[Any]:
        """The actual values of the wrong elements, in the types in which the reference computes."""
        return widen(self.actual[self.is_wrong], self.dtype)

    @property
    def wrong_expected(self) -> NDArray[Any]:
        """The expected values of the wrong elements, in the types in which the reference computes."""
        expected = self.expected[self.is_wrong]
        return widen(expected, self.dtype) if expected.dtype.kind in "fc" or is_inexact(self.dtype) else expected

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next larger number of the element type; 0 for exact types."""
        return format_of(COMPONENT.get(self.dtype, self.dtype)).epsilon if is_inexact(self.dtype) else 0.0


@np.errstate(all="ignore")  # signaling NaN, and any other values that the vendor returned
def derive_deviation(tensor: IncorrectTensor) -> Deviation:
    """Return how the wrong elements of a tensor differ from the expected ones."""
    kinds, units = _count_kinds(tensor)
    relation, value = next(_find_relations(tensor, kinds), (None, None))
    values = {**tensor.inputs, "expected": (tensor.expected, tensor.dtype)}
    return Deviation(
        kinds=kinds,
        units=units,
        relation=relation,
        value=value,
        is_whole=relation is ValueRelation.zero and not tensor.actual.any(),
        regions=tuple(_find_regions(tensor.is_wrong, values)),
    )


# Kinds


def _count_kinds(tensor: IncorrectTensor) -> tuple[dict[str, int], float | None]:
    """Return the number of wrong elements of each kind, and the root mean square of rounding errors in units.

    The root mean square is None if no element has a rounding error, or if the tensor has no budget.
    """
    total = int(tensor.is_wrong.sum())
    if not is_inexact(tensor.dtype):
        return {DeviationKind.wrong_value.value: total}, None
    actual, expected = tensor.wrong_actual, tensor.wrong_expected
    masks = _special_value_masks(actual, expected, tensor.dtype)
    left = ~np.logical_or.reduce(list(masks.values()))
    errors = np.abs(actual - expected)
    if tensor.budget is None:
        units, is_rounding = None, left & (errors <= MAX_ROUNDING * np.abs(expected))
    else:
        units = errors * K / tensor.budget[tensor.is_wrong]
        is_rounding = left & (units <= max(MAX_BUDGETS * K, MAX_ROUNDING / tensor.epsilon))
    masks |= {DeviationKind.rounding: is_rounding, DeviationKind.wrong_value: left & ~is_rounding}
    kinds = {kind.value: int(masks[kind].sum()) for kind in DeviationKind if masks[kind].any()}
    if units is None or not is_rounding.any():
        return kinds, None
    return kinds, float(np.sqrt(np.mean(np.square(units[is_rounding]))))


def _special_value_masks(actual: NDArray[Any], expected: NDArray[Any], dtype: Dtype) -> dict[DeviationKind, Mask]:
    """Return a mask of the elements of each kind that concerns special values; an element has at most one kind.

    Args:
        actual: the actual elements.
        expected: the expected elements, in the same shape.
        dtype: the element type of the result.
    """
    nan_actual, nan_expected = np.isnan(actual), np.isnan(expected)
    infinite_actual, infinite_expected = np.isinf(actual) & ~nan_actual, np.isinf(expected) & ~nan_expected
    zero_actual = actual == 0
    tiny = format_of(COMPONENT.get(dtype, dtype)).tiny
    return {
        DeviationKind.lost_nan: nan_expected & ~nan_actual,
        DeviationKind.invented_nan: nan_actual & ~nan_expected,
        DeviationKind.lost_infinity: infinite_expected & ~infinite_actual & ~nan_actual,
        DeviationKind.invented_infinity: infinite_actual & ~infinite_expected & ~nan_expected,
        DeviationKind.sign_of_zero: zero_actual & (expected == 0),
        DeviationKind.flushed: zero_actual & (expected != 0) & (np.abs(expected) < tiny),
    }


# Relations

_Related = tuple[ValueRelation, float | None]
"""A relation that all wrong elements have, and its factor, difference or constant if it has one."""


def _find_relations(tensor: IncorrectTensor, kinds: Mapping[str, int]) -> Iterator[_Related]:
    """Yield the relations that hold for all wrong elements, the most specific one first."""
    if kinds.keys() <= {DeviationKind.sign_of_zero.value}:
        return
    actual, expected = tensor.wrong_actual, tensor.wrong_expected
    if _is_unchanged(tensor):
        yield ValueRelation.unchanged, None
    if (actual == 0).all():
        yield ValueRelation.zero, 0.0
    yield from _constant_relation(tensor, actual, expected)
    if is_inexact(tensor.dtype):
        yield from _narrower_type_relation(tensor)
        yield from _linear_relation(tensor, actual, expected)
    else:
        yield from _integer_relation(actual, expected)
    if are_places_wrapped(
        widen(tensor.actual, tensor.dtype), tensor.expected, tensor.is_wrong, tolerance=tensor.epsilon
    ):
        yield ValueRelation.wrapped, None
    if _is_partly_unchanged(tensor):
        yield ValueRelation.partly_unchanged, None
    if _is_rearranged(tensor):
        yield ValueRelation.rearranged, None
    if _are_misplaced(tensor):
        yield ValueRelation.misplaced, None


def _is_unchanged(tensor: IncorrectTensor) -> bool:
    """Return whether all elements have their values from before the call, and two are wrong, or the only one is."""
    if tensor.before is None or tensor.before.shape != tensor.actual.shape:
        return False
    is_equal = tensor.before.tobytes() == np.ascontiguousarray(tensor.actual).tobytes()
    return is_equal and bool(tensor.is_wrong.sum() > 1 or tensor.is_wrong.size == 1)


def _is_partly_unchanged(tensor: IncorrectTensor) -> bool:
    """Return whether all wrong elements have their values from before the call, and this is not chance."""
    if tensor.before is None or tensor.before.shape != tensor.actual.shape:
        return False
    actual, before = tensor.actual[tensor.is_wrong], tensor.before[tensor.is_wrong]
    is_enough = len(actual) >= MIN_MOVED_BOOLS if tensor.dtype is Dtype.bool else len(np.unique(actual)) >= MIN_DISTINCT
    return bool(is_enough and actual.tobytes() == before.tobytes())


def _constant_relation(tensor: IncorrectTensor, actual: NDArray[Any], expected: NDArray[Any]) -> Iterator[_Related]:
    """Yield `saturated` if the wrong elements are the largest or smallest numbers; `constant` if they are all equal."""
    if actual.dtype.kind not in "fiu":
        return
    if _are_saturated(tensor.dtype, actual):
        yield ValueRelation.saturated, float(actual[0])
    elif (actual == actual[0]).all() and len(np.unique(expected)) >= MIN_DISTINCT:
        yield ValueRelation.constant, float(actual[0])


def _are_saturated(dtype: Dtype, actual: NDArray[Any]) -> bool:
    """Return whether all wrong elements are the largest or smallest number of the type, and not only by chance.

    In a type of 8 bits, this may be chance for a few elements. For an unsigned type, 0 does not count.
    """
    if dtype in FORMATS:
        largest = format_of(dtype).largest
        return bool((np.abs(actual) == largest).all())
    numpy_type = to_numpy(dtype)
    if numpy_type.kind not in "iu" or (numpy_type.itemsize == 1 and len(actual) < MIN_MOVED_BOOLS):
        return False
    limits = np.iinfo(numpy_type)
    return bool(((actual == limits.max) | ((actual == limits.min) & (limits.min < 0))).all())


def _narrower_type_relation(tensor: IncorrectTensor) -> Iterator[_Related]:
    """Yield the narrowest type that represents all actual elements, if it is narrower than the tensor's type.

    Nothing is yielded if the elements are few or integers, or if the type also represents the expected elements.
    """
    parts = _real_parts(tensor.actual, tensor.dtype)
    component = COMPONENT.get(tensor.dtype, tensor.dtype)
    finite = parts[np.isfinite(parts)].astype(np.float64)
    if len(np.unique(finite)) < 2 * MIN_DISTINCT or (finite == np.rint(finite)).all():
        return
    expected = _real_parts(tensor.expected, tensor.dtype)
    for relation in NARROWER_TYPES:
        narrower_dtype = Dtype[relation.value]
        if format_of(narrower_dtype).precision >= format_of(component).precision:
            return
        if _are_representable(narrower_dtype, finite):
            if not _are_representable(narrower_dtype, expected[np.isfinite(expected)].astype(tensor.actual.real.dtype)):
                yield relation, None
            return


def _real_parts(values: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """Return real numbers unchanged, and complex numbers as an array of their real and imaginary parts."""
    return np.stack([values.real, values.imag]) if dtype in COMPONENT else values


def _are_representable(dtype: Dtype, values: NDArray[Any]) -> bool:
    """Return whether a narrower type can represent all values exactly."""
    doubles = values.astype(np.float64)
    return bool((doubles.astype(to_numpy(dtype)).astype(np.float64) == doubles).all())


def _linear_relation(tensor: IncorrectTensor, actual: NDArray[Any], expected: NDArray[Any]) -> Iterator[_Related]:
    """Yield the relation of elements that are negated, integral, scaled by a factor, or shifted by a difference."""
    if actual.dtype.kind == "c":
        return
    usable = np.isfinite(actual) & np.isfinite(expected)
    actual, expected = actual[usable], expected[usable]
    if len(np.unique(expected)) < MIN_DISTINCT:
        yield from _factor_of_all_elements(tensor)
        return
    tolerance = 2 * tensor.epsilon * np.abs(expected)
    if (np.abs(actual + expected) <= tolerance).all():
        yield ValueRelation.negated, -1.0
    if (actual == np.rint(actual)).all() and (np.abs(actual - expected) < 1).all():
        yield ValueRelation.integral, None
    factor = float(np.median(actual / expected))
    noise = _rounding_noise(tensor, np.abs(actual - expected), usable)
    if (
        abs(factor - 1) > 3 * tensor.epsilon
        and (np.abs(actual - factor * expected) <= abs(factor) * np.maximum(tolerance, noise)).all()
    ):
        yield ValueRelation.scaled, factor
    difference = float(np.median(actual - expected))
    is_far = abs(difference) > 4 * tensor.epsilon * float(np.abs(expected).max())
    if is_far and (np.abs(actual - expected - difference) <= tolerance + 2 * tensor.epsilon * abs(difference)).all():
        yield ValueRelation.shifted, difference


def _rounding_noise(tensor: IncorrectTensor, errors: NDArray[Any], usable: Mask) -> NDArray[Any] | float:
    """Return the rounding errors that scaled elements may have in addition.

    Args:
        tensor: the incorrect tensor.
        errors: the errors of some of the wrong elements.
        usable: a mask of the wrong elements that selects these.

    Returns:
        The budgets of these elements if most errors are much larger than the budgets; else 0.
    """
    if tensor.budget is None:
        return 0.0
    budget = tensor.budget[tensor.is_wrong][usable]
    return budget if float(np.median(errors - MIN_EXCESS * budget)) > 0 else 0.0


def _factor_of_all_elements(tensor: IncorrectTensor) -> Iterator[_Related]:
    """Yield the relation `scaled` if all elements, including correct ones, have the same small relative error.

    Wrong elements with few different values do not show the relation on their own.
    """
    actual, expected = widen(tensor.actual, tensor.dtype).reshape(-1), widen(tensor.expected, tensor.dtype).reshape(-1)
    usable = np.isfinite(actual) & np.isfinite(expected) & (expected != 0)
    actual, expected = actual[usable], expected[usable]
    if len(actual) < MIN_SCALED:
        return
    factor = float(np.median(actual / expected))
    residual = np.abs(actual - factor * expected) - 2 * tensor.epsilon * np.abs(expected)
    if 3 * tensor.epsilon < abs(factor - 1) <= MAX_ROUNDING and (residual <= 0).all():
        yield ValueRelation.scaled, factor


def _integer_relation(actual: NDArray[Any], expected: NDArray[Any]) -> Iterator[_Related]:
    """Yield the relation of integers that passed through another type and lost or reinterpreted bits."""
    if actual.dtype.kind not in "iu" or expected.dtype.kind not in "iu":
        return
    conversions = {
        ValueRelation.in_32_bits: expected.astype(np.int32).astype(np.int64),
        ValueRelation.through_float32: _round_through(np.float32, expected),
        ValueRelation.through_float64: _round_through(np.float64, expected),
    }
    for relation in (ValueRelation.through_float64, ValueRelation.through_float32, ValueRelation.in_32_bits):
        if relation is ValueRelation.in_32_bits and (np.abs(actual) < MIN_TRUNCATED).all():
            continue
        if (actual == conversions[relation]).all():
            yield relation, None
    yield from _type_of_all_integers(actual, expected)
    if len(np.unique(expected)) >= MIN_DISTINCT and (actual - expected == actual[0] - expected[0]).all():
        yield ValueRelation.shifted, float(actual[0] - expected[0])


def _type_of_all_integers(actual: NDArray[Any], expected: NDArray[Any]) -> Iterator[_Related]:
    """Yield the relations of the floating-point types that seem to have rounded large integers.

    Such a type represents all wrong integers, of which several are large, but does not represent many expected ones.
    """
    for relation, dtype in _CONVERSIONS.items():
        is_large = np.abs(actual.astype(np.float64)) > 2.0 ** np.finfo(dtype).nmant
        lossy = int((_round_through(dtype, expected) != expected).sum())
        if len(np.unique(actual[is_large])) < MIN_DISTINCT or lossy < MIN_SHARE_LOSSY * len(expected):
            continue
        if (_round_through(dtype, actual) == actual).all():
            yield relation, None


_CONVERSIONS: Mapping[ValueRelation, type[np.floating[Any]]] = {
    ValueRelation.through_float32: np.float32,
    ValueRelation.through_float64: np.float64,
}
"""The floating-point types through which integers can pass, by the relation of the integers."""


def _round_through(dtype: type[np.floating[Any]], values: NDArray[Any]) -> NDArray[Any]:
    """Return integers rounded to a floating-point type and converted back to int64."""
    return values.astype(dtype).astype(np.int64)


def _are_misplaced(tensor: IncorrectTensor) -> bool:
    """Return whether every wrong element has the expected value of another element, and this is not chance."""
    if tensor.is_wrong.sum() < 2 or tensor.is_wrong.size > MAX_ELEMENTS:
        return False
    if tensor.dtype is Dtype.bool:
        return bool(tensor.is_wrong.sum() >= MIN_MOVED_BOOLS) and _is_permuted(tensor)
    expected_values, actual = np.unique(tensor.expected.reshape(-1)), tensor.wrong_actual
    if expected_values.dtype.kind == "c" or len(expected_values) < 2:
        return False
    if len(expected_values) < 2 * MIN_DISTINCT or len(np.unique(actual)) < MIN_DISTINCT:
        return tensor.is_wrong.size > MIN_DISTINCT and _is_permuted(tensor)
    places = np.clip(np.searchsorted(expected_values, actual), 1, len(expected_values) - 1)
    nearest = np.minimum(np.abs(expected_values[places] - actual), np.abs(expected_values[places - 1] - actual))
    tolerance = 4 * tensor.epsilon * np.abs(actual) if is_inexact(tensor.dtype) else 0
    is_known = (
        (nearest <= tolerance) | (np.isnan(actual) & np.isnan(expected_values[-1])) | np.isin(actual, expected_values)
    )
    is_dense = not is_inexact(tensor.dtype) and expected_values[-1] - expected_values[0] < 2 * len(expected_values)
    return bool(is_known.all()) and (not is_dense or _is_permuted(tensor))


def _is_rearranged(tensor: IncorrectTensor) -> bool:
    """Return whether a tensor has the expected elements in reverse or transposed order, or each one twice in a row."""
    expected = tensor.expected
    orders = [np.repeat(expected, 2)[: expected.size], expected.reshape(-1)[::-1]]
    if expected.ndim >= 2:
        orders.append(np.swapaxes(expected, -1, -2).reshape(-1))
    actual = widen(tensor.actual, tensor.dtype).reshape(-1)
    return bool(tensor.is_wrong.sum() >= MIN_REARRANGED) and any(
        np.isclose(actual, order, rtol=4 * tensor.epsilon, atol=0, equal_nan=is_inexact(tensor.dtype)).all()
        for order in orders
    )


def _is_permuted(tensor: IncorrectTensor) -> bool:
    """Return whether the tensor has exactly the expected elements, but in another order."""
    return bool((np.sort(tensor.actual, None) == np.sort(tensor.expected, None)).all())


# Regions


def _find_regions(is_wrong: Mask, values: Mapping[str, tuple[NDArray[Any], Dtype]]) -> Iterator[Region]:
    """Yield, for each array of values, the most specific condition that holds at all wrong elements, if there is one.

    Args:
        is_wrong: which elements are wrong; at least one is.
        values: the inputs and the expected result in the shape of `is_wrong`, with their element types, by name.

    Yields:
        The region.
    """
    for name, (array, dtype) in values.items():
        special = rarest_special_class(is_wrong, array, dtype)
        is_range_possible = (special is None or special[0] == _NEGATIVE_CLASS) and _is_ordered(dtype)
        region = _narrowest_range(name, is_wrong, array.astype(np.float64)) if is_range_possible else None
        if region is not None:
            yield region
        elif special is not None:
            yield Region(parameter=name, condition=special[0])


def _is_ordered(dtype: Dtype) -> bool:
    """Return whether the elements of a type can be compared by size: real numbers, but not bool or complex."""
    return dtype in FORMATS or to_numpy(dtype).kind in "iu"


_NEGATIVE_CLASS = "negative"
"""The class of special values that a range may describe better."""


def _narrowest_range(name: str, is_wrong: Mask, values: FloatArray) -> Region | None:
    """Return the range with the fewest elements that contains the values at all wrong elements.

    Args:
        name: the name of the values.
        is_wrong: which elements are wrong.
        values: the values, in the shape of `is_wrong`.

    Returns:
        The range; None if each range contains so many elements that this may be chance.
    """
    selected = values[is_wrong]
    if not np.isfinite(selected).all() or len(np.unique(selected)) < MIN_DISTINCT:
        return None
    ranges: list[tuple[int, int, Region]] = []
    for condition, measure in _MEASURES.items():
        measured, bound = measure(values), float(measure(selected).min())
        size = int((measured >= bound).sum())
        if is_unlikely(size, is_wrong.size, len(selected)):
            beyond = measured[~is_wrong & (measured < bound)]
            is_exact = size == len(selected) and beyond.size
            sign = -1 if condition in ("below", "near_zero") else 1
            bound_outside = sign * float(beyond.max()) if is_exact else None
            region = Region(parameter=name, condition=condition, inside=sign * bound, outside=bound_outside)
            ranges.append((size, len(ranges), region))
    return min(ranges)[2] if ranges else None


_MEASURES: Mapping[str, Any] = {
    "below": lambda values: -values,
    "above": lambda values: values,
    "far_from_zero": np.abs,
    "near_zero": lambda values: -np.abs(values),
}
"""By condition, a function that is larger the further a value is inside the range.

The range contains the elements for which this function is at least as large as for one of the wrong elements.
"""
