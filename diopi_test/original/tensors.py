"""Derive the tensor arguments of a case from an entry of a configuration of the original DIOPI suite."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.named_domains import DescribedDomain
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.layouts import contiguous, strides
from diopi_test.oracle.reference import find_reference
from diopi_test.original.entries import ConfigEntry, EntryError, TensorArguments
from diopi_test.original.values import NORMAL, default_domain, domain_of, specify_values

MAX_ELEMENTS = 2**24
"""The maximum number of elements of a tensor."""


def tensor_argument(
    prototype: Prototype, parameter: Parameter, tensors: TensorArguments, entry: ConfigEntry, number: int, dtype: Dtype
) -> TensorSpec | list[TensorSpec | None] | None:
    """Return a tensor argument of a case.

    An entry describes several cases: each of its tuples has one element per case.

    Args:
        prototype: The prototype of the function.
        parameter: The parameter that takes the tensor.
        tensors: The specification of the tensor in the entry.
        entry: The entry.
        number: The index of the case in the tuples of the entry, from 0.
        dtype: The element type.

    Returns:
        The tensor, a list if the parameter is an array of tensors, or None if the tensor is omitted.

    Raises:
        EntryError: The entry does not specify a valid tensor.
    """
    if not parameter.is_tensor and not parameter.is_tensor_array:
        raise EntryError(f"{prototype.name} takes no tensor for {parameter.name}")
    if not parameter.is_tensor_array or tensors.values is not None:
        single = single_tensor(prototype, parameter, tensors, entry, number, dtype)
        return [single] if parameter.is_tensor_array else single
    return [
        _tensor_spec(
            prototype,
            parameter,
            shape,
            dtype,
            _domain(prototype, parameter, tensors, entry, shape),
            _strides(tensors, number),
        )
        for shape in _shapes_of_array(parameter, tensors, number)
    ]


def _shapes_of_array(parameter: Parameter, tensors: TensorArguments, number: int) -> Sequence[Any]:
    """Return the shape of each tensor in an array of tensors. The entry may state a single shape for all of them.

    Raises:
        EntryError: The entry does not state shapes.
    """
    # The original suite chooses the length of such an array at random. Here consecutive cases use consecutive lengths.
    shape = tensors.shapes[number] if tensors.shapes is not None else None
    if not isinstance(shape, list | tuple) or (tensors.counts is None and all(type(size) is int for size in shape)):
        raise EntryError(f"shape of {parameter.name}: expected the shapes of an array of tensors, found {shape!r}")
    if tensors.counts is None or not all(type(size) is int for size in shape):
        return shape
    low, high = max(tensors.counts[0], 1), max(tensors.counts[1], 2)
    return [shape] * (low + number % (high - low))


def single_tensor(
    prototype: Prototype, parameter: Parameter, tensors: TensorArguments, entry: ConfigEntry, number: int, dtype: Dtype
) -> TensorSpec | None:
    """Return a single tensor argument, or None if the tensor is omitted. See `tensor_argument` for the parameters.

    Raises:
        EntryError: The entry has neither a shape nor a value for the tensor.
    """
    if tensors.values is not None:
        if tensors.values[number] is None:
            return None
        shape, values = specify_values(tensors.values[number])
        return _tensor_spec(prototype, parameter, shape, dtype, values, _strides(tensors, number))
    if tensors.shapes is None:
        raise EntryError(f"{parameter.name} has neither shape nor value")
    if (shape := tensors.shapes[number]) is None:
        return None
    domain = _domain(prototype, parameter, tensors, entry, shape)
    return _tensor_spec(prototype, parameter, shape, dtype, domain, _strides(tensors, number))


def _domain(
    prototype: Prototype, parameter: Parameter, tensors: TensorArguments, entry: ConfigEntry, shape: Any
) -> DescribedDomain:
    """Return the domain of a tensor's values: from the tensor's or the entry's generator, or a default."""
    generated = tensors.generated or entry.generated
    domain = domain_of(generated, shape) if generated else None
    return domain or (default_domain(prototype.name, parameter.name) if find_reference(prototype.name) else NORMAL)


def _strides(tensors: TensorArguments, number: int) -> Any:
    """Return the strides of a case; None if the entry states none for the case, whose tensor is then contiguous."""
    return None if tensors.strides is None or number >= len(tensors.strides) else tensors.strides[number]


def _tensor_spec(
    prototype: Prototype, parameter: Parameter, shape: Any, dtype: Dtype, domain: DescribedDomain, steps: Any
) -> TensorSpec:
    """Return the specification of a tensor argument.

    Args:
        prototype: The prototype of the function.
        parameter: The parameter that takes the tensor.
        shape: The shape in the entry: integers, or one integer.
        dtype: The element type.
        domain: The domain of the elements.
        steps: The strides in the entry, in elements; None for a contiguous tensor.

    Raises:
        EntryError: The shape or the strides are invalid or too large, or the prototype does not accept the type.
    """
    sizes = sizes_of(parameter, shape)
    try:
        layout = contiguous if steps is None else strides(*_with_outer_strides(steps, sizes))
    except (TypeError, ValueError) as error:
        raise EntryError(f"stride: expected numbers, none negative, found {steps!r}") from error
    if dtype not in prototype.dtypes_of(parameter.name):
        raise EntryError(f"{prototype.name} does not accept {dtype.name} for {parameter.name}")
    try:
        storage = layout(sizes).storage_elements
    except ValueError as error:
        raise EntryError(f"stride of {parameter.name}: {error}") from error
    if storage > MAX_ELEMENTS:
        raise EntryError(f"stride of {parameter.name}: the storage has more than {MAX_ELEMENTS:,} elements")
    return TensorSpec(sizes, dtype, domain, layout=layout)


def _with_outer_strides(steps: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the strides of all axes. If outer strides are missing, derive them as in a dense tensor."""
    steps, missing_count = list(steps), max(len(sizes) - len(steps), 0)
    inner = sizes[missing_count:]
    step = 1 + sum((size - 1) * step for size, step in zip(inner, steps, strict=False)) if 0 not in inner else 1
    for size in reversed(sizes[:missing_count]):
        steps.insert(0, step)
        step *= max(size, 1)
    return steps


def sizes_of(parameter: Parameter, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; raise EntryError if it is not valid. An integer is the size of a single axis."""
    sizes = (shape,) if type(shape) is int else shape
    if not isinstance(sizes, list | tuple) or not all(type(size) is int and size >= 0 for size in sizes):
        raise EntryError(f"shape of {parameter.name}: expected integers, found {shape!r}")
    if prod(sizes) > MAX_ELEMENTS:
        raise EntryError(f"shape of {parameter.name}: {shape!r} has more than {MAX_ELEMENTS:,} elements")
    return tuple(sizes)
