"""Mutations of sizes and values: tensors that do not match each other, and attributes that do not match tensors.

Each mutation turns a valid call into a call that must be rejected. It consists of a name, a predicate that selects
parameters by their facts, and a function that returns the flaw: the changed arguments and a description. The function
returns None if the call can't be changed in this way.
"""

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
"""A kind of facts, which prototypes state about their parameters."""


def _fact(parameter: Parameter, kind: type[F]) -> F:
    """Return the parameter's fact of a kind, which the predicate of the mutation has found."""
    fact = parameter.fact(kind)
    assert fact is not None
    return fact


# Tensors whose size does not match the other tensors.


def _must_match_in_size(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the tensor must have the shape of another tensor, without broadcasting."""
    follows = parameter.fact(facts.SizesFollow)
    return follows is not None and not follows.broadcast


def _resize(parameter: Parameter, case: BaselineCase, shape: tuple[int, ...]) -> Flaw:
    """Return a flaw that replaces the tensor by zeros of another shape."""
    tensor = case.arguments[parameter.name]
    text = f"{parameter.c_name} has shape {shape} instead of {tensor.values.shape}"
    return Flaw(text, {parameter.name: make_zeros(shape, tensor.dtype, "contiguous")})


def _reduce_to_one_element(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Give the tensor one element."""
    tensor = case.arguments[parameter.name]
    if tensor is None or tensor.values.size < 2 or not prototype.has_effect(parameter.name, case.arguments):
        return None
    return _resize(parameter, case, (1,) * tensor.values.ndim)


def _lengthen_last_axis(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Lengthen the last axis of the tensor by one."""
    tensor = case.arguments[parameter.name]
    if tensor is None or not tensor.values.ndim or not prototype.has_effect(parameter.name, case.arguments):
        return None
    return _resize(parameter, case, (*tensor.values.shape[:-1], tensor.values.shape[-1] + 1))


# Shapes that contradict each other, or attributes that repeat sizes.


def _lengthen_determined_axis(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Lengthen by one the first axis whose size is also determined by other arguments."""
    tensor, sizes = case.arguments[parameter.name], _fact(parameter, facts.HasShape).sizes
    if tensor is None:
        return None
    axis = next(
        (i for i, size in enumerate(sizes) if _is_determined_elsewhere(prototype, case, parameter.name, i, size)), None
    )
    if axis is None:
        return None
    return _resize(parameter, case, tuple(n + (i == axis) for i, n in enumerate(tensor.values.shape)))


def _is_determined_elsewhere(prototype: Prototype, case: BaselineCase, name: str, axis: int, size: int | str) -> bool:
    """Return whether an axis of a tensor has a size that the prototype or another argument determines.

    Args:
        prototype: The prototype of the function.
        case: The call.
        name: The name of the tensor.
        axis: The axis.
        size: The size in the declared shape: a number, or the name of a size. A named size is determined by an
            attribute of this name, or by another axis with this size of a tensor that the call reads.
    """
    occurrences = [
        (tensor, i)
        for tensor, sizes in prototype.shapes.items()
        for i, axis_size in enumerate(sizes)
        if axis_size == size
        and case.arguments[tensor] is not None
        and tensor not in prototype.unread_arguments(case.arguments)
    ]
    return isinstance(size, int) or size in case.arguments or any(place != (name, axis) for place in occurrences)


def _flatten(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Replace the tensor by a 1-d tensor of as many elements."""
    tensor = case.arguments[parameter.name]
    return None if tensor is None or tensor.values.ndim < 2 else _resize(parameter, case, (tensor.values.size,))


def _repeats_size(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is an attribute with the name of a size."""
    return parameter.role is Role.attribute and any(parameter.name in sizes for sizes in prototype.shapes.values())


def _increase_size_attribute(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    """Increase an attribute that repeats a size by one."""
    return replace_value(parameter, case.arguments[parameter.name] + 1)


# Padding that exceeds the axis from which it is copied.


def _pad_too_far(mode: str, beyond: int) -> Any:
    """Return a function that replaces the padding before the last axis by the size of this axis plus `beyond`.

    The padding after the axis becomes smaller, so that the size of the result stays the same.

    Args:
        mode: The mode of padding to which the mutation applies.
        beyond: The padding minus the size of the axis.
    """

    def flaw(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
        """Return the flaw of a padding that exceeds the size of the last axis."""
        margins = _fact(parameter, facts.Margins)
        if case.arguments[margins.mode] != mode:
            return None
        before, after, *remaining = case.arguments[parameter.name]
        margin = case.arguments[margins.tensor].values.shape[-1] + beyond
        return replace_value(parameter, (margin, before + after - margin, *remaining))

    return flaw


# Numbers that the element type can't represent.


def _exceed_integer_range(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use one more than the largest number of the tensor's element type, if this is an integer type below 64 bits."""
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


def _use_negative_exponent(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use −1 as the exponent of integers."""
    return replace_value(parameter, -1) if category(_first_dtype(prototype, case)) == 1 else None


# Attributes with bounds, or with a list of choices.


def _reverse_step(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Negate the step, so that it leads away from the end."""
    fact = _fact(parameter, facts.StepBetween)
    leads = int(case.arguments[fact.start]) != int(case.arguments[fact.end])
    return replace_value(parameter, -case.arguments[parameter.name]) if leads else None


def _use_zero_step(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use a step of 0."""
    return replace_value(parameter, 0)


def _exceed_one(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use 1.5 for an attribute that is at most 1."""
    return replace_value(parameter, 1.5)


def _use_unknown_choice(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use a value that is not among the choices of the attribute."""
    choices = _fact(parameter, facts.OneOf).choices
    numbers = [choice for choice in choices if isinstance(choice, int)]
    return replace_value(parameter, max(numbers) + 1 if numbers else f"not-{choices[0]}")


# Arguments that may be NULL only in some calls.


def _omit_required_argument(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Pass NULL for an argument that this call requires."""
    condition = _fact(parameter, facts.NeededWhere).argument
    if not case.arguments[condition] or case.arguments[parameter.name] is None:
        return None
    return Flaw(
        f"{parameter.c_name} is NULL although {condition} is {case.arguments[condition]}", {parameter.name: None}
    )


# Attributes and lengths that must agree with the size of an axis.


def _exceed_class_count(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use the number of classes as a class; classes start at 0."""
    limit = _fact(parameter, facts.LessThanSize)
    return replace_value(parameter, case.arguments[limit.tensor].values.shape[limit.axis])


def _exceed_axis(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use a number one greater than the size of the axis."""
    limit = _fact(parameter, facts.WithinAxis)
    sizes = case.arguments[limit.tensor].values.shape or (1,)
    return replace_value(parameter, sizes[case.arguments[limit.axis]] + 1)


def _contradict_size_of_tensor(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use a number one greater than the size that the attribute repeats."""
    repeated_size = _fact(parameter, facts.SizeOf)
    (tensor,) = tensors_in(case.arguments.get(repeated_size.tensor)) or expected_arrays(
        case.expected[repeated_size.tensor]
    )
    return replace_value(parameter, tensor.values.shape[repeated_size.axis] + 1)


def _exceed_length(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Make the first length one greater than the size of its axis."""
    limit = _fact(parameter, facts.LengthsWithin)
    return _replace_first_length(parameter, case, case.arguments[limit.tensor].values.shape[limit.axis] + 1)


def _use_negative_length(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Make the first length −1."""
    return _replace_first_length(parameter, case, -1)


def _replace_first_length(parameter: Parameter, case: BaselineCase, length: int) -> Flaw:
    """Return a flaw that replaces the first length of a sequence."""
    tensor: BaselineTensor = case.arguments[parameter.name]
    lengths = np.array(tensor.values)
    lengths[0] = length
    return Flaw(f"{parameter.c_name}[0] is {length}", {parameter.name: replace(tensor, values=lengths)})


# Norms of vectors without elements.


def _has_norm(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is the tensor, or array of tensors, whose norm is computed."""
    inputs = [p for p in prototype.arguments if p.is_tensor or p.is_tensor_array]
    return _order_parameter(prototype) is not None and parameter in inputs[:1]


def _order_parameter(prototype: Prototype) -> Parameter | None:
    """Return the parameter with the order of a norm, or None if the function computes no norm."""
    return next((p for p in prototype.arguments if p.fact(facts.NormOrder)), None)


def _use_empty_vectors(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use vectors without elements if the norm of no elements is undefined: for negative orders and infinity."""
    named = _order_parameter(prototype)
    assert named is not None
    order, tensor = case.arguments[named.name], case.arguments[parameter.name]
    first: BaselineTensor = tensor[0] if isinstance(tensor, list) else tensor
    if not (order < 0 or order == math.inf) or not first.values.ndim:
        return None
    axis = (*_named_axes(prototype, case), 0)[0] % first.values.ndim
    shape = tuple(0 if i == axis else length for i, length in enumerate(first.values.shape))
    empty = make_zeros(shape, first.dtype, "contiguous")
    text = f"{parameter.c_name} has shape {shape}, and the norm of order {order} of no elements is undefined"
    follow = [p.name for p in prototype.results if p.fact(facts.ShapeOf) == facts.ShapeOf(parameter.name)]
    return Flaw(
        text,
        {parameter.name: [empty, *tensor[1:]] if isinstance(tensor, list) else empty},
        {name: Expected(values=empty.values, dtype=first.dtype) for name in follow},
    )


def _named_axes(prototype: Prototype, case: BaselineCase) -> Sequence[int]:
    """Return the axes that the call names; empty if it means all of them."""
    values = [case.arguments[p.name] for p in prototype.arguments if p.fact(facts.NamesAxis)]
    return [axis for value in values for axis in (value if isinstance(value, tuple) else (value,))]


INVALID_SHAPES = (
    Mutation("one-element", _must_match_in_size, _reduce_to_one_element),
    Mutation("longer", has_fact(facts.SizesFollow), _lengthen_last_axis),
    Mutation("other-shape", has_fact(facts.HasShape), _lengthen_determined_axis),
    Mutation("flattened", has_fact(facts.HasShape), _flatten),
    Mutation("other-size", _repeats_size, _increase_size_attribute),
    Mutation("reflects-too-far", has_fact(facts.Margins), _pad_too_far("reflect", 0)),
    Mutation("circles-too-far", has_fact(facts.Margins), _pad_too_far("circular", 1)),
    Mutation("too-large", has_number_fact(facts.Stored), _exceed_integer_range),
    Mutation("negative", has_number_fact(facts.Exponent), _use_negative_exponent),
    Mutation("zero", has_fact(facts.StepBetween), _use_zero_step),
    Mutation("away", has_fact(facts.StepBetween), _reverse_step),
    Mutation("above-one", has_fact(facts.AtMostOne), _exceed_one),
    Mutation("unknown", has_fact(facts.OneOf), _use_unknown_choice),
    Mutation("null", has_fact(facts.NeededWhere), _omit_required_argument),
    Mutation("no-class", has_fact(facts.LessThanSize), _exceed_class_count),
    Mutation("beyond-the-axis", has_fact(facts.WithinAxis), _exceed_axis),
    Mutation("another-size", has_fact(facts.SizeOf), _contradict_size_of_tensor),
    Mutation("beyond", has_fact(facts.LengthsWithin), _exceed_length),
    Mutation("below-zero", has_fact(facts.LengthsWithin), _use_negative_length),
    Mutation("without-elements", _has_norm, _use_empty_vectors),
)
"""The mutations of sizes and values; `diopi_test.execution.negative_cases` has the other mutations."""
