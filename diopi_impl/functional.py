"""Functional implementations: arrays in, arrays out. `bind` makes one a raw implementation on handles and streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Scalar
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy


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
"""Of a single result, of an array of results, or of one the caller left out or the callee makes."""

Adapted = Callable[[Sequence[Any], Sequence[OutSpec]], Sequence[Any]]
"""From argument values and result specs to result values, in the prototype's order.

An optional result that is None is left as it was.
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
            return as_results(prototype, function(*arguments, **keywords))

    return adapted


def bind(prototype: Prototype, adapted: Adapted) -> Callable[..., None]:
    """A raw implementation of `prototype`: waits for its stream, reads, computes, and only then writes."""

    parameters, arguments_of, results_of = prototype.parameters[1:], prototype.arguments, prototype.results

    def implementation(context: Context, *values: Any) -> None:
        given = dict(zip((p.name for p in parameters), values, strict=True))
        context.stream.synchronize()
        arguments = [_read(given[p.name]) for p in arguments_of]
        targets = [given[p.name] for p in results_of]
        results = adapted(arguments, [_spec(p, target) for p, target in zip(results_of, targets, strict=True)])
        writes = [
            write
            for parameter, target, result in zip(results_of, targets, results, strict=True)
            for write in _writes(context, parameter, target, result)
        ]
        for write in writes:
            write()

    return implementation


def _read(value: Any) -> Any:
    """The value of an argument as a functional implementation takes it."""
    if isinstance(value, Tensor):
        return value.view() if value.context.device.host_addressable else value.numpy()
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, list):
        return [_read(entry) for entry in value]
    return value


def _spec(parameter: Parameter, target: Any) -> OutSpec:
    if isinstance(target, Tensor):
        return ResultSpec(target.shape, target.dtype, parameter.c_name)
    if isinstance(target, list):
        return tuple(ResultSpec(entry.shape, entry.dtype, parameter.c_name) for entry in target)
    return None


def _writes(context: Context, parameter: Parameter, target: Any, result: Any) -> list[Callable[[], None]]:
    """What is left to do for one result, once everything that can fail was done."""
    if target is None or (result is None and parameter.optional):
        return []
    if parameter.annotation is kinds.NewOut:
        array = np.asarray(result)
        return [lambda: setattr(target, "value", _made(context, array))]
    if parameter.annotation in kinds.OUT_VALUES:
        value = np.asarray(result).item()
        return [lambda: setattr(target, "value", value)]
    if isinstance(target, list):
        check_number(parameter.c_name, target, result)
        return [_tensor_write(parameter, one, array) for one, array in zip(target, result, strict=True)]
    return [_tensor_write(parameter, target, result)]


def _made(context: Context, array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor the callee makes, holding `array`, its axes in memory in the order they have there."""
    dense = np.copy(array, order="K")
    strides = [stride // array.itemsize for stride in dense.strides] if array.size else None
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), strides)
    tensor.write(array)
    return tensor


def _tensor_write(parameter: Parameter, target: Tensor, result: Any) -> Callable[[], None]:
    array = np.asarray(result)
    check_shape(parameter.c_name, target.shape, array.shape)
    with np.errstate(all="ignore"):  # a result out of the range of its dtype becomes what a C cast makes of it
        converted = array.astype(to_numpy(target.dtype), copy=False).reshape(target.shape)
    if target.context.device.host_addressable:
        view = target.view()
        return lambda: np.copyto(view, converted)
    return lambda: target.write(converted)


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
