"""How results of functional implementations reach the caller: all are made ready, and only then are they written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from diopi_impl.base import Box
from diopi_impl.conversion import converted
from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy

Array = np.ndarray[Any, Any]

Write = tuple[Callable[[Context, Any, Any], None], Any, Any]
"""What puts a value in its place, the place, and the value: nothing about it can be wrong any more."""

Ready = Callable[[str, Any, Any], list[Write]]
"""From a result's name, what the caller gave for it, and its value to what there is to write; raises if it can't be."""


@final
@dataclass(frozen=True)
class Deferred:
    """A result that is made where it is due, so that there is no other array of it.

    Attributes:
        shape, dtype: of the array that it fills.
        fill: writes it to such an array, which may be the memory of an argument. Nothing about it can be wrong.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Callable[[Array], object]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """An array of its own, for tensors of another form."""
        array = np.empty(self.shape, self.dtype)
        self.fill(array)
        return array


@final
class Results:
    """The results of calls of `prototype`."""

    def __init__(self, prototype: Prototype) -> None:
        position = {p.name: i for i, p in enumerate(prototype.parameters[1:])}
        self._each = [(position[p.name], p.c_name, _ready(p), _may_be_left(p)) for p in prototype.results]
        self._sizes_at = [position[p.name] for p in prototype.results if p.annotation is kinds.InOutSize]

    def write(self, context: Context, values: Sequence[Any], results: Sequence[Any]) -> None:
        """Write `results` to what a call with these `values` gave for them; ValueError if a result does not fit."""
        asks = bool(self._sizes_at) and any(_asks_for_size(values[i]) for i in self._sizes_at)
        writes: list[Write] = []
        for (i, name, ready, may_be_left), result in zip(self._each, results, strict=True):
            if values[i] is not None and (result is not None or not (may_be_left or asks)):
                writes += ready(name, values[i], result)
        for write, place, value in writes:
            write(context, place, value)


def _may_be_left(parameter: Parameter) -> bool:
    """Whether a result may be None: it is left as it was then, or not made."""
    return parameter.optional or parameter.annotation is kinds.NewOut


def _asks_for_size(box: Box | None) -> bool:
    """Whether the caller asks by this box for the size of a workspace, so that nothing is computed."""
    return box is not None and box.value < 0


def _ready(parameter: Parameter) -> Ready:
    one = _made if parameter.is_callee_allocated else _number if parameter.annotation in kinds.OUT_VALUES else _tensor
    return _each(one) if parameter.is_tensor_array else one


def _each(ready: Ready) -> Ready:
    def entries(name: str, targets: Sequence[Any], results: Sequence[Any]) -> list[Write]:
        check_number(name, targets, results)
        return [write for target, result in zip(targets, results, strict=True) for write in ready(name, target, result)]

    return entries


def _tensor(name: str, target: Tensor, result: Any) -> list[Write]:
    dtype, addressable = to_numpy(target.dtype), target.device.host_addressable
    if isinstance(result, Deferred) and addressable and (result.shape, result.dtype) == (target.shape, dtype):
        return [(_fill_tensor, target.view(), result)]
    array = np.asarray(result)
    if array.shape != target.shape:
        check_shape(name, target.shape, array.shape)
        array = array.reshape(target.shape)
    if array.dtype != dtype:
        array = converted(array, dtype)
    if addressable:
        return [(_put, target.view(), array)]
    return [(_store, target, array)]


def _put(context: Context, place: Array, array: Array) -> None:
    place[...] = array


def _fill_tensor(context: Context, place: Array, result: Deferred) -> None:
    result.fill(place)


def _store(context: Context, tensor: Tensor, array: Array) -> None:
    tensor.write(array)


def _number(name: str, box: Box, result: Any) -> list[Write]:
    return [(_fill, box, np.asarray(result).item())]


def _fill(context: Context, box: Box, value: Any) -> None:
    box.value = value


def _made(name: str, box: Box, result: Any) -> list[Write]:
    return [(_make, box, np.asarray(result))]


def _make(context: Context, box: Box, array: Array) -> None:
    """Fill `box` with a tensor the callee makes, its axes in memory in the order that they have in `array`."""
    dense = np.copy(array, order="K")
    strides = [stride // array.itemsize for stride in dense.strides] if array.size else None
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), strides)
    tensor.write(array)
    box.value = tensor


def check_shape(name: str, given: Sequence[int], result: Sequence[int]) -> None:
    """ValueError unless a tensor of shape `given` takes a result of shape `result`: axes of length 1 don't count."""
    if _without_ones(given) != _without_ones(result):
        raise ValueError(f"{name} has shape {tuple(given)}, the result has {tuple(result)}")


def check_number(name: str, given: Sequence[Any], results: Sequence[Any]) -> None:
    """ValueError unless an array of result tensors has as many entries as there are results."""
    if len(given) != len(results):
        raise ValueError(f"{name} has {len(given)} entries, the result has {len(results)}")


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)
