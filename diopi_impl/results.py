"""Delivery of the results of functional implementations: all results are checked before the first is written.

`TensorAccess` is the part that depends on the kind of array with which the implementations work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, final

import numpy as np

from diopi_impl.base import Box
from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from lib_rt import Context, Tensor

Array = np.ndarray[Any, Any]
"""An array of NumPy."""

Write = tuple[Callable[[Context, Any, Any], None], Any, Any]
"""A function that writes a value, the target, and the value; all checks have passed."""

PlanWrites = Callable[[str, Any, Any], list[Write]]
"""Returns the writes for a result's name, the caller's argument and the value; raises if the value does not fit."""


class TensorAccess(Protocol):
    """How functional implementations access the tensors of a call: as arrays of a certain kind."""

    def read(self, tensor: Tensor) -> Any:
        """Return the elements of an argument that the implementation does not change."""

    def read_updated(self, tensor: Tensor) -> Any:
        """Return the elements of an argument that is also a result."""

    def plan_write(self, name: str, target: Tensor, result: Any) -> Write:
        """Return the write of a result to a tensor; raise ValueError if the shape does not fit."""

    def number(self, result: Any) -> Any:
        """Return a result of one element as a number of Python."""

    def new_tensor(self, context: Context, result: Any) -> Tensor:
        """Return a new tensor of the context with the elements and the memory layout of a result."""


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
    """A writer for the results of calls of `prototype`, which accesses the tensors of the calls through `access`."""

    def __init__(self, prototype: Prototype, access: TensorAccess) -> None:
        position = {p.name: i for i, p in enumerate(prototype.parameters[1:])}
        self._targets = [(position[p.name], p.c_name, _plan(p, access), _may_be_none(p)) for p in prototype.results]
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


def _plan(parameter: Parameter, access: TensorAccess) -> PlanWrites:
    """Return the function that plans the writes of a result."""
    plan = (
        _plan_new_tensor
        if parameter.is_callee_allocated
        else _plan_number
        if parameter.annotation in kinds.OUT_VALUES
        else _plan_tensor
    )
    return partial(_plan_entries if parameter.is_tensor_array else _plan_single, partial(plan, access))


PlanWrite = Callable[[str, Any, Any], Write]
"""Returns the write for a result's name, the target and the value; raises if the value does not fit."""


def _plan_single(plan: PlanWrite, name: str, target: Any, result: Any) -> list[Write]:
    """Return the write of a result to the tensor `target` as a list; `name` is the name of its parameter."""
    return [plan(name, target, result)]


def _plan_entries(plan: PlanWrite, name: str, targets: Sequence[Any], results: Sequence[Any]) -> list[Write]:
    """Return the writes of an array of results; raise ValueError if the number of results is wrong."""
    check_entry_count(name, targets, results)
    return [plan(name, target, result) for target, result in zip(targets, results, strict=True)]


def _plan_tensor(access: TensorAccess, name: str, target: Tensor, result: Any) -> Write:
    """Return the write of a result to a tensor; raise ValueError if the shape does not fit."""
    return access.plan_write(name, target, result)


def _plan_number(access: TensorAccess, name: str, box: Box, result: Any) -> Write:
    """Return the write of a number to a box."""
    return (_fill_box, box, access.number(result))


def _fill_box(context: Context, box: Box, value: Any) -> None:
    """Store a number in a box."""
    box.value = value


def _plan_new_tensor(access: TensorAccess, name: str, box: Box, result: Any) -> Write:
    """Return the write of a result to a tensor that the call allocates."""
    return (partial(_fill_box_with_tensor, access), box, result)


def _fill_box_with_tensor(access: TensorAccess, context: Context, box: Box, result: Any) -> None:
    """Fill `box` with a new tensor that has the memory layout of a result."""
    box.value = access.new_tensor(context, result)


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
