"""Functional implementations: arrays in, arrays out. `bind` makes one a raw implementation on handles and streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, final

import numpy as np

from diopi_impl.base import Box
from diopi_impl.conversion import to_integers
from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Scalar
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy


@final
@dataclass(frozen=True)
class ResultSpec:
    """Shape and element type of a result tensor the caller has made, and the name it has in the call."""

    shape: tuple[int, ...]
    dtype: Dtype
    name: str = field(default="", compare=False)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


OutSpec = ResultSpec | tuple[ResultSpec, ...] | None
"""Of a single result, of an array of results, or of one, or an array, the caller left out or the callee makes."""

Adapted = Callable[[Sequence[Any], Sequence[OutSpec]], Sequence[Any]]
"""From argument values and result specs to result values, in the prototype's order.

A result that is None is left as it was, if it is optional or the call only asks for a size, and not made, if the callee
makes it.
"""

Adapter = Callable[[Prototype, Callable[..., Any]], Adapted]


def wants_out(function: Callable[..., Any]) -> bool:
    """Whether `function` has the keyword-only parameter `out`."""
    parameter = inspect.signature(function).parameters.get("out")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


def as_results(prototype: Prototype, value: Any) -> Sequence[Any]:
    """What an implementation returned, as one value a result."""
    values = (value,) if len(prototype.results) == 1 else tuple(value)
    if len(values) != len(prototype.results):
        raise TypeError(f"{len(values)} results were returned, the prototype has {len(prototype.results)}")
    return values


def out_keyword(prototype: Prototype, out: Sequence[OutSpec]) -> Any:
    """The `out` an implementation receives: the spec itself of a single result, else a tuple of them."""
    return out[0] if len(prototype.results) == 1 else tuple(out)


def apply_directly(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """The adapter for implementations that work on NumPy arrays themselves."""
    takes_out = wants_out(function)

    def adapted(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        keywords = {"out": out_keyword(prototype, out)} if takes_out else {}
        with np.errstate(all="ignore"):  # infinities and NaN are results like any other
            return as_results(prototype, function(*_converted_first(prototype, arguments, out), **keywords))

    return adapted


def first_dtype(out: Sequence[OutSpec]) -> Dtype:
    """The element type of the first result that is a tensor of the caller's; bool, which changes nothing, of none."""
    return next((spec.dtype for spec in out if isinstance(spec, ResultSpec)), Dtype.bool)


def _converted_first(prototype: Prototype, arguments: Sequence[Any], out: Sequence[OutSpec]) -> list[Any]:
    """The arguments with those converted that the standard converts before it computes.

    `prototype` may be the base of the form that is called, with numbers where it has tensors.
    """
    given = {p.name: value for p, value in zip(prototype.arguments, arguments, strict=True)}
    dtypes = {name: from_numpy(value.dtype) for name, value in given.items() if isinstance(value, np.ndarray)}
    operands = [p.name for p in prototype.operands if given[p.name] is not None]
    numbers = {name: given[name] for name in operands if name not in dtypes}
    names, dtype = prototype.converted_first(dtypes, numbers, first_dtype(out))
    return [
        value if name not in names else _converted(np.asarray(value), to_numpy(dtype)) for name, value in given.items()
    ]


def bind(prototype: Prototype, adapted: Adapted) -> Callable[..., None]:
    """A raw implementation of `prototype`: waits for its stream, reads, computes, and only then writes."""

    results_of = prototype.results
    position = {p.name: i for i, p in enumerate(prototype.parameters[1:])}
    arguments_at, results_at = ([position[p.name] for p in some] for some in (prototype.arguments, results_of))
    sizes_at = [i for p, i in zip(results_of, results_at, strict=True) if p.annotation is kinds.InOutSize]

    def implementation(context: Context, *values: Any) -> None:
        context.stream.synchronize()
        arguments = [_read(values[i]) for i in arguments_at]
        targets = [values[i] for i in results_at]
        results = adapted(arguments, [_spec(p, target) for p, target in zip(results_of, targets, strict=True)])
        asks = bool(sizes_at) and any(_asks_for_size(values[i]) for i in sizes_at)
        writes = [
            write
            for parameter, target, result in zip(results_of, targets, results, strict=True)
            if not (asks and result is None)
            for write in _writes(context, parameter, target, result)
        ]
        for write in writes:
            write()

    return implementation


def _read(value: Any) -> Any:
    """The value of an argument as a functional implementation takes it."""
    if isinstance(value, Tensor):
        if not value.strides and value.is_sparse:
            return [_read(part) for part in value.parts]
        return value.view() if value.context.device.host_addressable else value.numpy()
    if isinstance(value, Scalar):
        return value.number
    if isinstance(value, Box):
        return value.value
    if isinstance(value, list):
        return [_read(entry) for entry in value]
    return value


def _spec(parameter: Parameter, target: Any) -> OutSpec:
    if isinstance(target, Tensor):
        return _spec_of(target.shape, target.dtype, parameter.c_name)
    if isinstance(target, list) and not parameter.is_made:
        return tuple(_spec_of(entry.shape, entry.dtype, parameter.c_name) for entry in target)
    return None


_spec_of = lru_cache(maxsize=4096)(ResultSpec)  # making one takes longer than finding it


def _asks_for_size(box: Box | None) -> bool:
    """Whether the caller asks by this box for the size of a workspace, so that nothing is computed."""
    return box is not None and box.value < 0


def _writes(context: Context, parameter: Parameter, target: Any, result: Any) -> list[Callable[[], None]]:
    """What is left to do for one result, once everything that can fail was done."""
    may_be_left = parameter.optional or parameter.annotation is kinds.NewOut
    if target is None or (result is None and may_be_left):
        return []
    if parameter.annotation is kinds.NewOut:
        return [_box_write(context, target, result)]
    if parameter.annotation is kinds.NewOuts:
        check_number(parameter.c_name, target, result)
        return [_box_write(context, box, one) for box, one in zip(target, result, strict=True)]
    if parameter.annotation in kinds.OUT_VALUES:
        value = np.asarray(result).item()
        return [lambda: setattr(target, "value", value)]
    if isinstance(target, list):
        check_number(parameter.c_name, target, result)
        return [_tensor_write(parameter, one, array) for one, array in zip(target, result, strict=True)]
    return [_tensor_write(parameter, target, result)]


def _box_write(context: Context, box: Box, result: Any) -> Callable[[], None]:
    array = np.asarray(result)
    return lambda: setattr(box, "value", _made(context, array))


def _made(context: Context, array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor the callee makes, holding `array`, its axes in memory in the order they have there."""
    dense = np.copy(array, order="K")
    strides = [stride // array.itemsize for stride in dense.strides] if array.size else None
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), strides)
    tensor.write(array)
    return tensor


def _tensor_write(parameter: Parameter, target: Tensor, result: Any) -> Callable[[], None]:
    array = np.asarray(result)
    if array.shape != target.shape:
        check_shape(parameter.c_name, target.shape, array.shape)
        array = array.reshape(target.shape)
    converted = _converted(array, to_numpy(target.dtype))
    if target.context.device.host_addressable:
        return partial(np.copyto, target.view(), converted)
    return partial(target.write, converted)


def _converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A result in the element type of its tensor; of complex numbers the real part where it is a real one."""
    if array.dtype == dtype:
        return array
    if np.iscomplexobj(array) and dtype.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and array.dtype.kind not in "iub":
            array = to_integers(array, dtype)
        return array.astype(dtype, copy=False)


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
