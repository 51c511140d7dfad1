"""Where a tensor of a call is wrong: the worst element, what all wrong ones have in common, what the call was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline.records import BaselineTensor
from diopi_test.cases.data import widen
from diopi_test.cases.formats import FloatArray
from diopi_test.checks.error_map import error_map
from diopi_test.checks.pattern import Mask, constant_pattern, patterns, value_patterns
from diopi_test.execution.call_record import CallRecord, TensorRecord
from diopi_test.execution.description import describe_arguments
from diopi_test.execution.difference import Difference

MOST = 3
"""Tensors of which a finding says where they are wrong."""


def locate(
    run: CallRecord,
    name: str,
    problem: str,
    wrong: Mask,
    given: NDArray[Any],
    expected: NDArray[Any],
    dtype: Dtype,
    *,
    strides: Sequence[int] = (),
    budget: FloatArray | None = None,
    measured: bool = True,
) -> Difference:
    """Where the tensor called `name` is not what it should be.

    Args:
        problem: what is wrong with its elements, as in "3 of 15 elements are wrong".
        wrong, given, expected, budget: arrays of one shape; at least one element is wrong.
        dtype: the element type of `given`.
        strides: how `given` lies in memory; left out, row by row.
        measured: whether the distance of an element from the expected one means anything.
    """
    errors = _errors(given, expected, dtype) if measured else np.zeros(wrong.shape)
    index = _worst(wrong, errors, budget)
    inputs = {which: (array, its) for which, array, its in _inputs(run, name, wrong.shape)}
    values = {**inputs, "expected": (expected, dtype)}
    return Difference(
        name,
        problem,
        int(wrong.sum()),
        wrong.size,
        index,
        str(given[index]),
        str(expected[index]),
        float(errors[index]) if measured else None,
        None if budget is None or not np.isfinite(budget[index]) else float(budget[index]),
        (*patterns(wrong, strides), *value_patterns(wrong, values), *constant_pattern(wrong, given, expected)),
        {which: str(array[index]) for which, (array, _) in inputs.items()},
        describe_arguments(run),
        map=error_map(wrong, errors, budget, index),
    )


def locate_in(
    run: CallRecord,
    record: TensorRecord,
    problem: str,
    wrong: Mask,
    expected: NDArray[Any],
) -> Difference:
    """As `locate`, of a tensor as the call left it, and of its first wrong element."""
    dtype, strides = record.dtype, record.strides
    return locate(run, record.name, problem, wrong, record.values, expected, dtype, strides=strides, measured=False)


def changed_elements(run: CallRecord, record: TensorRecord) -> list[Difference]:
    """The elements of a tensor that should be what they were before the call, and are not."""
    earlier = record.earlier
    if earlier is None or not (changed := have_other_bits(earlier, record.values)).any():
        return []
    return [locate_in(run, record, "changed", changed, earlier)]


def have_other_bits(one: NDArray[Any], other: NDArray[Any]) -> Mask:
    """Where the elements of two arrays of one shape and type are not equal to the bit."""
    return _bits(one) != _bits(other)


def _bits(array: NDArray[Any]) -> NDArray[np.void]:
    """The elements as bare bytes, which are equal where all bits are."""
    return np.ascontiguousarray(array).reshape(array.shape).view(np.dtype((np.void, array.itemsize)))


@np.errstate(all="ignore")  # signalling NaN
def _worst(wrong: Mask, errors: FloatArray, budget: FloatArray | None) -> tuple[int, ...]:
    """The index of the wrong element that is most times its budget off; the first of several."""
    severity = errors if budget is None else errors / budget
    severity = np.where(np.isnan(severity), np.inf, severity)  # nothing is near what is not finite
    worst = int(np.argmax(np.where(wrong, severity, -1.0)))
    return tuple(int(i) for i in np.unravel_index(worst, wrong.shape))


@np.errstate(all="ignore")  # signalling NaN; infinities that agree
def _errors(given: NDArray[Any], expected: NDArray[Any], dtype: Dtype) -> FloatArray:
    """The distance of each element from the expected one; infinite where a NaN or an infinity is wrong."""
    kind = np.complex128 if "c" in (given.dtype.kind, expected.dtype.kind) else np.float64
    distance = np.abs(widen(given, dtype).astype(kind) - expected.astype(kind))
    return np.where(np.isnan(distance), np.inf, distance)


def _inputs(run: CallRecord, name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, NDArray[Any], Dtype]]:
    """The inputs from whose elements those of result `name` are computed one by one, in its shape."""
    result, _, number = name.partition(".")
    is_computed = run.prototype.elementwise and run.prototype.parameter(result).is_result
    entry = int(number or 0)
    for parameter in run.prototype.arguments if is_computed else ():
        given = run.case.arguments[parameter.name]
        if isinstance(given, list):
            given = given[entry] if entry < len(given) else None
        if isinstance(given, BaselineTensor) and _broadcasts(given.values.shape, shape):
            yield parameter.name, np.broadcast_to(given.values, shape), given.dtype


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False
