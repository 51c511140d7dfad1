"""Compare the outputs of an operator on the device with its outputs on the CPU.

Both may contain rounding errors. An element of an output is therefore incorrect only if it differs too much from two
results: the CPU's result in the same element type, and the result in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.data import widen
from diopi_test.oracle.records import Expected
from diopi_torch.compare.contents import read_elements
from diopi_torch.compare.on_cpu import CpuCall, PreciseCall
from diopi_torch.layout import DTYPES
from lib_rt.formats import FloatArray, format_of, is_inexact, ulp

MAX_LISTED_ELEMENTS = 4
"""Number of elements of a tensor that a message lists."""


@final
@dataclass(frozen=True)
class ComparedTensor:
    """The result of comparing one tensor of a call on the device with the tensor on the CPU.

    Attributes:
        name: the name of the argument, or `result`; followed by `.number` for an element of a list.
        is_correct: whether the tensor has the expected contents, or can't be compared.
        lines: the message about the tensor, line by line.
    """

    name: str
    is_correct: bool
    lines: tuple[str, ...]


@final
@dataclass(frozen=True)
class StandardResult:
    """The result that the standard expects from a function that the operator called.

    Attributes:
        expected: the expected values with their error budget.
        strides: the strides of the tensor in which the function stores the result, in elements.
    """

    expected: Expected
    strides: tuple[int, ...]

    def view_as(self, tensor: torch.Tensor) -> Expected | None:
        """Return the expected result in the order of another tensor with the same memory.

        An operator may return a view of a function's result, for example with permuted axes.

        Args:
            tensor: the tensor that the operator returned, which begins at the same address.

        Returns:
            The expected result with the shape of `tensor`; None if `tensor` has another element type or other elements.
        """
        expected, form = self.expected, (tuple(tensor.shape), tensor.stride())
        if expected.dtype is not DTYPES[tensor.dtype]:
            return None
        if (expected.values.shape, self.strides) == form:
            return expected
        result_offsets, view_offsets = _element_offsets(expected.values.shape, self.strides), _element_offsets(*form)
        if not np.array_equal(np.sort(result_offsets), np.sort(view_offsets)):
            return None
        order = np.argsort(result_offsets)[np.argsort(np.argsort(view_offsets))]

        def permute(array: NDArray[Any] | None) -> Any:
            """Return an array of the result's shape with the elements in the order of the view."""
            if array is None:
                return None
            return np.broadcast_to(array, expected.values.shape).ravel()[order].reshape(form[0])

        return replace(
            expected,
            values=permute(expected.values),
            budget=None if expected.budget is None else Budget(permute(expected.budget.unit)),
            flushed=permute(expected.flushed),
            specified=permute(expected.specified),
        )


def _element_offsets(shape: Sequence[int], strides: Sequence[int]) -> NDArray[np.intp]:
    """Return the offset of each element of a tensor from the first element, in elements."""
    places = np.zeros((), np.intp)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return places.ravel()


def compare_outputs(call: CpuCall, returned: Any, known: Mapping[int, StandardResult]) -> Iterator[ComparedTensor]:
    """Compare the outputs of a call with those of the CPU, and check that its inputs are unchanged.

    Args:
        call: the call with its arguments from before it ran.
        returned: the value that it returned on the device.
        known: the results that the standard expects from the functions that the operator called, by memory address.

    Yields:
        The comparison of each output and each input.
    """
    outputs = call.outputs(returned, call.named)
    yield from _compare_written_tensors(call, outputs, known)
    written = [content for name, content in call.contents.items() if call.is_written(name)]
    for name, content in call.contents.items():
        if not call.is_written(name):
            yield _compare_input(name, np.array_equal(content.stored, content.read_again(written)))


def _compare_written_tensors(
    call: CpuCall, outputs: Mapping[str, torch.Tensor], known: Mapping[int, StandardResult]
) -> Iterator[ComparedTensor]:
    """Yield the comparison of each output with the CPU's output.

    If the CPU can't run the operator, yield outputs that are not compared and count as correct.

    Args:
        call: the call with its arguments from before it ran.
        outputs: the outputs on the device by name.
        known: the results that the standard expects, by memory address.
    """
    try:
        expected_outputs = call.run_in_call_dtypes()
    except (RuntimeError, NotImplementedError) as error:
        reason = f"not compared: the CPU can't run the operator: {str(error).splitlines()[0]}"
        yield from (ComparedTensor(name, True, (f"{name}: {reason}",)) for name in outputs)
        return
    precise = _run_precisely(call)
    for name, tensor in outputs.items():
        yield _compare_output(
            name,
            tensor,
            expected_outputs[name],
            None if call.draws_random_numbers else _OutputLimits.for_result(tensor, name, precise, known),
        )


def _run_precisely(call: CpuCall) -> PreciseCall | None:
    """Return the call in float64, or None if the operator is random or does not support float64."""
    try:
        return None if call.draws_random_numbers else PreciseCall(call)
    except (RuntimeError, NotImplementedError):  # the operator does not support float64
        return None


def _compare_input(name: str, untouched: bool) -> ComparedTensor:
    """Return the comparison of the input called `name`, which is correct if the operator left it untouched."""
    statement = "untouched" if untouched else "was written, though the operator's schema does not say so"
    return ComparedTensor(name, untouched, (f"{name}: {statement}",))


@final
@dataclass(frozen=True)
class _OutputLimits:
    """The limits within which an output of the device may differ from the CPU's output.

    Attributes:
        expected: the result according to the standard; None if the output is not a result of a known function.
        exact: the output of the operator in float64; None if it is unknown.
        budget: the error budget of the output; None if it is unknown or the element type is exact.
    """

    expected: Expected | None
    exact: NDArray[Any] | None
    budget: Budget | None

    @classmethod
    def for_result(
        cls, tensor: torch.Tensor, name: str, precise: PreciseCall | None, known: Mapping[int, StandardResult]
    ) -> _OutputLimits:
        """Return the limits of an output.

        The budget is the standard's if the output is a result of a function. Otherwise it is derived from the
        operator's results in float64.

        Args:
            tensor: the output on the device.
            name: the name of the output.
            precise: the call in float64; None if the operator does not support that.
            known: the results that the standard expects, by memory address.
        """
        dtype, standard_result = DTYPES[tensor.dtype], known.get(tensor.data_ptr())
        expected = None if standard_result is None else standard_result.view_as(tensor)
        exact = precise.outputs.get(name) if precise else None
        if exact is None or exact.shape != tuple(tensor.shape):
            exact = None
        if not is_inexact(dtype):
            return cls(expected, exact, None)
        if expected is not None:
            return cls(expected, exact, expected.budget)
        return cls(None, exact, precise.budget(name, dtype) if precise and exact is not None else None)

    def exceeds_budget(self, actual: NDArray[Any], cpu_values: NDArray[Any], dtype: Dtype) -> NDArray[np.bool_]:
        """Return a mask of the incorrect elements of an output.

        An element is incorrect if it differs by more than the budget from the CPU's result, and from the exact result
        if that is known. Without a budget, one ulp is allowed. Elements that the standard does not specify are correct,
        and so is every element of a result with several valid answers.

        Args:
            actual: the elements on the device.
            cpu_values: the elements on the CPU in the element type of the call.
            dtype: the element type.
        """
        if self.expected is not None and self.expected.needs_validator:
            return np.zeros(actual.shape, bool)
        if is_inexact(dtype):
            budget = Budget(ulp(cpu_values, dtype)) if self.budget is None else self.budget
            allowed = budget.limit + format_of(dtype).tiny
            mask = _exceeds(actual, cpu_values, allowed)
            if self.exact is not None:
                mask &= _exceeds(actual, self.exact, allowed)
        else:
            mask = actual != cpu_values
        if self.expected is not None and self.expected.specified is not None:
            mask &= self.expected.specified
        return mask


def _exceeds(actual: NDArray[Any], expected: NDArray[Any], allowed: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the elements that differ from the expected ones by more than `allowed`; NaN equals NaN."""
    with np.errstate(all="ignore"):
        is_close = (
            (actual == expected) | (np.isnan(actual) & np.isnan(expected)) | (np.abs(actual - expected) <= allowed)
        )
    return np.logical_not(is_close)


def _compare_output(
    name: str, tensor: torch.Tensor, cpu_output: NDArray[Any], limits: _OutputLimits | None
) -> ComparedTensor:
    """Compare one output of the device with that of the CPU.

    Args:
        name: the name of the output.
        tensor: the output on the device.
        cpu_output: the output on the CPU.
        limits: the limits for the differences; None for a random output, of which only shape and type are compared.

    Returns:
        The comparison.
    """
    actual, dtype = read_elements(tensor), DTYPES[tensor.dtype]
    if actual.shape != cpu_output.shape or actual.dtype != cpu_output.dtype:
        statement = f"{name}: {actual.dtype}{list(actual.shape)}, on the CPU {cpu_output.dtype}{list(cpu_output.shape)}"
        return ComparedTensor(name, False, (statement,))
    if limits is None:
        return ComparedTensor(name, True, (f"{name}: drawn at random, of the same form",))
    device_values, cpu_values = widen(actual, dtype), widen(cpu_output, dtype)
    mask = limits.exceeds_budget(device_values, cpu_values, dtype)
    if not mask.any():
        return ComparedTensor(name, True, (f"{name}: allclose",))
    return ComparedTensor(name, False, tuple(_describe_difference(name, tensor, device_values, cpu_values, mask)))


def _describe_difference(
    name: str, tensor: torch.Tensor, actual: NDArray[Any], cpu_values: NDArray[Any], mask: NDArray[np.bool_]
) -> Iterator[str]:
    """Yield the lines of the message about an incorrect output: the largest difference, and the first elements.

    Args:
        name: the name of the output.
        tensor: the output on the device.
        actual: the elements on the device.
        cpu_values: the elements on the CPU.
        mask: which elements are incorrect.
    """
    with np.errstate(all="ignore"):
        differences = np.where(mask, np.abs(actual * 1.0 - cpu_values * 1.0), 0)
        distances = np.abs(actual * 1.0 - cpu_values * 1.0)
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(differences), np.inf, differences))), actual.shape)
    index = tuple(map(int, place))
    yield (
        f"{name}: {int(mask.sum())} of {mask.size} elements differ, most at {index}: {actual[index]} and "
        f"{cpu_values[index]}, by {differences[index]:.6g}; mean absolute error {distances.mean():.6g}"
    )
    form = f"{DTYPES[tensor.dtype].name}{list(tensor.shape)} strides {list(tensor.stride())}"
    for side, array in (("device", actual), ("CPU", cpu_values)):
        first = ", ".join(
            f"{value:.6g}" if array.dtype.kind == "f" else str(value) for value in array.flat[:MAX_LISTED_ELEMENTS]
        )
        yield f"  {side}: {form}: {first}{', …' if array.size > MAX_LISTED_ELEMENTS else ''}"
