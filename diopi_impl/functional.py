"""Functional implementations: arrays in, arrays out. `bind` makes one a raw implementation on handles and streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from diopi_impl.arguments import Perform, Prepare
from diopi_impl.base import Box
from diopi_impl.conversion import converted
from diopi_impl.results import Results
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Scalar
from lib_rt import Context, Generator, Tensor
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

Compute = Callable[[Sequence[Any]], Sequence[Any]]
"""From argument values to result values, of calls whose result specs are known."""

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
    names, dtype = prototype.find_conversions(dtypes, given, first_dtype(out))
    return [
        value if name not in names else converted(np.asarray(value), to_numpy(dtype)) for name, value in given.items()
    ]


@runtime_checkable
class PreparesCalls(Protocol):
    """An `Adapted` that does once for all calls of a form what depends on that alone."""

    def prepare(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
        """What computes the results of calls with these attributes and result specs, each from its arguments.

        Tensors, arrays of them and generators are None among `arguments`: they differ from call to call.
        """


def bind(prototype: Prototype, adapted: Adapted) -> Prepare:
    """What prepares calls of `prototype`: they wait for their stream, read, compute, and only then write."""
    results, position = Results(prototype), {p.name: i for i, p in enumerate(prototype.parameters[1:])}
    arguments_at, results_at = ([position[p.name] for p in some] for some in (prototype.arguments, prototype.results))

    def prepare(values: Sequence[Any]) -> Perform:
        readers = [(n, i, read) for n, i in enumerate(arguments_at) if (read := _reader(values[i])) is not None]
        attributes = [_attribute(values[i]) for i in arguments_at]
        out = [_spec(p, values[i]) for p, i in zip(prototype.results, results_at, strict=True)]
        compute = _computing(adapted, attributes, out)

        def perform(context: Context, values: Sequence[Any]) -> None:
            context.synchronize()
            arguments = attributes.copy()
            for n, i, read in readers:
                arguments[n] = read(values[i])
            results.write(context, values, compute(arguments))

        return perform

    return prepare


def _computing(adapted: Adapted, attributes: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
    if isinstance(adapted, PreparesCalls):
        return adapted.prepare(attributes, out)
    return lambda arguments: adapted(arguments, out)


def _attribute(value: Any) -> Any:
    """What a functional implementation takes for an argument of which the form tells all, of others None."""
    if _reader(value) is not None:
        return None
    return value.number if isinstance(value, Scalar) else value.value if isinstance(value, Box) else value


def _reader(value: Any) -> Callable[[Any], Any] | None:
    """What reads an argument in each call; None: all calls of a form have the same value for it."""
    return next((read for kind, read in _READERS if isinstance(value, kind)), None)


def _array(tensor: Tensor) -> Any:
    if tensor.is_sparse:
        return [_array(part) for part in tensor.parts]
    return tensor.view() if tensor.device.host_addressable else tensor.numpy()


def _entries(values: Sequence[Any]) -> list[Any]:
    return [_attribute(value) if (read := _reader(value)) is None else read(value) for value in values]


_READERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (Tensor, _array),
    (list, _entries),
    (Generator, lambda generator: generator),
)


def _spec(parameter: Parameter, target: Any) -> OutSpec:
    if isinstance(target, Tensor):
        return _spec_of(target.shape, target.dtype, parameter.c_name)
    if isinstance(target, list) and not parameter.is_callee_allocated:
        return tuple(_spec_of(entry.shape, entry.dtype, parameter.c_name) for entry in target)
    return None


_spec_of = lru_cache(maxsize=4096)(ResultSpec)  # making one takes longer than finding it
