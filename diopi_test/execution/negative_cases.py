"""Negative tests: invalid calls, each derived from a valid case by one change.

Negative tests are not stored; each run derives them from the stored cases. `MUTATIONS` lists the changes. Each
mutation has a predicate that selects parameters, and a function of a valid call. The function returns a *flaw*: the
changed arguments, and a text that says why the changed call is invalid. It returns None if the mutation does not apply
to the call. A mutation is applied only where the prototype's facts make the changed call invalid. Whether a test can be
derived depends only on shapes, types and attributes, never on tensor values.

In this module, an *array* is a Python list of tensors, for a parameter that is an array of tensors. A *list* is a tuple
of numbers, for an attribute such as `kernel_size`. A sparse matrix is a Python list of its row pointers, columns and
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import caller_chosen, category
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.bases import find_bases
from diopi_test.execution.flaw import (
    Flaw,
    Mutation,
    has_fact,
    has_number_fact,
    make_zeros,
    replace_first,
    replace_value,
)
from diopi_test.execution.invalid_shapes import INVALID_SHAPES
from diopi_test.oracle.records import BaselineCase, Expected, expected_arrays, tensors_in
from lib_rt.dtypes import to_numpy

PREFIX = "negative"
"""The prefix of the labels of negative cases."""


@dataclass(frozen=True)
class NegativeCase:
    """An invalid call and the reason why it is invalid.

    Attributes:
        case: the case that makes the invalid call.
        flaw: what is invalid, and the changed arguments.
    """

    case: BaselineCase
    flaw: Flaw


def negative_labels(prototype: Prototype, cases: Iterable[BaselineCase]) -> list[tuple[str, str]]:
    """Return the labels of a function's negative tests, each with the label of its base.

    The base of a negative test is the stored case from which the test is derived: the first suitable one of `cases`.

    Args:
        prototype: The prototype of the function.
        cases: The stored cases of the function.

    Returns:
        Pairs of label and base label.
    """

    def applies(case: BaselineCase, target: tuple[Mutation, Parameter]) -> bool:
        """Return whether a mutation makes a stored case invalid."""
        mutation, parameter = target
        return _find_flaw(mutation, prototype, parameter, case) is not None

    return find_bases(_mutation_targets(prototype), filter(partial(has_nonempty_inputs, prototype), cases), applies)


def make_negative_case(case: BaselineCase, label: str) -> NegativeCase:
    """Return the negative test called `label`, derived from `case`; raise KeyError if that is not possible."""
    prototype = lookup(case.function)
    mutation, parameter = _mutation_targets(prototype)[label]
    flaw = _find_flaw(mutation, prototype, parameter, case)
    if flaw is None:
        raise KeyError(f"{label} can't be derived from {case.id}")
    arguments, expected = {**case.arguments, **flaw.arguments}, {**case.expected, **flaw.expected}
    negative = replace(case, label=label, arguments=arguments, expected=expected, case_class=CaseClass.negative)
    return NegativeCase(negative, flaw)


@cache
def _mutation_targets(prototype: Prototype) -> Mapping[str, tuple[Mutation, Parameter]]:
    """Return the mutation and the mutated parameter of each negative test of a function, by label."""
    return {
        f"{PREFIX}-{parameter.c_name}-{mutation.name}": (mutation, parameter)
        for mutation in MUTATIONS
        for parameter in prototype.parameters[1:]
        if mutation.concerns(prototype, parameter)
    }


def _find_flaw(mutation: Mutation, prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Return the flaw of a mutated case; None if the mutation does not apply or the parameter is not read."""
    if parameter.name in prototype.unread_arguments(case.arguments):
        return None
    return mutation.flaw(prototype, parameter, case)


def has_nonempty_inputs(prototype: Prototype, case: BaselineCase) -> bool:
    """Return whether all tensors that affect results have elements. Workspaces do not count.

    A function need not examine its arguments if the tensors have no elements. Therefore, negative tests are derived
    only from cases whose inputs have elements.

    Args:
        prototype: The prototype of the function.
        case: The case.

    Returns:
        Whether no such tensor is empty.
    """
    read = (p.name for p in prototype.arguments if p.annotation is not kinds.Workspace)
    decisive = [case.arguments[name] for name in read if prototype.has_effect(name, case.arguments)]
    return all(tensor.values.size for value in decisive for tensor in tensors_in(value))


def _has_determined_dtype(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is a required caller-allocated result whose element type the inputs determine."""
    has_inputs = any(p.is_argument and (p.is_tensor or p.is_tensor_array) for p in prototype.parameters)
    is_allocated_by_caller = parameter.annotation in (kinds.Out, kinds.Outs) and not parameter.optional
    return is_allocated_by_caller and has_inputs and prototype.result is not caller_chosen


def _change_first(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the changed value; in an array, change only the first entry."""
    return [change(value[0]), *value[1:]] if isinstance(value, list) else change(value)


# NULL where a tensor is required.


def _is_required_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is a tensor, or an array of tensors, that must not be NULL."""
    single = parameter.is_tensor and parameter.annotation not in (kinds.NewOut, kinds.Workspace)
    array = parameter.annotation in (kinds.Ins, kinds.Outs, kinds.InOuts, kinds.SparseIn)
    return not parameter.optional and (single or array)


def _pass_null(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Pass NULL for a tensor, or for the first tensor of an array."""
    value = (case.expected if parameter.role is Role.output else case.arguments)[parameter.name]
    if not value:
        return None
    is_array = isinstance(value, list) and parameter.annotation is not kinds.SparseIn
    changed = {parameter.name: _change_first(value, lambda tensor: None) if is_array else None}
    text = f"{parameter.c_name}{'[0]' if is_array else ''} is NULL"
    return Flaw(text, expected=changed) if parameter.role is Role.output else Flaw(text, changed)


# An element type that the standard does not accept there.

_CANDIDATE_DTYPES = (Dtype.float32, Dtype.complex64, Dtype.bool, Dtype.uint16)
"""Element types to try; the first one that is not accepted is used. No function accepts uint16."""


def _is_input_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is a tensor, or an array of tensors, that the function reads."""
    tensor = parameter.is_tensor or parameter.is_tensor_array
    return tensor and parameter.is_argument and parameter.annotation is not kinds.Workspace


def _use_invalid_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use zeros of an element type that the function does not accept for the tensor.

    In an array, only the first tensor changes; in a sparse matrix, only the values.

    Returns:
        The flaw; None if there is no tensor, if the prototype lists no accepted types, or if it accepts all types in
        `_CANDIDATE_DTYPES`.
    """
    value, accepted = case.arguments[parameter.name], prototype.dtypes_of(parameter.name)
    invalid_dtype = next((dtype for dtype in _CANDIDATE_DTYPES if dtype not in accepted), None)
    if not tensors_in(_first_entry(value)) or not accepted or invalid_dtype is None:
        return None
    is_sparse = parameter.annotation is kinds.SparseIn  # the last tensor contains the values
    changed = _change_first(
        value[::-1] if is_sparse else value,
        lambda tensor: make_zeros(tensor.values.shape, invalid_dtype, tensor.layout),
    )
    changed = changed[::-1] if is_sparse else changed
    return Flaw(f"{parameter.c_name} is of type {invalid_dtype.name}", {parameter.name: changed})


def _first_entry(value: Any) -> Any:
    """Return the value, or the first entry of an array; None if the array is empty."""
    return next(iter(value), None) if isinstance(value, list) else value


# Shapes that do not broadcast.


def _is_further_operand(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is the second or a later operand of an element-wise function."""
    operands = [p for p in prototype.parameters if p.is_tensor and p.is_argument]
    returns_tensor = any(p.is_tensor and p.is_result for p in prototype.parameters)
    return prototype.elementwise and returns_tensor and parameter in operands[1:]


def _prevent_broadcast(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Give the operand a size that does not broadcast with the first operand; None if there is no such size."""
    first = next(case.arguments[p.name] for p in prototype.parameters if p.is_tensor and p.is_argument)
    tensor = case.arguments[parameter.name]
    if tensor is None or first.values.ndim == 0 or first.values.shape[-1] < 2:
        return None
    shape = (first.values.shape[-1] + 1,)
    text = f"{parameter.c_name} has shape {shape}, which does not broadcast with {first.values.shape}"
    return Flaw(text, {parameter.name: make_zeros(shape, tensor.dtype, "contiguous")})


# An axis or index out of range.


def _exceed_last(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    """Use a number greater than the last axis or index."""
    return replace_first(parameter, case, _position_count(parameter, case))


def _precede_first(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    """Use a negative number that counts back beyond the first axis or index."""
    return replace_first(parameter, case, -_position_count(parameter, case) - 1)


def _position_count(parameter: Parameter, case: BaselineCase) -> int:
    """Return an upper bound of the number of axes or indices."""
    return _largest_rank(case) if parameter.fact(facts.NamesAxis) else _largest_size(case)


def _largest_rank(case: BaselineCase) -> int:
    """Return the highest rank of the call's tensors and results, at least 1."""
    arguments = [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]
    results = [entry.values for value in case.expected.values() for entry in expected_arrays(value)]
    return max([array.ndim for array in (*arguments, *results)], default=1) or 1


def _largest_size(case: BaselineCase) -> int:
    """Return the largest number among all axis sizes of input tensors and all entries of lists, at least 1."""
    shapes = [tensor.values.shape for value in case.arguments.values() for tensor in tensors_in(value)]
    lists = [value for value in case.arguments.values() if isinstance(value, tuple)]
    return max(int(length) for sizes in (*shapes, *lists) for length in (*sizes, 1))


# A number that is too small.


def _use_negative_number(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use −1; in a list, replace the first number. None if the attribute is absent or an empty list."""
    return None if case.arguments[parameter.name] in (None, ()) else replace_first(parameter, case, -1)


def _must_be_positive(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is an attribute whose lower bound is above 0."""
    least = parameter.fact(facts.AtLeast)
    return parameter.role is Role.attribute and least is not None and least.least > 0


def _use_zero(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use 0; in a list, replace the first number.

    Returns:
        The flaw; None if the attribute is absent, is an empty list, or has no effect on the results of the call.
    """
    if case.arguments[parameter.name] in (None, ()) or not prototype.has_effect(parameter.name, case.arguments):
        return None
    return replace_first(parameter, case, 0)


# The wrong number of tensors.


def _is_count(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is the number of entries of an array."""
    return parameter.role is Role.count


def _use_negative_count(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    """Use −1 as the number of entries."""
    return replace_value(parameter, -1)


def _needs_entries(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is an array of inputs that must not be empty."""
    counts = [p for p in prototype.parameters if p.role is Role.count]
    return parameter.annotation is kinds.Ins and any(count.fact(facts.AtLeast) for count in counts)


def _pass_empty_array(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    """Pass an array without entries."""
    return Flaw(f"{parameter.c_name} has no entries", {parameter.name: []})


def _has_requested_length(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether the parameter is an array of results whose length no array of inputs determines."""
    has_input_array = any(p.is_tensor_array and p.is_argument for p in prototype.parameters)
    return parameter.annotation is kinds.Outs and not has_input_array


def _omit_last_result(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Pass one result tensor fewer than the call requests.

    Returns:
        The flaw; None for fewer than two results, or if no list has one number per result.
    """
    results = case.expected[parameter.name]
    assert isinstance(results, list)
    sizes = [value for value in case.arguments.values() if isinstance(value, tuple) and len(value) == len(results)]
    if not sizes or len(results) < 2:
        return None
    return Flaw(f"{parameter.c_name} has {len(results) - 1} entries", expected={parameter.name: results[:-1]})


# A result tensor of the wrong shape or element type.


def _has_determined_shape(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether `_has_determined_dtype` holds and the caller can't choose the shape of the result either."""
    return _has_determined_dtype(prototype, parameter) and not parameter.fact(facts.ShapeChosen)


def _use_wrong_shape(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use a result tensor whose last axis is longer by one, or one of shape (2,) instead of a 0-d tensor.

    In an array, only the first tensor changes.

    Returns:
        The flaw; None if the result is absent or has no elements.
    """
    results = case.expected[parameter.name]
    first = _first_entry(results)
    if first is None or not first.values.size:
        return None
    valid = first.values.shape
    invalid = (*valid[:-1], valid[-1] + 1) if valid else (2,)
    changed = _change_first(results, lambda result: _zero_result(invalid, result.dtype, result.layout))
    return Flaw(f"{parameter.c_name} has shape {invalid} instead of {valid}", expected={parameter.name: changed})


def _use_wrong_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """Use a result tensor with a type that can't hold the result, such as integers for a floating-point result.

    In an array, only the first tensor changes.

    Returns:
        The flaw; None if the result is absent, or if the prototype allows the type in `_TOO_NARROW` for it.
    """
    results = case.expected[parameter.name]
    first, entry = _first_entry(results), 0 if isinstance(results, list) else None
    invalid = None if first is None else _TOO_NARROW.get(category(first.dtype))
    if first is None or invalid is None or prototype.can_hold(parameter.name, invalid, case.arguments, entry):
        return None
    changed = _change_first(results, lambda result: _zero_result(result.values.shape, invalid, result.layout))
    text = f"{parameter.c_name} is of type {invalid.name} instead of {first.dtype.name}"
    return Flaw(text, expected={parameter.name: changed})


_TOO_NARROW = {3: Dtype.float32, 2: Dtype.int32, 1: Dtype.bool}
"""An element type that can't hold the result, by the category of the result's element type (see torch.can_cast).

The keys are numbers that `category` returns: 3 for complex types, 2 for floating-point types and 1 for integers. Every
type can hold booleans, category 0.
"""


def inferred_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Dtype:
    """Return the element type of a result, or of the first entry of an array of results, by the prototype's rule.

    If the call has no input tensor, the rule applies to the type of the case.
    """
    entry = 0 if parameter.is_tensor_array else None
    usual = prototype.infer(parameter.name, case.arguments, entry, default=case.dtype)
    assert usual is not None
    return usual


def _zero_result(shape: Sequence[int], dtype: Dtype, layout: str) -> Expected:
    """Return a result tensor of zeros."""
    return Expected(values=np.zeros(shape, to_numpy(dtype)), dtype=dtype, layout=layout)


MUTATIONS = (
    Mutation("null", _is_required_tensor, _pass_null),
    Mutation("dtype", _is_input_tensor, _use_invalid_dtype),
    Mutation("shape", _is_further_operand, _prevent_broadcast),
    Mutation("after-the-last", has_fact(facts.NamesAxis), _exceed_last),
    Mutation("before-the-first", has_fact(facts.NamesAxis), _precede_first),
    Mutation("after-the-last", has_fact(facts.NamesIndex), _exceed_last),
    Mutation("before-the-first", has_fact(facts.NamesIndex), _precede_first),
    Mutation("negative", has_number_fact(facts.AtLeast), _use_negative_number),
    Mutation("zero", _must_be_positive, _use_zero),
    Mutation("negative", _is_count, _use_negative_count),
    Mutation("none", _needs_entries, _pass_empty_array),
    Mutation("too-few", _has_requested_length, _omit_last_result),
    Mutation("shape", _has_determined_shape, _use_wrong_shape),
    Mutation("dtype", _has_determined_dtype, _use_wrong_dtype),
    *INVALID_SHAPES,
)
"""All mutations."""
