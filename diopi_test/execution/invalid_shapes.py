"""Mutations of shapes and values: tensors that do not match each other, and attributes that do not match tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category
from diopi_proto.facts import Fact
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.execution.flaw import Flaw, Mutation, has_fact, has_number_fact, make_zeros, replace_value
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected, expected_arrays, tensors_in
from lib_rt.dtypes import to_numpy

F = TypeVar("F", bound=Fact)


def _fact(parameter: Parameter, kind: type[F]) -> F:
    """Return the parameter's fact of a kind; the mutation was chosen because of it."""
    fact = parameter.fact(kind)
    assert fact is not None
    return fact


# Tensors of another size than the others say.


def _never_broadcasts(prototype: Prototype, parameter: Parameter) -> bool:
    follows = parameter.fact(facts.SizesFollow)
    return follows is not None and not follows.broadcast


def _resized(parameter: Parameter, case: BaselineCase, shape: tuple[int, ...]) -> Flaw:
    tensor = case.arguments[parameter.name]
    text = f"{parameter.c_name} has shape {shape} instead of {tensor.values.shape}"
    return Flaw(text, {parameter.name: make_zeros(shape, tensor.dtype, "contiguous")})


def _one_element(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    tensor = case.arguments[parameter.name]
    if tensor is None or tensor.values.size < 2 or not prototype.has_effect(parameter.name, case.arguments):
        return None
    return _resized(parameter, case, (1,) * tensor.values.ndim)


def _longer(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    tensor = case.arguments[parameter.name]
    if tensor is None or not tensor.values.ndim or not prototype.has_effect(parameter.name, case.arguments):
        return None
    return _resized(parameter, case, (*tensor.values.shape[:-1], tensor.values.shape[-1] + 1))


# Shapes that contradict each other, or the attributes that repeat them.


def _other_shape(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Increase the first axis whose size is determined elsewhere by one."""
    tensor, sizes = case.arguments[parameter.name], _fact(parameter, facts.HasShape).sizes
    if tensor is None:
        return None
    axis = next((i for i, size in enumerate(sizes) if _is_said(prototype, case, parameter.name, i, size)), None)
    if axis is None:
        return None
    return _resized(parameter, case, tuple(n + (i == axis) for i, n in enumerate(tensor.values.shape)))


def _is_said(prototype: Prototype, case: BaselineCase, name: str, axis: int, size: int | str) -> bool:
    """Return whether the size is a number, an attribute, or the size of another axis of the call's tensors."""
    occurrences = [
        (tensor, i)
        for tensor, sizes in prototype.shapes.items()
        for i, axis_size in enumerate(sizes)
        if axis_size == size
        and case.arguments[tensor] is not None
        and tensor not in prototype.unread_arguments(case.arguments)
    ]
    return isinstance(size, int) or size in case.arguments or any(place != (name, axis) for place in occurrences)


def _flattened(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    tensor = case.arguments[parameter.name]
    return None if tensor is None or tensor.values.ndim < 2 else _resized(parameter, case, (tensor.values.size,))


def _repeats_size(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is an attribute with the name of a size."""
    return parameter.role is Role.attribute and any(parameter.name in sizes for sizes in prototype.shapes.values())


def _other_size(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    return replace_value(parameter, case.arguments[parameter.name] + 1)


# Margins beyond the axis they are made of.


def _too_far(mode: str, beyond: int) -> Any:
    """Return a mutation that pads by the last axis's size plus `beyond`, and crops the other end as much."""

    def flaw(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
        margins = _fact(parameter, facts.Margins)
        if case.arguments[margins.mode] != mode:
            return None
        before, after, *remaining = case.arguments[parameter.name]
        margin = case.arguments[margins.tensor].values.shape[-1] + beyond
        return replace_value(parameter, (margin, before + after - margin, *remaining))

    return flaw


# Numbers an element type does not have.


def _too_large(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use one more than the largest number of the integer type of the tensor."""
    dtype = _first_dtype(prototype, case)
    if category(dtype) != 1 or dtype is Dtype.int64:
        return None
    number = np.iinfo(to_numpy(dtype)).max + 1
    return replace_value(parameter, float(number) if parameter.annotation is kinds.f64 else int(number))


def _first_dtype(prototype: Prototype, case: BaselineCase) -> Dtype:
    """Return the element type of the first tensor argument, or of the first result if there is none."""
    arguments = [tensor for p in prototype.arguments for tensor in tensors_in(case.arguments[p.name])]
    results = [entry for value in case.expected.values() for entry in expected_arrays(value)]
    return arguments[0].dtype if arguments else results[0].dtype


def _minus_one(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return replace_value(parameter, -1) if category(_first_dtype(prototype, case)) == 1 else None


# Attributes within bounds, or of a few.


def _away(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    fact = _fact(parameter, facts.StepBetween)
    leads = int(case.arguments[fact.start]) != int(case.arguments[fact.end])
    return replace_value(parameter, -case.arguments[parameter.name]) if leads else None


def _standing(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return replace_value(parameter, 0)


def _above_one(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return replace_value(parameter, 1.5)


def _unknown(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    choices = _fact(parameter, facts.OneOf).choices
    numbers = [choice for choice in choices if isinstance(choice, int)]
    return replace_value(parameter, max(numbers) + 1 if numbers else f"not-{choices[0]}")


# What may be left out only in some calls.


def _left_out(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    needed = _fact(parameter, facts.NeededWhere).argument
    if not case.arguments[needed] or case.arguments[parameter.name] is None:
        return None
    return Flaw(f"{parameter.c_name} is NULL although {needed} is {case.arguments[needed]}", {parameter.name: None})


# Alignments.


def _no_class(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    below = _fact(parameter, facts.Below)
    return replace_value(parameter, case.arguments[below.tensor].values.shape[below.axis])


def _beyond_the_axis(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    within = _fact(parameter, facts.WithinAxis)
    sizes = case.arguments[within.tensor].values.shape or (1,)
    return replace_value(parameter, sizes[case.arguments[within.axis]] + 1)


def _another_size(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    size_of = _fact(parameter, facts.SizeOf)
    (tensor,) = tensors_in(case.arguments.get(size_of.tensor)) or expected_arrays(case.expected[size_of.tensor])
    return replace_value(parameter, tensor.values.shape[size_of.axis] + 1)


def _beyond(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    within = _fact(parameter, facts.LengthsWithin)
    return _first_length(parameter, case, case.arguments[within.tensor].values.shape[within.axis] + 1)


def _below_zero(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return _first_length(parameter, case, -1)


def _first_length(parameter: Parameter, case: BaselineCase, length: int) -> Flaw:
    tensor: BaselineTensor = case.arguments[parameter.name]
    lengths = np.array(tensor.values)
    lengths[0] = length
    return Flaw(f"{parameter.c_name}[0] is {length}", {parameter.name: replace(tensor, values=lengths)})


# Norms of nothing.


def _normed(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is the tensor, or array of tensors, whose norm is computed."""
    inputs = [p for p in prototype.arguments if p.is_tensor or p.is_tensor_array]
    return _order(prototype) is not None and parameter in inputs[:1]


def _order(prototype: Prototype) -> Parameter | None:
    return next((p for p in prototype.arguments if p.fact(facts.NormOrder)), None)


def _without_elements(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use vectors without elements, for an order whose norm of nothing is undefined."""
    named = _order(prototype)
    assert named is not None
    order, tensor = case.arguments[named.name], case.arguments[parameter.name]
    first: BaselineTensor = tensor[0] if isinstance(tensor, list) else tensor
    if not (order < 0 or order == math.inf) or not first.values.ndim:
        return None
    axis = (*_axes(prototype, case), 0)[0] % first.values.ndim
    shape = tuple(0 if i == axis else length for i, length in enumerate(first.values.shape))
    empty = make_zeros(shape, first.dtype, "contiguous")
    text = f"{parameter.c_name} has shape {shape}, which leaves nothing to take the norm of order {order} of"
    follow = [p.name for p in prototype.results if p.fact(facts.ShapeOf) == facts.ShapeOf(parameter.name)]
    return Flaw(
        text,
        {parameter.name: [empty, *tensor[1:]] if isinstance(tensor, list) else empty},
        {name: Expected(empty.values, first.dtype) for name in follow},
    )


def _axes(prototype: Prototype, case: BaselineCase) -> Sequence[int]:
    """Return the axes that the call names; empty if it means all of them."""
    values = [case.arguments[p.name] for p in prototype.arguments if p.fact(facts.NamesAxis)]
    return [axis for value in values for axis in (value if isinstance(value, tuple) else (value,))]


INVALID_SHAPES = (
    Mutation("one-element", _never_broadcasts, _one_element),
    Mutation("longer", has_fact(facts.SizesFollow), _longer),
    Mutation("other-shape", has_fact(facts.HasShape), _other_shape),
    Mutation("flattened", has_fact(facts.HasShape), _flattened),
    Mutation("other-size", _repeats_size, _other_size),
    Mutation("reflects-too-far", has_fact(facts.Margins), _too_far("reflect", 0)),
    Mutation("circles-too-far", has_fact(facts.Margins), _too_far("circular", 1)),
    Mutation("too-large", has_number_fact(facts.Stored), _too_large),
    Mutation("negative", has_number_fact(facts.Exponent), _minus_one),
    Mutation("zero", has_fact(facts.StepBetween), _standing),
    Mutation("away", has_fact(facts.StepBetween), _away),
    Mutation("above-one", has_fact(facts.AtMostOne), _above_one),
    Mutation("unknown", has_fact(facts.OneOf), _unknown),
    Mutation("null", has_fact(facts.NeededWhere), _left_out),
    Mutation("no-class", has_fact(facts.Below), _no_class),
    Mutation("beyond-the-axis", has_fact(facts.WithinAxis), _beyond_the_axis),
    Mutation("another-size", has_fact(facts.SizeOf), _another_size),
    Mutation("beyond", has_fact(facts.LengthsWithin), _beyond),
    Mutation("below-zero", has_fact(facts.LengthsWithin), _below_zero),
    Mutation("without-elements", _normed, _without_elements),
)
"""What can be made wrong in sizes and values, beside what `diopi_test.execution.negative_cases` has."""
