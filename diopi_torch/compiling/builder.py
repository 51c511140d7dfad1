"""Build a program from calls of functions and rearrangements of arrays.

A program computes with numbered arrays that never share memory. A *slot* describes an array while the program is built.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np
import torch

from diopi_impl.base import BaseVendor
from diopi_impl.program import FunctionProgram, FunctionStep, ProgramArray, RearrangeStep
from diopi_impl.specs import OutSpec, ResultSpec
from diopi_proto.aten.mapping import FunctionCall, NotMappedError
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, Number, Reduction, RoundMode
from diopi_torch.layout import DTYPES, contiguous_strides


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ArraySlot:
    """An array of a program that is being built; `diopi_proto.aten.mapping` accepts it in place of a tensor.

    Attributes:
        number: the number of the array in the program.
        shape: the number of elements along each axis.
        dtype: the element type.
        strides: the distance between neighbors along each axis, in elements. The strides are those of a contiguous
            array, or of one whose axes are permuted.
    """

    number: int
    shape: tuple[int, ...]
    dtype: Dtype
    strides: tuple[int, ...]


@final
class ProgramBuilder:
    """Collects the steps of a program.

    The builder is also the `TensorFactory` with which `diopi_proto.aten.mapping` creates further arguments of
    functions.

    Args:
        vendor: the vendor that will compile the program.
    """

    def __init__(self, vendor: BaseVendor) -> None:
        self._vendor = vendor
        self._count = 0
        self._input_count = 0
        self._constants: dict[int, Any] = {}
        self._steps: list[FunctionStep | RearrangeStep] = []
        self._restrided: dict[int, tuple[ArraySlot, tuple[int, ...], tuple[int, ...]]] = {}

    def add_input(self, example: torch.Tensor) -> ArraySlot:
        """Add an input of the program, with the shape and element type of an example tensor, and return its slot.

        All inputs must be added before any step.

        Returns:
            The slot of the input.
        """
        self._input_count += 1
        return self.new_slot(tuple(example.shape), dtype_of(example))

    def new_slot(self, shape: Sequence[int], dtype: Dtype, strides: tuple[int, ...] | None = None) -> ArraySlot:
        """Return the slot of a new array, which is contiguous unless strides are passed.

        Args:
            shape: the number of elements along each axis.
            dtype: the element type.
            strides: the distance between neighbors along each axis, in elements.

        Returns:
            The slot.

        Raises:
            NotMappedError: if a size depends on elements of tensors.
        """
        if not all(type(size) is int for size in shape):
            raise NotMappedError(f"the sizes {tuple(shape)}, which depend on elements")
        number, self._count = self._count, self._count + 1
        return ArraySlot(
            number=number, shape=tuple(shape), dtype=dtype, strides=strides or contiguous_strides(tuple(shape))
        )

    def tensor_from_numbers(self, value: Number | list[int]) -> ArraySlot:
        """Return the slot of a constant with a number or a list of integers, in float32 or int64."""
        dtype = Dtype.float32 if isinstance(value, float) else Dtype.int64
        slot = self.new_slot(np.shape(value), dtype)
        self._constants[slot.number] = np.asarray(value, dtype.name)
        return slot

    def read_number(self, tensor: ArraySlot) -> Number | None:
        """Return the number of a constant; None for other arrays, whose elements are unknown during compilation."""
        constant = self._constants.get(tensor.number)
        return constant.item() if constant is not None and constant.size == 1 else None

    def restride(self, tensor: ArraySlot, shape: tuple[int, ...], strides: tuple[int, ...]) -> ArraySlot:
        """Return the slot of an array that has the elements of another one with permuted axes.

        Axes of size 1 may be added or removed. For example, the strides `(1, 4)` of the shape `(4, 3)` describe the
        transpose of a contiguous array of shape `(3, 4)`.

        Args:
            tensor: the array, a result or an argument of the operator.
            shape: the shape of the new array.
            strides: the strides of the new array in the memory of the old one.

        Returns:
            The slot.

        Raises:
            NotMappedError: if the strides describe any other view.
        """
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], shape[axis] != 1))
        stored = tuple(shape[axis] for axis in order)
        if prod(shape) != prod(tensor.shape) or _without_ones(stored) != _without_ones(tensor.shape):
            raise NotMappedError("a view that changes more than the order of axes")
        slot = self.new_slot(shape, tensor.dtype, strides)
        axes = tuple(order.index(axis) for axis in range(len(shape)))
        self._restrided[slot.number] = tensor, stored, axes
        return slot

    def empty_like(self, tensor: ArraySlot, dtype: Dtype) -> ArraySlot:
        """Return the slot of a new array with the same shape and another element type."""
        return self.new_slot(tensor.shape, dtype)

    def generator(self, argument: Any) -> Any:
        """Raise NotMappedError: programs draw no random numbers."""
        raise NotMappedError("programs draw no random numbers")

    def reshape(self, source: ArraySlot, shape: Sequence[int]) -> ArraySlot:
        """Append a reshape and return the slot of its result."""
        slot = self.new_slot(shape, source.dtype)
        self._append_reshape(source.number, slot)
        return slot

    def call(self, function: str, arguments: Mapping[str, Any], result: ArraySlot) -> ArraySlot:
        """Append a call of a function with one result and return the slot of the result."""
        (name,) = [p.name for p in lookup(function).results]
        self._append(FunctionCall(function, arguments, {name: result}))
        return result

    def append_calls(self, calls: Sequence[FunctionCall]) -> Collection[int]:
        """Append calls, and the rearrangements between the tensors of the operator and those of the calls.

        Args:
            calls: the calls of one operator.

        Returns:
            The numbers of the arrays that the calls and rearrangements compute.

        Raises:
            NotMappedError: if programs can't contain a call.
        """
        written = {slot.number for call in calls for slot in slots_in(list(call.results.values()))}
        for number in self._restrided.keys() - written:
            self._permute_argument(number)
        for call in calls:
            self._append(call)
        results = self._restrided.keys() & written
        for number in results:
            self._permute_result(number)
        computed = written | {self._restrided[number][0].number for number in results}
        self._restrided.clear()
        return computed

    def checkpoint(self) -> tuple[int, int, Mapping[int, Any]]:
        """Return the state of the builder, for `restore`."""
        return self._count, len(self._steps), dict(self._constants)

    def restore(self, checkpoint: tuple[int, int, Mapping[int, Any]]) -> None:
        """Remove everything that was added after a checkpoint."""
        self._count, length, constants = checkpoint
        self._constants = dict(constants)
        self._restrided.clear()
        del self._steps[length:]

    def _permute_argument(self, number: int) -> None:
        """Append the step that computes the argument with this number from the array of which it is a permutation."""
        source, stored, axes = self._restrided[number]
        self._steps.append(RearrangeStep(source=source.number, shape=stored, axes=axes, number=number))

    def _permute_result(self, number: int) -> None:
        """Append the steps that compute a result of the operator from the permuted array with this number."""
        result, stored, axes = self._restrided[number]
        inverse = tuple(axes.index(axis) for axis in range(len(axes)))
        contiguous = self.new_slot(stored, result.dtype)
        permuted = tuple(stored[axis] for axis in axes)
        self._steps.append(RearrangeStep(source=number, shape=permuted, axes=inverse, number=contiguous.number))
        self._append_reshape(contiguous.number, result)

    def _append_reshape(self, source: int, result: ArraySlot) -> None:
        """Append the step that computes the array `result` as a reshape of the array with the number `source`."""
        axes = tuple(range(len(result.shape)))
        self._steps.append(RearrangeStep(source=source, shape=result.shape, axes=axes, number=result.number))

    def _append(self, call: FunctionCall) -> None:
        """Append the step of a call; raise NotMappedError if the vendor can't compile the function."""
        if not self._vendor.can_compile(call.function):
            raise NotMappedError(f"{self._vendor.name} can't compile {call.function}")
        prototype = lookup(call.function)
        if any(p.is_callee_allocated for p in prototype.results):
            raise NotMappedError(f"{call.function} decides the sizes of its results")
        results = [call.results.get(p.name) for p in prototype.results]
        self._steps.append(
            FunctionStep(
                function=call.function,
                arguments=[_argument(p, call) for p in prototype.arguments],
                specs=[_spec(p, slot) for p, slot in zip(prototype.results, results, strict=True)],
                numbers=[
                    tuple(entry.number for entry in slot) if isinstance(slot, list) else slot and slot.number
                    for slot in results
                ],
            )
        )

    def reads_arguments(self) -> bool:
        """Return whether the vendor reads the arguments of any step before the program runs.

        Raises:
            NotMappedError: if such an argument is neither an input nor a constant.
        """
        steps = [
            step
            for step in self._steps
            if isinstance(step, FunctionStep) and self._vendor.reads_arguments(step.function)
        ]
        known = {*range(self._input_count), *self._constants}
        for step in steps:
            arrays = [entry for value in step.arguments for entry in (value if isinstance(value, list) else [value])]
            if any(isinstance(entry, ProgramArray) and entry.number not in known for entry in arrays):
                raise NotMappedError(f"{step.function} reads an array that is computed before it")
        return bool(steps)

    def build(self, outputs: Sequence[ArraySlot]) -> FunctionProgram:
        """Return the program that returns these arrays."""
        return FunctionProgram(
            inputs=self._input_count,
            constants=self._constants,
            steps=tuple(self._steps),
            outputs=[slot.number for slot in outputs],
        )


def dtype_of(tensor: torch.Tensor) -> Dtype:
    """Return the element type of a strided tensor.

    Raises:
        NotMappedError: the standard or NumPy does not have the element type, or the tensor is not strided.
    """
    if tensor.dtype not in DTYPES or tensor.dtype is torch.complex32 or tensor.layout is not torch.strided:
        raise NotMappedError(f"{tensor.dtype} {tensor.layout}")
    return DTYPES[tensor.dtype]


def _without_ones(shape: Sequence[int]) -> list[int]:
    """Return the sizes of a shape without those that are 1."""
    return [size for size in shape if size != 1]


def slots_in(value: Any) -> list[ArraySlot]:
    """Return the slots in nested lists."""
    if isinstance(value, ArraySlot):
        return [value]
    return [slot for entry in value for slot in slots_in(entry)] if isinstance(value, list) else []


def _argument(parameter: Parameter, call: FunctionCall) -> Any:
    """Return the value of an argument as functional implementations take it, with array numbers in place of slots."""
    if parameter.role is Role.count:
        return next(len(v) for v in (*call.arguments.values(), *call.results.values()) if isinstance(v, list))
    value = call.arguments.get(parameter.name)
    if isinstance(value, str) and issubclass(parameter.annotation, Reduction | RoundMode):
        return parameter.annotation[value]
    return _replace_slots(value)


def _replace_slots(value: Any) -> Any:
    """Return an argument with array numbers in place of slots."""
    if isinstance(value, ArraySlot):
        return ProgramArray(value.number)
    return [_replace_slots(entry) for entry in value] if isinstance(value, list) else value


def _spec(parameter: Parameter, slot: Any) -> OutSpec:
    """Return the specification of a result: its shape, element type and name.

    Args:
        parameter: the parameter of the result.
        slot: the slot of the result, a list of slots, or None for an omitted result.

    Returns:
        The specification, a tuple of specifications for a list, or None.
    """
    if isinstance(slot, list):
        return tuple(ResultSpec(entry.shape, entry.dtype, parameter.c_name) for entry in slot)
    return None if slot is None else ResultSpec(slot.shape, slot.dtype, parameter.c_name)
