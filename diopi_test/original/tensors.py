"""Tensor arguments of a case, from the shapes, values, strides and generators that an entry has for them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.layouts import Layout, Strides, contiguous, strides
from diopi_test.cases.model import TensorSpec
from diopi_test.cases.named_domains import DescribedDomain
from diopi_test.oracle.reference import find_reference
from diopi_test.original.entries import Entry, EntryError, TensorArguments
from diopi_test.original.values import NORMAL, domain_of, given, usual_domain

MOST_ELEMENTS = 2**24
"""Elements of a tensor at most: the level large has larger ones, which are not stored."""


def tensor_argument(
    prototype: Prototype, parameter: Parameter, one: TensorArguments, entry: Entry, number: int, dtype: Dtype
) -> TensorSpec | list[TensorSpec | None] | None:
    """A tensor argument of a case, an array of them, or None where it is left out."""
    if not parameter.is_tensor and not parameter.is_tensor_array:
        raise EntryError(f"{prototype.name} takes no tensor for {parameter.name}")
    if not parameter.is_tensor_array or one.values is not None:
        single = single_tensor(prototype, parameter, one, entry, number, dtype)
        return [single] if parameter.is_tensor_array else single
    return [
        _spec(prototype, parameter, each, dtype, _domain(prototype, parameter, one, entry, each), _layout(one, number))
        for each in _shapes_of_array(parameter, one, number)
    ]


def _shapes_of_array(parameter: Parameter, one: TensorArguments, number: int) -> Sequence[Any]:
    """The shapes of the tensors of an array: those of the case, or one shape that all of them have.

    How many tensors have that shape is drawn by the original; here the cases take the possible numbers by turns.
    """
    shape = one.shapes[number] if one.shapes is not None else None
    if not isinstance(shape, list | tuple) or (one.counts is None and all(type(size) is int for size in shape)):
        raise EntryError(f"shape of {parameter.name}: expected the shapes of an array of tensors, found {shape!r}")
    if one.counts is None or not all(type(size) is int for size in shape):
        return shape
    low, high = max(one.counts[0], 1), max(one.counts[1], 2)
    return [shape] * (low + number % (high - low))


def single_tensor(
    prototype: Prototype, parameter: Parameter, one: TensorArguments, entry: Entry, number: int, dtype: Dtype
) -> TensorSpec | None:
    """One tensor, or None where it is left out."""
    if one.values is not None:
        if one.values[number] is None:
            return None
        shape, values = given(one.values[number])
        return _spec(prototype, parameter, shape, dtype, values, _layout(one, number))
    if one.shapes is None:
        raise EntryError(f"{parameter.name} has neither shape nor value")
    if (shape := one.shapes[number]) is None:
        return None
    domain = _domain(prototype, parameter, one, entry, shape)
    return _spec(prototype, parameter, shape, dtype, domain, _layout(one, number))


def _domain(
    prototype: Prototype, parameter: Parameter, one: TensorArguments, entry: Entry, shape: Any
) -> DescribedDomain:
    """The domain of a tensor's values."""
    generated = one.generated or entry.generated
    found = domain_of(generated, shape) if generated else None
    return found or (usual_domain(prototype.name, parameter.name) if find_reference(prototype.name) else NORMAL)


def _layout(one: TensorArguments, number: int) -> Layout:
    """The layout that a case's strides say; cases beyond the list of strides have none."""
    if one.strides is None or number >= len(one.strides) or one.strides[number] is None:
        return contiguous
    return _strides(one.strides[number])


def _strides(given: Any) -> Layout:
    try:
        return strides(*given)
    except (TypeError, ValueError) as error:
        raise EntryError(f"stride: expected numbers, none negative, found {given!r}") from error


def _spec(
    prototype: Prototype, parameter: Parameter, shape: Any, dtype: Dtype, domain: DescribedDomain, layout: Layout
) -> TensorSpec:
    sizes = sizes_of(parameter, shape)
    layout = _with_outer_strides(layout, sizes)
    if dtype not in prototype.dtypes_of(parameter.name):
        raise EntryError(f"{prototype.name} takes no {dtype.name} for {parameter.name}")
    try:
        storage = layout(sizes).storage_elements
    except ValueError as error:
        raise EntryError(f"stride of {parameter.name}: {error}") from error
    if storage > MOST_ELEMENTS:
        raise EntryError(f"stride of {parameter.name}: its storage has more than {MOST_ELEMENTS:,} elements")
    return TensorSpec(sizes, dtype, domain, layout)


def _with_outer_strides(layout: Layout, sizes: Sequence[int]) -> Layout:
    """The layout with strides for all axes: strides for the last ones are followed by those of a dense tensor."""
    if not isinstance(layout, Strides) or len(layout.steps) >= len(sizes):
        return layout
    steps, lacking = list(layout.steps), len(sizes) - len(layout.steps)
    inner = sizes[lacking:]
    step = 1 + sum((size - 1) * step for size, step in zip(inner, steps, strict=True)) if 0 not in inner else 1
    for size in reversed(sizes[:lacking]):
        steps.insert(0, step)
        step *= max(size, 1)
    return strides(*steps)


def sizes_of(parameter: Parameter, shape: Any) -> tuple[int, ...]:
    """A shape; a number is that of one axis."""
    sizes = (shape,) if type(shape) is int else shape
    if not isinstance(sizes, list | tuple) or not all(type(size) is int and size >= 0 for size in sizes):
        raise EntryError(f"shape of {parameter.name}: expected whole numbers, found {shape!r}")
    if prod(sizes) > MOST_ELEMENTS:
        raise EntryError(f"shape of {parameter.name}: it has more than {MOST_ELEMENTS:,} elements: {shape!r}")
    return tuple(sizes)
