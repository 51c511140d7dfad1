"""Negative cases: calls that are errors, each a valid case with one thing made wrong.

Nothing of them is stored: a table of mutations says what can be made wrong, at which parameters, and what then. Each is
an error of every function it applies to, by the prototype and by what its family's docstring rejects; where that is not
certain, the mutation does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category, chosen
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline import BaselineCase, BaselineTensor, Expected, entries_of, tensors_in
from lib_rt.dtypes import to_numpy

PREFIX = "negative"
"""What the labels of negative cases begin with."""


@dataclass(frozen=True)
class Flaw:
    """What is wrong with a call.

    Attributes:
        text: it in words.
        arguments, expected: what is put in the place of the valid case's; the number of an array's entries by the
            name of its count.
    """

    text: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mutation:
    """One way of making a call wrong; `negative-<parameter>-<name>` is the label of the case.

    Attributes:
        concerns: whether it can be made at a parameter.
        flaw: what it makes of a valid case there; None where it would not be an error.
    """

    name: str
    concerns: Callable[[Prototype, Parameter], bool]
    flaw: Callable[[Prototype, Parameter, BaselineCase], Flaw | None]


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
    for case in filter(_is_ordinary, cases):
        for label, (mutation, parameter) in list(missing.items()):
            if mutation.flaw(prototype, parameter, case) is not None:
                found[label] = case.label
                del missing[label]
        if not missing:
            break
    return [(label, found[label]) for label in dict(_targets(prototype)) if label in found]


def make_negative_case(case: BaselineCase, label: str) -> NegativeCase:
    """The negative case called `label` made of `case`; KeyError if it can't be made of it."""
    prototype = lookup(case.function)
    mutation, parameter = dict(_targets(prototype))[label]
    flaw = mutation.flaw(prototype, parameter, case)
    if flaw is None:
        raise KeyError(f"{label} can't be made of {case.id}")
    arguments, expected = {**case.arguments, **flaw.arguments}, {**case.expected, **flaw.expected}
    return NegativeCase(replace(case, label=label, arguments=arguments, expected=expected), flaw)


def _targets(prototype: Prototype) -> Iterator[tuple[str, tuple[Mutation, Parameter]]]:
    """By label, every mutation with a parameter it can be made at."""
    for mutation in MUTATIONS:
        for parameter in prototype.parameters[1:]:
            if mutation.concerns(prototype, parameter):
                yield f"{PREFIX}-{parameter.c_name}-{mutation.name}", (mutation, parameter)


def _is_ordinary(case: BaselineCase) -> bool:
    """Whether all tensor arguments have elements: without any, some functions look at nothing else."""
    return all(tensor.values.size for value in case.arguments.values() for tensor in tensors_in(value))


def _result_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    """A tensor, or array of tensors, that the caller must make and the function's inputs say how."""
    has_inputs = any(p.is_argument and (p.is_tensor or p.is_tensor_array) for p in prototype.parameters)
    made_by_caller = parameter.annotation in (kinds.Out, kinds.Outs) and not parameter.optional
    return made_by_caller and has_inputs and prototype.result is not chosen


def _with_first(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value`, or the first entry of an array, changed."""
    return [change(value[0]), *value[1:]] if isinstance(value, list) else change(value)


# NULL where a tensor is required.


def _required_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    single = parameter.is_tensor and parameter.annotation not in (kinds.NewOut, kinds.Workspace)
    array = parameter.annotation in (kinds.Ins, kinds.Outs, kinds.InOuts)
    return not parameter.optional and (single or array)


def _null(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    given = (case.expected if parameter.role is Role.output else case.arguments)[parameter.name]
    if not given:
        return None
    changed = {parameter.name: _with_first(given, lambda tensor: None)}
    text = f"{parameter.c_name}{'[0]' if isinstance(given, list) else ''} is NULL"
    return Flaw(text, expected=changed) if parameter.role is Role.output else Flaw(text, changed)


# An element type the standard does not have there.

_STRANGERS = (Dtype.float32, Dtype.complex64, Dtype.bool, Dtype.uint16)
"""Element types to try, the first that is not accepted being taken; uint16 is accepted nowhere."""


def _input_tensor(prototype: Prototype, parameter: Parameter) -> bool:
    tensor = parameter.is_tensor or parameter.is_tensor_array
    return tensor and parameter.is_argument and parameter.annotation is not kinds.Workspace


def _input_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    given, accepted = case.arguments[parameter.name], prototype.dtypes_of(parameter.name)
    stranger = next((dtype for dtype in _STRANGERS if dtype not in accepted), None)
    if not tensors_in(_first(given)) or not accepted or stranger is None:
        return None
    changed = _with_first(given, lambda tensor: _blank(tensor.values.shape, stranger, tensor.layout))
    return Flaw(f"{parameter.c_name} is of type {stranger.name}", {parameter.name: changed})


def _first(value: Any) -> Any:
    return next(iter(value), None) if isinstance(value, list) else value


def _blank(shape: Sequence[int], dtype: Dtype, layout: str) -> BaselineTensor:
    return BaselineTensor(np.zeros(shape, to_numpy(dtype)), dtype, layout)


# Shapes that do not broadcast.

ELEMENTWISE = frozenset({"activation", "arithmetic", "complex", "pointwise"})
"""Families whose tensors have one shape or broadcast, softmax's gradients included."""


def _further_operand(prototype: Prototype, parameter: Parameter) -> bool:
    operands = [p for p in prototype.parameters if p.is_tensor and p.is_argument]
    to_tensor = any(p.is_tensor and p.is_result for p in prototype.parameters)
    return prototype.family in ELEMENTWISE and to_tensor and parameter in operands[1:]


def _broadcast(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    first = next(case.arguments[p.name] for p in prototype.parameters if p.is_tensor and p.is_argument)
    given = case.arguments[parameter.name]
    if given is None or first.values.ndim == 0 or first.values.shape[-1] < 2:
        return None
    shape = (first.values.shape[-1] + 1,)
    text = f"{parameter.c_name} has shape {shape}, which does not broadcast with {first.values.shape}"
    return Flaw(text, {parameter.name: _blank(shape, given.dtype, "contiguous")})


# An axis out of range.

AXES = frozenset({"dim", "dim0", "dim1", "dims", "axis", "begin_norm_axis"})
WITH_AXES = frozenset({"activation", "index", "norm", "reduction", "shape", "sort"})
"""Families that reject axes out of range; elsewhere `dim` may be the size of something."""


def _axis(prototype: Prototype, parameter: Parameter) -> bool:
    return prototype.family in WITH_AXES and parameter.name in AXES


def _after_the_last(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return _with_axis(parameter, case, _rank(case))


def _before_the_first(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return _with_axis(parameter, case, -_rank(case) - 1)


def _rank(case: BaselineCase) -> int:
    """The most axes a tensor of the call has, results included, which may have one more than the inputs; at least 1."""
    arguments = [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]
    results = [entry.values for value in case.expected.values() for entry in entries_of(value)]
    return max([array.ndim for array in (*arguments, *results)], default=1) or 1


def _with_axis(parameter: Parameter, case: BaselineCase, axis: int) -> Flaw:
    given = case.arguments[parameter.name]
    value = (axis, *given[1:]) if isinstance(given, tuple) else axis
    return Flaw(f"{parameter.c_name} is {value}", {parameter.name: value})


# A negative size.

SIZES = {
    "conv": {"kernel_size", "output_size", "stride", "dilation", "padding", "output_padding"},
    "index": {"input_sizes"},
    "interpolate": {"size", "in_size", "out_size"},
    "norm": {"normalized_shape", "num_groups"},
    "pool": {"kernel_size", "output_size", "stride", "dilation", "padding"},
    "shape": {"input_sizes", "repeats_size", "size", "splitSizes", "steps"},
    "sort": {"k", "sizes"},
}
"""By family, the attributes that are sizes, counts or distances and must not be negative."""


def _size(prototype: Prototype, parameter: Parameter) -> bool:
    """But for gradients of windows, which need not look at them, and where another attribute says which ones count."""
    windows = prototype.family in ("conv", "pool") and "Backward" in prototype.name
    depends = any(p.name == "adaptive" for p in prototype.parameters)
    return parameter.name in SIZES.get(prototype.family, ()) and not windows and not depends


def _negative(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    given = case.arguments[parameter.name]
    if given is None or given == ():
        return None
    value = (-1, *given[1:]) if isinstance(given, tuple) else -1
    return Flaw(f"{parameter.c_name} is {value}", {parameter.name: value})


# The wrong number of tensors.


def _count(prototype: Prototype, parameter: Parameter) -> bool:
    return parameter.role is Role.count


def _negative_count(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    return Flaw(f"{parameter.c_name} is -1", {parameter.name: -1})


def _needs_entries(prototype: Prototype, parameter: Parameter) -> bool:
    """An array of inputs of which the docstring wants one or more."""
    counts = [p.name for p in prototype.parameters if p.role is Role.count]
    return parameter.annotation is kinds.Ins and any(f"{count} ≥ 1" in prototype.doc for count in counts)


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
    return _result_tensor(prototype, parameter) and prototype.name != "diopiExpand"


def _result_shape(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    first = _first(case.expected[parameter.name])
    if first is None or not first.values.size:
        return None
    right = first.values.shape
    wrong = (*right[:-1], right[-1] + 1) if right else (2,)
    changed = _with_first(case.expected[parameter.name], lambda one: _expected(wrong, one.dtype, one.layout))
    return Flaw(f"{parameter.c_name} has shape {wrong} instead of {right}", expected={parameter.name: changed})


def _result_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Flaw | None:
    """A result in a tensor that can't hold it: no conversion from floating to integer numbers is meant anywhere."""
    first = _first(case.expected[parameter.name])
    if first is None or category(first.dtype) > category(_standard_dtype(prototype, parameter, case)):
        return None
    wrong = _LOWER.get(category(first.dtype))
    if wrong is None:
        return None
    changed = _with_first(case.expected[parameter.name], lambda one: _expected(one.values.shape, wrong, one.layout))
    text = f"{parameter.c_name} is of type {wrong.name} instead of {first.dtype.name}"
    return Flaw(text, expected={parameter.name: changed})


_LOWER = {3: Dtype.float32, 2: Dtype.int32, 1: Dtype.bool}
"""By category of a result's element type, one that can't hold it (torch.can_cast)."""


def _standard_dtype(prototype: Prototype, parameter: Parameter, case: BaselineCase) -> Dtype:
    """What the prototype's rule gives, whatever the caller of `case` chose."""
    values = [case.arguments[p.name] for p in prototype.arguments]
    single = [value.dtype for value in values if isinstance(value, BaselineTensor)]
    inputs = single or [tensor.dtype for value in values for tensor in tensors_in(value)]
    scalars = [case.arguments[p.name] for p in prototype.arguments if issubclass(p.annotation, kinds.Scalar)]
    return prototype.result_dtype(parameter.name, inputs, [number for number in scalars if number is not None])


def _expected(shape: Sequence[int], dtype: Dtype, layout: str) -> Expected:
    return Expected(np.zeros(shape, to_numpy(dtype)), dtype, layout)


MUTATIONS = (
    Mutation("null", _required_tensor, _null),
    Mutation("dtype", _input_tensor, _input_dtype),
    Mutation("shape", _further_operand, _broadcast),
    Mutation("after-the-last", _axis, _after_the_last),
    Mutation("before-the-first", _axis, _before_the_first),
    Mutation("negative", _size, _negative),
    Mutation("negative", _count, _negative_count),
    Mutation("none", _needs_entries, _no_entries),
    Mutation("too-few", _sized_results, _too_few),
    Mutation("shape", _shaped_result, _result_shape),
    Mutation("dtype", _result_tensor, _result_dtype),
)
"""Everything that can be made wrong."""
