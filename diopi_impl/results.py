"""Delivery of the results of functional implementations: all results are checked before the first is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from diopi_impl.base import Box
from diopi_impl.conversion import convert_array
from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy

Array = np.ndarray[Any, Any]

Write = tuple[Callable[[Context, Any, Any], None], Any, Any]
"""A function that writes a value, the target, and the value; all checks have passed."""

PlanWrites = Callable[[str, Any, Any], list[Write]]
"""Returns the writes for a result's name, the caller's argument and the value; raises if the value does not fit."""


@final
@dataclass(frozen=True)
class DeferredResult:
    """A result that is computed directly into the caller's tensor, without an intermediate array.

    Attributes:
        shape, dtype: the shape and element type of the result.
        fill: writes the result to an array, which may be the memory of an argument. It can't fail.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Callable[[Array], object]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the result in a new array, for tensors of another shape or element type."""
        array = np.empty(self.shape, self.dtype)
        self.fill(array)
        return array


@final
class Results:
    """A writer for the results of calls of `prototype`."""

    def __init__(self, prototype: Prototype) -> None:
        position = {p.name: i for i, p in enumerate(prototype.parameters[1:])}
        self._targets = [(position[p.name], p.c_name, _plan(p), _may_be_none(p)) for p in prototype.results]
        self._size_positions = [position[p.name] for p in prototype.results if p.annotation is kinds.InOutSize]

    def write(self, context: Context, values: Sequence[Any], results: Sequence[Any]) -> None:
        """Write `results` to the result arguments among `values`; raise ValueError if a result does not fit."""
        is_query = bool(self._size_positions) and any(_is_workspace_query(values[i]) for i in self._size_positions)
        writes: list[Write] = []
        for (i, name, plan, may_be_none), result in zip(self._targets, results, strict=True):
            if values[i] is not None and (result is not None or not (may_be_none or is_query)):
                writes += plan(name, values[i], result)
        for write, place, value in writes:
            write(context, place, value)


def _may_be_none(parameter: Parameter) -> bool:
    """Return whether a result may be None: the tensor is then unchanged, or not allocated."""
    return parameter.optional or parameter.annotation is kinds.NewOut


def _is_workspace_query(box: Box | None) -> bool:
    """Return whether the box requests the size of a workspace, so that nothing is computed."""
    return box is not None and box.value < 0


def _plan(parameter: Parameter) -> PlanWrites:
    """Return the function that plans the writes of a result."""
    plan = (
        _plan_new_tensor
        if parameter.is_callee_allocated
        else _plan_number
        if parameter.annotation in kinds.OUT_VALUES
        else _plan_tensor
    )
    return _plan_entries(plan) if parameter.is_tensor_array else plan


def _plan_entries(plan: PlanWrites) -> PlanWrites:
    """Return a function that plans the writes of an array of results, each by `plan`."""

    def entries(name: str, targets: Sequence[Any], results: Sequence[Any]) -> list[Write]:
        """Return the writes of all entries; raise ValueError if the number of results is wrong."""
        check_entry_count(name, targets, results)
        return [write for target, result in zip(targets, results, strict=True) for write in plan(name, target, result)]

    return entries


def _plan_tensor(name: str, target: Tensor, result: Any) -> list[Write]:
    """Return the write of a result to a tensor; raise ValueError if the shape does not fit."""
    dtype, addressable = to_numpy(target.dtype), target.device.host_addressable
    if isinstance(result, DeferredResult) and addressable and (result.shape, result.dtype) == (target.shape, dtype):
        return [(_fill_view, target.view(), result)]
    array = np.asarray(result)
    if array.shape != target.shape:
        check_shape(name, target.shape, array.shape)
        array = array.reshape(target.shape)
    if array.dtype != dtype:
        array = convert_array(array, dtype)
    if addressable:
        return [(_copy_to_view, target.view(), array)]
    return [(_write_tensor, target, array)]


def _copy_to_view(context: Context, place: Array, array: Array) -> None:
    """Copy an array to a view of the memory of a tensor."""
    place[...] = array


def _fill_view(context: Context, place: Array, result: DeferredResult) -> None:
    """Let a deferred result write to a view of the memory of a tensor."""
    result.fill(place)


def _write_tensor(context: Context, tensor: Tensor, array: Array) -> None:
    """Copy an array to a tensor in device memory."""
    tensor.write(array)


def _plan_number(name: str, box: Box, result: Any) -> list[Write]:
    """Return the write of a number to a box."""
    return [(_fill_box, box, np.asarray(result).item())]


def _fill_box(context: Context, box: Box, value: Any) -> None:
    """Store a number in a box."""
    box.value = value


def _plan_new_tensor(name: str, box: Box, result: Any) -> list[Write]:
    """Return the write of a result to a tensor that the call allocates."""
    return [(_fill_box_with_tensor, box, np.asarray(result))]


def _fill_box_with_tensor(context: Context, box: Box, array: Array) -> None:
    """Fill `box` with a new tensor that has the memory layout of `array`."""
    dense = np.copy(array, order="K")
    strides = [stride // array.itemsize for stride in dense.strides] if array.size else None
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), strides)
    tensor.write(array)
    box.value = tensor


def check_shape(name: str, target: Sequence[int], result: Sequence[int]) -> None:
    """Raise ValueError unless the shapes of a tensor and of its result are equal, apart from axes of size 1."""
    if _squeeze(target) != _squeeze(result):
        raise ValueError(f"{name} has shape {tuple(target)}, the result has {tuple(result)}")


def check_entry_count(name: str, targets: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise ValueError unless an array of result tensors has as many entries as there are results."""
    if len(targets) != len(results):
        raise ValueError(f"{name} has {len(targets)} entries, the result has {len(results)}")


def _squeeze(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape without axes of size 1."""
    return tuple(length for length in shape if length != 1)
