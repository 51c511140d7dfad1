"""Negative cases: calls that are errors, each a valid case with one thing made wrong.

Nothing of them is stored: a table of mutations says what can be made wrong, at which parameters, and what then. Each is
an error of every function it applies to, by the facts in the prototype; where that is uncertain, it does not apply.
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
from diopi_test.baseline.records import BaselineCase, Expected, expected_arrays, tensors_in
from diopi_test.cases.model import CaseClass
from diopi_test.execution.flaw import Flaw, Mutation, blank, first_changed, having, number_having, value_flaw
from diopi_test.execution.invalid_shapes import INVALID_SHAPES
from lib_rt.dtypes import to_numpy

PREFIX = "negative"
"""What the labels of negative cases begin with."""


@dataclass(frozen=True)
class NegativeCase:
    """A call that is an error, and what is wrong with it."""

    case: BaselineCase
    flaw: Flaw


def negative_labels(prototype: Prototype, cases: Iterable[BaselineCase]) -> list[tuple[str, str]]:
    """The negative cases of a function: label, and the label of the valid case it is made of.

    That is the first of `cases` it can be made of; shapes, element types and attributes decide, not values.
    """
    missing, found = dict(_targets(prototype)), {}
    for case in filter(partial(is_ordinary, prototype), cases):
        for label, (mutation, parameter) in list(missing.items()):
            if _flaw(mutation, prototype, parameter, case) is not None:
                found[label] = case.label
                del missing[label]
        if not missing:
            break
    return [(label, found[label]) for label in _targets(prototype) if label in found]


def make_negative_case(case: BaselineCase, label: str) -> NegativeCase:
    """The negative case called `label` made of `case`; KeyError if it can't be made of it."""
    prototype = lookup(case.function)
    mutation, parameter = _targets(prototype)[label]
    flaw = _flaw(mutation, prototype, parameter, case)
    if flaw is None:
        raise KeyError(f"{label} can't be made of {case.id}")
    arguments, expected = {**case.arguments, **flaw.arguments}, {**case.expected, **flaw.expected}
    negative = replace(case, label=label, arguments=arguments, expected=expected, case_class=CaseClass.negative)
    return NegativeCase(negative, flaw)


@cache
def _targets(prototype: Prototype) -> Mapping[str, tuple[Mutation, Parameter]]:
    """By label, every mutation with a parameter it can be made at."""
    return {
        f"{PREFIX}-{parameter.c_name}-{mutation.name}": (mutation, parameter)
        for mutation in MUTATIONS
        for parameter in prototype.parameters[1:]
        if mutation.concerns(prototype, parameter)
    }


def _flaw(mutation: Mutation, prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """What a mutation makes of a valid case; nothing is wrong with what is not read in it."""
    if parameter.name in prototype.unread_arguments(case.arguments):
        return None
    return mutation.flaw(prototype, parameter, case)


def is_ordinary(prototype: Prototype, case: BaselineCase) -> bool:
    """Whether all tensor arguments have elements: without any, some functions look at nothing else.

    Those that no result depends on may be without, and so may workspaces.
    """
    read = (p.name for p in prototype.arguments if p.annotation is not kinds.Workspace)
    decisive = [case.arguments[name] for name in read if prototype.has_effect(name, case.arguments)]
    return all(tensor.values.size for value in decisive for tensor in tensors_in(value))


def _result_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    """A tensor, or array of tensors, that the caller must make and the function's inputs say how."""
    has_inputs = any(p.is_argument and (p.is_tensor or p.is_tensor_array) for p in prototype.parameters)
    made_by_caller = parameter.annotation in (kinds.Out, kinds.Outs) and not parameter.optional
    return made_by_caller and has_inputs and prototype.result is not caller_chosen


def _with_first(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value`, or the first entry of an array, changed."""
    return [change(value[0]), *value[1:]] if isinstance(value, list) else change(value)


# NULL where a tensor is required.


def _required_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    single = parameter.is_tensor and parameter.annotation not in (kinds.NewOut, kinds.Workspace)
    array = parameter.annotation in (kinds.Ins, kinds.Outs, kinds.InOuts, kinds.SparseIn)
    return not parameter.optional and (single or array)


def _null(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    value = (case.expected if parameter.role is Role.output else case.arguments)[parameter.name]
    if not value:
        return None
    is_array = isinstance(value, list) and parameter.annotation is not kinds.SparseIn
    changed = {parameter.name: _with_first(value, lambda tensor: None) if is_array else None}
    text = f"{parameter.c_name}{'[0]' if is_array else ''} is NULL"
    return Flaw(text, expected=changed) if parameter.role is Role.output else Flaw(text, changed)


# An element type the standard does not have there.

_OTHER_DTYPES = (Dtype.float32, Dtype.complex64, Dtype.bool, Dtype.uint16)
"""Element types to try, the first that is not accepted being taken; uint16 is accepted nowhere."""


def _input_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    tensor = parameter.is_tensor or parameter.is_tensor_array
    return tensor and parameter.is_argument and parameter.annotation is not kinds.Workspace


def _input_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    value, accepted = case.arguments[parameter.name], prototype.dtypes_of(parameter.name)
    invalid_dtype = next((dtype for dtype in _OTHER_DTYPES if dtype not in accepted), None)
    if not tensors_in(_first(value)) or not accepted or invalid_dtype is None:
        return None
    is_sparse = parameter.annotation is kinds.SparseIn  # its values have its type
    changed = _with_first(
        value[::-1] if is_sparse else value, lambda tensor: blank(tensor.values.shape, invalid_dtype, tensor.layout)
    )
    changed = changed[::-1] if is_sparse else changed
    return Flaw(f"{parameter.c_name} is of type {invalid_dtype.name}", {parameter.name: changed})


def _first(value: Any) -> Any:
    return next(iter(value), None) if isinstance(value, list) else value


# Shapes that do not broadcast.


def _further_operand(prototype: Prototype, parameter: Parameter) -> bool:
    operands = [p for p in prototype.parameters if p.is_tensor and p.is_argument]
    to_tensor = any(p.is_tensor and p.is_result for p in prototype.parameters)
    return prototype.elementwise and to_tensor and parameter in operands[1:]


def _broadcast(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    first = next(case.arguments[p.name] for p in prototype.parameters if p.is_tensor and p.is_argument)
    tensor = case.arguments[parameter.name]
    if tensor is None or first.values.ndim == 0 or first.values.shape[-1] < 2:
        return None
    shape = (first.values.shape[-1] + 1,)
    text = f"{parameter.c_name} has shape {shape}, which does not broadcast with {first.values.shape}"
    return Flaw(text, {parameter.name: blank(shape, tensor.dtype, "contiguous")})


# An axis or index out of range.


def _after_the_last(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    return first_changed(parameter, case, _places(parameter, case))


def _before_the_first(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw:
    return first_changed(parameter, case, -_places(parameter, case) - 1)


def _places(parameter: Parameter, case: BaselineCase) -> int:
    """How many axes, or indices, there are at most."""
    return _rank(case) if parameter.fact(facts.NamesAxis) else _longest(case)


def _rank(case: BaselineCase) -> int:
    """The most axes a tensor of the call has, results included, which may have one more than the inputs; at least 1."""
    arguments = [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]
    results = [entry.values for value in case.expected.values() for entry in expected_arrays(value)]
    return max([array.ndim for array in (*arguments, *results)], default=1) or 1


def _longest(case: BaselineCase) -> int:
    """The largest size an axis of the call has, given as a list too."""
    shapes = [tensor.values.shape for value in case.arguments.values() for tensor in tensors_in(value)]
    lists = [value for value in case.arguments.values() if isinstance(value, tuple)]
    return max(int(length) for sizes in (*shapes, *lists) for length in (*sizes, 1))


# A number that is too small.


def _negative(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return None if case.arguments[parameter.name] in (None, ()) else first_changed(parameter, case, -1)


def _positive(prototype: Prototype, parameter: Parameter) -> bool:
    least = parameter.fact(facts.AtLeast)
    return parameter.role is Role.attribute and least is not None and least.least > 0


def _zero(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    if case.arguments[parameter.name] in (None, ()) or not prototype.has_effect(parameter.name, case.arguments):
        return None
    return first_changed(parameter, case, 0)


# The wrong number of tensors.


def _count(prototype: Prototype, parameter: Parameter) -> bool:
    return parameter.role is Role.count


def _negative_count(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return value_flaw(parameter, -1)


def _needs_entries(prototype: Prototype, parameter: Parameter) -> bool:
    """An array of inputs whose count must not be 0."""
    counts = [p for p in prototype.parameters if p.role is Role.count]
    return parameter.annotation is kinds.Ins and any(count.fact(facts.AtLeast) for count in counts)


def _no_entries(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return Flaw(f"{parameter.c_name} has no entries", {parameter.name: []})


def _sized_results(prototype: Prototype, parameter: Parameter) -> bool:
    """An array of results whose number no array of inputs tells."""
    alone = not any(p.is_tensor_array and p.is_argument for p in prototype.parameters)
    return parameter.annotation is kinds.Outs and alone


def _too_few(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    results = case.expected[parameter.name]
    assert isinstance(results, list)
    sizes = [value for value in case.arguments.values() if isinstance(value, tuple) and len(value) == len(results)]
    if not sizes or len(results) < 2:
        return None
    return Flaw(f"{parameter.c_name} has {len(results) - 1} entries", expected={parameter.name: results[:-1]})


# A result tensor of the wrong shape or element type.


def _shaped_result(prototype: Prototype, parameter: Parameter) -> bool:
    """One whose shape is not the caller's to choose, as that of an expanded tensor is."""
    return _result_tensor(prototype, parameter) and not parameter.fact(facts.ShapeChosen)


def _result_shape(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    first = _first(case.expected[parameter.name])
    if first is None or not first.values.size:
        return None
    valid = first.values.shape
    invalid = (*valid[:-1], valid[-1] + 1) if valid else (2,)
    changed = _with_first(case.expected[parameter.name], lambda result: _expected(invalid, result.dtype, result.layout))
    return Flaw(f"{parameter.c_name} has shape {invalid} instead of {valid}", expected={parameter.name: changed})


def _result_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """A result in a tensor that can't hold it: no conversion from floating to integer numbers is meant anywhere."""
    results = case.expected[parameter.name]
    first, entry = _first(results), 0 if isinstance(results, list) else None
    invalid = None if first is None else _LOWER.get(category(first.dtype))
    if first is None or invalid is None or prototype.can_hold(parameter.name, invalid, case.arguments, entry):
        return None
    changed = _with_first(results, lambda result: _expected(result.values.shape, invalid, result.layout))
    text = f"{parameter.c_name} is of type {invalid.name} instead of {first.dtype.name}"
    return Flaw(text, expected={parameter.name: changed})


_LOWER = {3: Dtype.float32, 2: Dtype.int32, 1: Dtype.bool}
"""By category of a result's element type, one that can't hold it (torch.can_cast)."""


def standard_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Dtype:
    """What the prototype's rule gives, whatever the caller of `case` chose; of an array, for its first entry."""
    entry = 0 if parameter.is_tensor_array else None
    usual = prototype.infer(parameter.name, case.arguments, entry, otherwise=case.dtype)
    assert usual is not None
    return usual


def _expected(shape: Sequence[int], dtype: Dtype, layout: str) -> Expected:
    return Expected(np.zeros(shape, to_numpy(dtype)), dtype, layout)


MUTATIONS = (
    Mutation("null", _required_tensor, _null),
    Mutation("dtype", _input_tensor, _input_dtype),
    Mutation("shape", _further_operand, _broadcast),
    Mutation("after-the-last", having(facts.NamesAxis), _after_the_last),
    Mutation("before-the-first", having(facts.NamesAxis), _before_the_first),
    Mutation("after-the-last", having(facts.NamesIndex), _after_the_last),
    Mutation("before-the-first", having(facts.NamesIndex), _before_the_first),
    Mutation("negative", number_having(facts.AtLeast), _negative),
    Mutation("zero", _positive, _zero),
    Mutation("negative", _count, _negative_count),
    Mutation("none", _needs_entries, _no_entries),
    Mutation("too-few", _sized_results, _too_few),
    Mutation("shape", _shaped_result, _result_shape),
    Mutation("dtype", _result_tensor, _result_dtype),
    *INVALID_SHAPES,
)
"""Everything that can be made wrong."""
