"""Mutants of results: wrong elements, a narrower type, another order, missing results, wrong allocation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.parameters import Role
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.cases.layouts import contiguous, layout_named
from diopi_test.oracle.records import Expected, expected_arrays, tensors_in
from diopi_test.quality.mutation.mutant import (
    Array,
    Effect,
    Mutant,
    SimulatedCall,
    changed_if,
    differ,
    is_float,
    read_transposed,
)
from lib_rt import poison_of
from lib_rt.dtypes import from_numpy, to_numpy
from lib_rt.formats import FORMATS


def _change_each_result(
    change: Callable[[Array], Array | None], applies_to_draws: bool = False
) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that changes each result array.

    Args:
        change: returns the wrong array; None if the mutant does not apply to this array.
        applies_to_draws: whether the mutant applies to random results, in which any element may differ.

    Returns:
        The corruption.
    """
    return _change_each_specified_result(lambda array, expected: change(array), applies_to_draws)


def _change_each_specified_result(
    change: Callable[[Array, Expected], Array | None], applies_to_draws: bool = False
) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption as `_change_each_result` does; here `change` also receives the expected result.

    Args:
        change: returns the changed array, or None if it does not apply to the array.
        applies_to_draws: whether random results, which a validator checks, are changed, too.
    """

    def corrupt(call: SimulatedCall) -> Effect:
        """Replace the arrays of the results by changed ones and return the effect."""
        corrupted = False
        for name, arrays in call.results.items():
            for number, expected in enumerate(expected_arrays(call.case.expected[name])):
                is_random = expected.needs_validator and call.case.draws
                changed = change(arrays[number], expected) if applies_to_draws or not is_random else None
                if changed is not None:
                    corrupted |= _differs(changed.reshape(arrays[number].shape), arrays[number], expected.specified)
                    arrays[number] = changed.reshape(arrays[number].shape)
        return changed_if(corrupted)

    return corrupt


def _differs(actual: Array, correct: Array, specified: Any) -> bool:
    """Return whether the bits of a specified element differ.

    Args:
        actual: the changed array.
        correct: the array before the change.
        specified: a mask of the elements that the standard specifies; None if it specifies all.
    """
    selection = ... if specified is None else specified
    return actual[selection].tobytes() != correct[selection].tobytes()


def _change_element(position: Callable[[int], int]) -> Callable[[Array], Array | None]:
    """Return a change of the element at a position.

    A number is multiplied by 9/8 and increased by 1, and an infinity or NaN is replaced by 1. The lowest bit of an
    integer is flipped, and a truth value is inverted.

    Args:
        position: returns the row-major index of the element, from the number of elements of the array.

    Returns:
        The change, which returns None for an empty array.
    """

    def change(array: Array) -> Array | None:
        """Return a copy of the array with the changed element; return None for an empty array."""
        if not array.size:
            return None
        changed = array.copy().reshape(-1)
        index = position(array.size)
        value = changed[index]
        if changed.dtype == bool:
            changed[index] = not value
        elif changed.dtype.kind in "iu":
            changed[index] = value ^ 1
        else:
            with np.errstate(all="ignore"):
                changed[index] = 1 if not np.isfinite(value) else value * array.dtype.type(1.125) + array.dtype.type(1)
        return changed

    return change


def _omit_tail(array: Array) -> Array | None:
    """Return the array with zeros in its last block of up to 16 elements; return None for an empty array.

    Blocks begin at multiples of 16. In an array of up to 16 elements, only the last element becomes zero.
    """
    start = (array.size - 1) // 16 * 16 if array.size > 16 else array.size - 1
    if not array.size:
        return None
    changed = array.copy().reshape(-1)
    changed.view(np.uint8).reshape(array.size, -1)[start:] = 0
    return changed


def _scale(relative: float) -> Callable[[Array], Array | None]:
    """Return a change that multiplies floating-point elements by 1 + `relative`."""

    def change(array: Array) -> Array | None:
        """Return the scaled array; return None for other element types."""
        if not is_float(array):
            return None
        with np.errstate(all="ignore"):
            return (array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) * (1 + relative)).astype(
                array.dtype
            )

    return change


def _add_four_epsilons(array: Array) -> Array | None:
    """Return a floating-point array multiplied by 1 + 4 ε, where ε is the machine epsilon of its element type.

    Return None for other element types.
    """
    if not is_float(array):
        return None
    return _scale(4 * float(ml_dtypes.finfo(array.dtype).eps))(array)


def _replace_elements(
    condition: Callable[[Array], Array], value: Callable[[Array], Any]
) -> Callable[[Array], Array | None]:
    """Return a change that replaces the floating-point elements that meet a condition.

    Args:
        condition: returns a mask of the elements to replace.
        value: returns the new elements, an array of the same shape or a number.
    """

    def change(array: Array) -> Array | None:
        """Return the array with the elements replaced; return None for other than real numbers."""
        if not is_float(array) or array.dtype.kind == "c":
            return None
        with np.errstate(all="ignore"):
            return np.where(condition(array), value(array), array).astype(array.dtype)

    return change


def _make_zeros_positive(array: Array, expected: Expected) -> Array | None:
    """Return an array of real numbers with +0 in place of every −0 whose sign the standard specifies.

    The error budget leaves the sign of some zeros open: those of underflow and cancellation. Return None for other
    element types.
    """
    if not is_float(array) or array.dtype.kind == "c":
        return None
    zeros = (expected.values == 0) & np.signbit(expected.values)
    if expected.budget is not None:
        zeros &= ~expected.budget.covers_subnormals(expected.dtype)
    return np.where(zeros, np.zeros_like(array), array)


def _round_through(dtype: Dtype) -> Callable[[Array], Array | None]:
    """Return a change that rounds the elements to a narrower type and converts them back."""
    narrow_dtype = to_numpy(dtype)

    def change(array: Array) -> Array | None:
        """Return the rounded array; return None if the array's type does not have a higher precision."""
        dtype_of_array = next((d for d in FORMATS if to_numpy(d) == array.dtype), None)
        if dtype_of_array is None or FORMATS[dtype_of_array].precision <= FORMATS[dtype].precision:
            return None
        with np.errstate(all="ignore"):
            return array.astype(narrow_dtype).astype(array.dtype)

    return change


def _convert_through_double(array: Array) -> Array | None:
    """Return int64 elements converted to float64 and back; return None for other element types."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64).astype(array.dtype) if array.dtype == np.int64 else None


def _reverse_indices(array: Array) -> Array | None:
    """Return an array of integers, such as indices or counts, in reverse order along the first axis longer than 1.

    Return None for other element types, and if no axis is longer than 1.
    """
    axis = next((i for i, length in enumerate(array.shape) if length > 1), None)
    return None if axis is None or array.dtype.kind not in "iu" else np.flip(array, axis).copy()


def _swap_first_different(array: Array) -> Array | None:
    """Return an array of integers, flattened, with the first two neighboring elements that differ swapped.

    Return None for other element types, and if all elements are equal.
    """
    flat = array.reshape(-1).copy()
    differing = np.flatnonzero(flat[1:] != flat[:-1])
    if array.dtype.kind not in "iu" or not differing.size:
        return None
    first = differing[0]
    flat[[first, first + 1]] = flat[[first + 1, first]]
    return flat


def _repeat_first_half(array: Array) -> Array | None:
    """Return an array of the same size in which each element of the first half occurs twice: a, a, b, b, and so on."""
    return np.repeat(array.reshape(-1), 2)[: array.size]


def _add_to_earlier(array: Array) -> Array:
    """Return the array added to itself, as if the result were added to an equal earlier result.

    Truth values are inverted instead.
    """
    with np.errstate(all="ignore"):
        return ~array if array.dtype == bool else array + array


def _leave_unwritten(*names: str) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that does not write the named results, or any result if there are no names.

    The tensors stay as they were before the call: filled with poison, or with the old state.
    """

    def corrupt(call: SimulatedCall) -> Effect:
        """Remove the results, so that the vendor does not write them, and return the effect."""
        removed = {name: call.results.pop(name) for name in names or list(call.results)}
        previous = {name: values_before_call(call, name, arrays) for name, arrays in removed.items()}
        return changed_if(differ(removed, previous))

    return corrupt


def values_before_call(call: SimulatedCall, name: str, arrays: list[Array]) -> list[Array]:
    """Return what the memory of a result contains before the call.

    Args:
        call: the call.
        name: the name of the result.
        arrays: the arrays of the result, which determine shapes and element types of poison.

    Returns:
        Poison if the result is not an argument, too. Otherwise the values of the argument's tensors, or the number
        that is passed by pointer.
    """
    argument = call.case.arguments.get(name)
    if argument is None:
        return [_poison_array(array) for array in arrays]
    return [tensor.values for tensor in tensors_in(argument)] or [np.asarray(argument) for _ in arrays]


def _poison_array(array: Array) -> Array:
    """Return an array of the same shape and type that is filled with poison."""
    return np.frombuffer(poison_of(from_numpy(array.dtype)) * array.size, array.dtype).reshape(array.shape)


def _ignore_memory_format(call: SimulatedCall) -> Effect:
    """Allocate results in row-major order, whatever memory format the caller requests.

    Returns:
        `changed` if the requested layout of a result is not row-major, else `not_applicable`.
    """
    requested, call.layouts = call.layouts, dict.fromkeys(call.layouts, "contiguous")
    return changed_if(
        any(
            layout_named(requested[name])(array.shape) != contiguous(array.shape)
            for name in requested
            for array in call.results[name]
        )
    )


_NEIGHBORING_TYPES = {Dtype.float32: Dtype.float64, Dtype.int64: Dtype.int32, Dtype.int32: Dtype.int64}
"""The wrong element type in which a mutant allocates a result, by the correct type; float32 for all other types."""


def _allocate_in_another_type(call: SimulatedCall) -> Effect:
    """Allocate the results that the callee allocates in another element type, with the same values.

    Returns:
        `changed` if the callee allocates a result, else `not_applicable`.
    """
    for name in call.layouts:
        call.results[name] = [_convert_to_neighboring_type(array) for array in call.results[name]]
    return changed_if(bool(call.layouts))


def _convert_to_neighboring_type(array: Array) -> Array:
    """Return the array, without imaginary parts, in the type that `_NEIGHBORING_TYPES` lists, or else in float32."""
    replacement = _NEIGHBORING_TYPES.get(from_numpy(array.dtype), Dtype.float32)
    with np.errstate(all="ignore"):
        return (array.real if array.dtype.kind == "c" else array).astype(to_numpy(replacement))


def result_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of results; nearly all apply to every function.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    yield from _COMMON_MUTANTS
    results = lookup(function).results
    if any(result.is_callee_allocated for result in results):
        yield Mutant(name="result allocated in another type", corrupt=_allocate_in_another_type)
    for attribute in lookup(function).arguments:
        if attribute.annotation is MemoryFormat:
            yield Mutant(
                name=f"{attribute.name} ignored",
                corrupt=_ignore_memory_format,
                corrupt_memory=None,
                kind="attribute ignored",
                parameter=attribute.name,
            )
    for result in results:
        if result.role is Role.inout:
            yield Mutant(
                name=f"{result.name} not updated", corrupt=_leave_unwritten(result.name), kind="state not updated"
            )
        elif len(results) > 1:
            yield Mutant(
                name=f"{result.name} not written", corrupt=_leave_unwritten(result.name), kind="result not written"
            )


change_last_element = _change_each_result(_change_element(lambda size: size - 1))
"""Changes the last element of each result that has elements, and returns the effect."""

_COMMON_MUTANTS = (
    Mutant(name="first element wrong", corrupt=_change_each_result(_change_element(lambda size: 0))),
    Mutant(name="last element wrong", corrupt=change_last_element),
    Mutant(name="one element in 2000 wrong", corrupt=_change_each_result(_change_element(lambda size: 1999 % size))),
    Mutant(name="last block not computed", corrupt=_change_each_result(_omit_tail)),
    Mutant(name="result added to the previous result", corrupt_repetition=_change_each_result(_add_to_earlier)),
    Mutant(name="all elements zero", corrupt=_change_each_result(np.zeros_like, applies_to_draws=True)),
    Mutant(name="nothing written", corrupt=_leave_unwritten()),
    Mutant(name="off by 4 eps", corrupt=_change_each_result(_add_four_epsilons)),
    Mutant(name="off by 1e-3", corrupt=_change_each_result(_scale(1e-3))),
    Mutant(name="off by 4 %", corrupt=_change_each_result(_scale(0.04))),
    Mutant(name="NaN replaced by 0", corrupt=_change_each_result(_replace_elements(np.isnan, np.zeros_like))),
    Mutant(
        name="infinity replaced by the largest number",
        corrupt=_change_each_result(
            _replace_elements(np.isinf, lambda a: np.copysign(ml_dtypes.finfo(a.dtype).max, a))
        ),
    ),
    Mutant(name="sign of zero dropped", corrupt=_change_each_specified_result(_make_zeros_positive)),
    Mutant(name="computed in bfloat16", corrupt=_change_each_result(_round_through(Dtype.bfloat16))),
    Mutant(name="computed in float16", corrupt=_change_each_result(_round_through(Dtype.float16))),
    Mutant(name="computed in float32", corrupt=_change_each_result(_round_through(Dtype.float32))),
    Mutant(name="integers converted to float64 and back", corrupt=_change_each_result(_convert_through_double)),
    Mutant(name="result transposed", corrupt=_change_each_result(read_transposed)),
    Mutant(name="indices reversed", corrupt=_change_each_result(_reverse_indices)),
    Mutant(name="neighboring indices swapped", corrupt=_change_each_result(_swap_first_different)),
    Mutant(name="every element repeated", corrupt=_change_each_result(_repeat_first_half, applies_to_draws=True)),
)
"""The mutants of results that apply to every function."""
