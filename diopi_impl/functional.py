"""Functional implementations, which are functions of arrays. `bind` turns them into raw implementations of calls.

Calls have the same *form* if they differ only in the numbers in their tensors. Work that depends only on the form is
done once per form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from diopi_impl.access import ARRAYS
from diopi_impl.arguments import Perform, Prepare
from diopi_impl.base import Box
from diopi_impl.conversion import convert_array
from diopi_impl.results import Results, TensorAccess
from diopi_impl.specs import OutSpec, ResultSpec
from diopi_proto.implementations import takes_out
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Scalar
from lib_rt import Context, Generator, Tensor
from lib_rt.dtypes import from_numpy, to_numpy

Adapted = Callable[[Sequence[Any], Sequence[OutSpec]], Sequence[Any]]
"""An implementation in a uniform form: returns the results for argument values and result specs, in prototype order.

A result may be None if it is optional, or if the call is a workspace query. The tensor is then unchanged. A result that
the callee allocates may also be None. No tensor is then allocated.
"""

Compute = Callable[[Sequence[Any]], Sequence[Any]]
"""Returns the results for argument values, for result specs that are the same in every call."""

Adapter = Callable[[Prototype, Callable[..., Any]], Adapted]
"""Converts the implementation of a function, whose parameters may have several forms, to the uniform form `Adapted`."""


def split_results(prototype: Prototype, value: Any) -> Sequence[Any]:
    """Return the return value of an implementation as a sequence with one value per result.

    Raises:
        TypeError: The number of values is not the number of results.
    """
    values = (value,) if len(prototype.results) == 1 else tuple(value)
    if len(values) != len(prototype.results):
        raise TypeError(f"{len(values)} results were returned, the prototype has {len(prototype.results)}")
    return values


def out_keyword(prototype: Prototype, out: Sequence[OutSpec]) -> Any:
    """Return the argument `out` of an implementation: the spec of a single result, or a tuple of specs."""
    return out[0] if len(prototype.results) == 1 else tuple(out)


def apply_directly(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return the adapted form of an implementation that works on NumPy arrays."""
    has_out = takes_out(function)

    def call_with_arrays(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Call the function with NumPy arrays."""
        keywords = {"out": out_keyword(prototype, out)} if has_out else {}
        with np.errstate(all="ignore"):  # infinities and NaN are valid results
            return split_results(prototype, function(*_promote_arguments(prototype, arguments, out), **keywords))

    return call_with_arrays


def first_dtype(out: Sequence[OutSpec]) -> Dtype:
    """Return the element type of the first result that the caller allocated.

    Returns:
        The element type. If the caller allocated no result, bool, because promotion with bool does not change a type.
    """
    return next((spec.dtype for spec in out if isinstance(spec, ResultSpec)), Dtype.bool)


def _promote_arguments(prototype: Prototype, arguments: Sequence[Any], out: Sequence[OutSpec]) -> list[Any]:
    """Return the arguments after the type conversions that the standard requires before the computation.

    Args:
        prototype: the function, or the base of the form that is called; the form may have numbers instead of tensors.
        arguments: the argument values in the order of the prototype.
        out: the result specs.

    Returns:
        The argument values in the same order.
    """
    named_arguments = {p.name: value for p, value in zip(prototype.arguments, arguments, strict=True)}
    dtypes = {name: from_numpy(value.dtype) for name, value in named_arguments.items() if isinstance(value, np.ndarray)}
    names, dtype = prototype.find_conversions(dtypes, named_arguments, first_dtype(out))
    return [
        value if name not in names else convert_array(np.asarray(value), to_numpy(dtype))
        for name, value in named_arguments.items()
    ]


@runtime_checkable
class PreparesCalls(Protocol):
    """An `Adapted` that can do the work that depends only on the form of a call once per form."""

    def prepare(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
        """Return the function that computes the results of all calls with these attributes and result specs.

        Args:
            arguments: the attributes in the prototype's order, with None for tensors, arrays of tensors and generators.
            out: the result specs.

        Returns:
            A function of the arguments of a call.
        """


def bind(prototype: Prototype, adapted: Adapted, access: TensorAccess = ARRAYS) -> Prepare:
    """Return a function that prepares calls; each call waits for its stream, reads, computes and writes.

    Args:
        prototype: the function, or a derived form of it.
        adapted: computes the results.
        access: reads the tensors of the arguments and writes to those of the results.

    Returns:
        The function that prepares calls.
    """
    results, position = Results(prototype, access), {p.name: i for i, p in enumerate(prototype.parameters[1:])}
    arguments_at, results_at = (
        [position[p.name] for p in parameters] for parameters in (prototype.arguments, prototype.results)
    )

    def prepare(values: Sequence[Any]) -> Perform:
        """Return the function that runs calls with the form of these values."""
        readers = [
            (n, i, _make_reader(factory, access, i in results_at))
            for n, i in enumerate(arguments_at)
            if (factory := _find_reader_factory(values[i])) is not None
        ]
        attributes = [_attribute_value(values[i]) for i in arguments_at]
        out = [_spec(p, values[i]) for p, i in zip(prototype.results, results_at, strict=True)]
        compute = _make_compute(adapted, attributes, out)

        def perform(context: Context, values: Sequence[Any]) -> None:
            """Run a call: wait for the stream, read the arguments, compute, and write the results."""
            context.synchronize()
            arguments = attributes.copy()
            for n, i, read in readers:
                arguments[n] = read(values[i])
            results.write(context, values, compute(arguments))

        return perform

    return prepare


def _make_compute(adapted: Adapted, attributes: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
    """Return the function that computes results, prepared for the attributes if the implementation supports this."""
    if isinstance(adapted, PreparesCalls):
        return adapted.prepare(attributes, out)
    return lambda arguments: adapted(arguments, out)


def _attribute_value(value: Any) -> Any:
    """Return an attribute in the form that implementations take; None for tensors, lists and generators."""
    if _find_reader_factory(value) is not None:
        return None
    return value.number if isinstance(value, Scalar) else value.value if isinstance(value, Box) else value


Read = Callable[[Any], Any]
"""Reads an argument: returns it in the form that implementations take, such as the array of a tensor."""

ReaderFactory = Callable[[Read], Read]
"""Takes the function that reads a tensor, and returns the function that reads an argument of some kind."""


def _find_reader_factory(value: Any) -> ReaderFactory | None:
    """Return the factory for the kind of an argument; None if the argument is the same in all calls of a form."""
    return next((factory for kind, factory in _READER_FACTORIES if isinstance(value, kind)), None)


def _make_reader(factory: ReaderFactory, access: TensorAccess, is_updated: bool) -> Read:
    """Return the function that reads an argument in each call; `is_updated` says whether it is also a result."""
    return factory(access.read_updated if is_updated else access.read)


def _make_list_reader(read: Read) -> Read:
    """Return the function that reads a list of arguments; `read` reads the tensors in the list."""

    def read_entry(value: Any) -> Any:
        """Return an entry of the list in the form that implementations take."""
        factory = _find_reader_factory(value)
        return _attribute_value(value) if factory is None else factory(read)(value)

    return lambda values: [read_entry(value) for value in values]


_READER_FACTORIES: tuple[tuple[type, ReaderFactory], ...] = (
    (Tensor, lambda read: read),
    (list, _make_list_reader),
    (Generator, lambda read: lambda generator: generator),
)
"""The kinds of arguments that vary within a form, each with its factory."""


def _spec(parameter: Parameter, target: Any) -> OutSpec:
    """Return the spec of a result from the tensor, or array of tensors, that the caller passes."""
    if isinstance(target, Tensor):
        return _spec_of(target.shape, target.dtype, parameter.c_name)
    if isinstance(target, list) and not parameter.is_callee_allocated:
        return tuple(_spec_of(entry.shape, entry.dtype, parameter.c_name) for entry in target)
    return None


_spec_of = lru_cache(maxsize=4096)(ResultSpec)
"""Return the spec with these fields; specs are cached, because constructing one takes longer than a cache hit."""
