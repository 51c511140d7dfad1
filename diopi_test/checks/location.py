"""Locate a failure in a tensor: the worst element, patterns of wrong elements, and the call's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.parameters import Role
from diopi_proto.types import Dtype
from diopi_test.checks.deviation import IncorrectTensor, derive_deviation
from diopi_test.checks.error_map import make_error_map
from diopi_test.checks.pattern import Mask, constant_pattern, find_patterns, value_patterns
from diopi_test.execution.call_record import CallRecord, TensorRecord
from diopi_test.execution.description import describe_arguments
from diopi_test.execution.difference import Difference, Pattern
from diopi_test.oracle.data import widen
from diopi_test.oracle.records import BaselineTensor
from lib_rt.formats import FloatArray

MAX_LOCATIONS = 3
"""The maximum number of tensors whose wrong elements a check result describes."""


def locate(
    run: CallRecord,
    name: str,
    problem: str,
    is_wrong: Mask,
    actual: NDArray[Any],
    expected: NDArray[Any],
    dtype: Dtype,
    *,
    strides: Sequence[int] = (),
    budget: FloatArray | None = None,
    measured: bool = True,
) -> Difference:
    """Describe which elements of a tensor differ from their expected values, and how.

    Args:
        run: the record of the call.
        name: the name of the tensor.
        problem: what is wrong with its elements, as in "3 of 15 elements are wrong".
        is_wrong: which elements are wrong; at least one is.
        actual: the actual elements, in the shape of `is_wrong`.
        expected: the expected elements, in this shape.
        dtype: the element type of `actual`.
        budget: the error budget of each element, in this shape; None if the elements must be exact.
        strides: the strides of `actual`; row-major by default.
        measured: whether the distance of an element from the expected element is meaningful.

    Returns:
        The difference for the report.
    """
    errors = _absolute_errors(actual, expected, dtype) if measured else np.zeros(is_wrong.shape)
    index = _find_worst(is_wrong, errors, budget)
    inputs = dict(_elementwise_inputs(run, name, is_wrong.shape))
    tensor = IncorrectTensor(
        is_wrong=is_wrong,
        actual=actual,
        expected=expected,
        dtype=dtype,
        budget=budget,
        before=_elements_before(run, name),
        inputs=inputs,
    )
    return Difference(
        tensor=name,
        problem=problem,
        wrong_count=int(is_wrong.sum()),
        total=is_wrong.size,
        index=index,
        actual=str(actual[index]),
        expected=str(expected[index]),
        error=float(errors[index]) if measured else None,
        budget=None if budget is None or not np.isfinite(budget[index]) else float(budget[index]),
        patterns=tuple(_find_all_patterns(tensor, strides)),
        inputs={label: str(array[index]) for label, (array, _) in inputs.items()},
        arguments=describe_arguments(run),
        map=make_error_map(is_wrong, errors, budget, index),
        deviation=derive_deviation(tensor),
    )


def _find_all_patterns(tensor: IncorrectTensor, strides: Sequence[int]) -> Iterator[Pattern]:
    """Yield the patterns in the positions and in the values of the wrong elements."""
    yield from find_patterns(tensor.is_wrong, strides)
    yield from value_patterns(tensor.is_wrong, {**tensor.inputs, "expected": (tensor.expected, tensor.dtype)})
    yield from constant_pattern(tensor.is_wrong, tensor.actual, tensor.expected)


def _elements_before(run: CallRecord, name: str) -> NDArray[Any] | None:
    """Return the elements of a tensor before the call if the call updates the tensor, else None."""
    record = next((record for record in run.tensors if record.name == name), None)
    return record.earlier if record is not None and record.role is Role.inout else None


def locate_in_record(
    run: CallRecord,
    record: TensorRecord,
    problem: str,
    is_wrong: Mask,
    expected: NDArray[Any],
) -> Difference:
    """Return which elements of a tensor are wrong after the call, as `locate` does without distances.

    Args:
        run: The record of the call.
        record: The record of the tensor, with its elements after the call.
        problem: What is wrong with the elements, such as "were not written".
        is_wrong: A mask of the wrong elements.
        expected: The expected elements.
    """
    dtype, strides = record.dtype, record.strides
    return locate(run, record.name, problem, is_wrong, record.values, expected, dtype, strides=strides, measured=False)


def changed_elements(run: CallRecord, record: TensorRecord) -> list[Difference]:
    """Return descriptions of changed elements in a tensor that a call must not change; empty if there are none."""
    earlier = record.earlier
    if earlier is None or not (changed := bits_differ(earlier, record.values)).any():
        return []
    return [locate_in_record(run, record, "changed", changed, earlier)]


def bits_differ(first: NDArray[Any], second: NDArray[Any]) -> Mask:
    """Return a mask of the elements of two arrays of equal shape and type that differ in at least one bit."""
    return _bits(first) != _bits(second)


def _bits(array: NDArray[Any]) -> NDArray[np.void]:
    """Return the elements as raw bytes, which are equal if all bits are equal."""
    return np.ascontiguousarray(array).reshape(array.shape).view(np.dtype((np.void, array.itemsize)))


@np.errstate(all="ignore")  # signaling NaN
def _find_worst(is_wrong: Mask, errors: FloatArray, budget: FloatArray | None) -> tuple[int, ...]:
    """Return the index of the first wrong element with the largest error / budget, or error without a budget."""
    severity = errors if budget is None else errors / budget
    severity = np.where(np.isnan(severity), np.inf, severity)
    worst = int(np.argmax(np.where(is_wrong, severity, -1.0)))
    return tuple(int(i) for i in np.unravel_index(worst, is_wrong.shape))


@np.errstate(all="ignore")  # signaling NaN; equal infinities
def _absolute_errors(actual: NDArray[Any], expected: NDArray[Any], dtype: Dtype) -> FloatArray:
    """Return the distance of each element from the expected value; infinity if either is NaN or both are infinite."""
    kind = np.complex128 if "c" in (actual.dtype.kind, expected.dtype.kind) else np.float64
    distance = np.abs(widen(actual, dtype).astype(kind) - expected.astype(kind))
    return np.where(np.isnan(distance), np.inf, distance)


def _elementwise_inputs(
    run: CallRecord, name: str, shape: tuple[int, ...]
) -> Iterator[tuple[str, tuple[NDArray[Any], Dtype]]]:
    """Yield the inputs of an element-wise function, broadcast to the shape of a result; nothing for other functions.

    Args:
        run: the record of the call.
        name: the name of the result.
        shape: the shape of the result.

    Yields:
        The name of an input, and a pair of its elements and its element type.
    """
    result, _, number = name.partition(".")
    is_computed = run.prototype.elementwise and run.prototype.parameter(result).is_result
    entry = int(number or 0)
    for parameter in run.prototype.arguments if is_computed else ():
        argument = run.case.arguments[parameter.name]
        if isinstance(argument, list):
            argument = argument[entry] if entry < len(argument) else None
        if isinstance(argument, BaselineTensor) and _broadcasts_to(argument.values.shape, shape):
            yield parameter.name, (np.broadcast_to(argument.values, shape), argument.dtype)


def _broadcasts_to(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Return whether an array of this shape can be broadcast to the shape `to`."""
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False
