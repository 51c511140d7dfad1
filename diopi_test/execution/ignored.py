"""Cases of ignored arguments: valid calls with an arbitrary value in an argument that the call does not read.

Callers pass arbitrary values for such an argument: NULL, a tensor of another element type or shape, or a meaningless
attribute. These cases are not stored. Each is derived from a stored case for which the prototype declares that the
argument is ignored (`diopi_proto.ignored`). Its results must be those of the stored case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from diopi_proto import parameters as kinds
from diopi_proto.ignored import Read
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number
from diopi_test.cases.case import CaseClass
from diopi_test.execution.bases import find_bases
from diopi_test.execution.negative_cases import has_nonempty_inputs
from diopi_test.oracle.data import widen
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from lib_rt.dtypes import to_numpy

PREFIX = CaseClass.callers.value
"""The prefix of the labels of these cases."""

Change = Callable[[Prototype, Parameter, Any], Any]
"""A function that returns the replacement of an argument, from the parameter and its value; the same value if there
is no replacement."""


def ignored_labels(prototype: Prototype, cases: Iterable[BaselineCase]) -> list[tuple[str, str]]:
    """Return the labels of the cases of ignored arguments, each with the label of its base.

    The base is the first of `cases` from which the case can be derived. Types, shapes and attributes decide, not
    values.

    Args:
        prototype: The prototype of the function.
        cases: The stored cases of the function.

    Returns:
        Pairs of label and base label.
    """
    nonempty = filter(partial(has_nonempty_inputs, prototype), cases)
    return find_bases(_ignored_targets(prototype), nonempty, lambda case, target: _can_derive(prototype, case, *target))


def make_ignored_case(case: BaselineCase, label: str) -> BaselineCase:
    """Return the case called `label`, derived from `case`; raise KeyError if that is not possible."""
    prototype = lookup(case.function)
    change, parameter = _ignored_targets(prototype)[label]
    if not _can_derive(prototype, case, change, parameter):
        raise KeyError(f"{label} can't be derived from {case.id}")
    changed = change(prototype, parameter, case.arguments[parameter.name])
    arguments, expected = {**case.arguments, parameter.name: changed}, case.expected
    if parameter.is_result:
        expected = {**expected, parameter.name: _unchanged_result(changed)}
    return replace(case, label=label, arguments=arguments, expected=expected, smoke=False, case_class=CaseClass.callers)


def _unchanged_result(value: BaselineTensor | None) -> Expected | None:
    """Return the expected result of a tensor that the call neither reads nor updates: its own values, or None."""
    return value and Expected(values=widen(value.values, value.dtype), dtype=value.dtype, layout=value.layout)


@cache
def _ignored_targets(prototype: Prototype) -> Mapping[str, tuple[Change, Parameter]]:
    """Return, by label, each change of an argument that some call of the function ignores."""
    ignored = {name for fact in prototype.ignored if fact.read is Read.nothing for name in fact.arguments}
    return {
        f"{PREFIX}-{parameter.c_name}-{name}": (change, parameter)
        for parameter in prototype.arguments
        if parameter.name in ignored
        for name, change in _changes_for(parameter).items()
    }


def _can_derive(prototype: Prototype, case: BaselineCase, change: Change, parameter: Parameter) -> bool:
    """Return whether a call does not read the parameter, and the change has a replacement for its value."""
    if parameter.name not in prototype.unread_arguments(case.arguments):
        return False
    value = case.arguments[parameter.name]
    return change(prototype, parameter, value) is not value


def _changes_for(parameter: Parameter) -> Mapping[str, Change]:
    """Return the changes for a parameter, by the end of the case's label."""
    if parameter.is_tensor:
        return {"null": _pass_null, "dtype": _use_unsupported_dtype, "shape": _add_axis}
    if issubclass(parameter.annotation, kinds.Generator):
        return {"null": _pass_null, "generator": _pass_generator}
    has_null = parameter.optional or issubclass(parameter.annotation, kinds.Size)
    return {"null": _pass_null, "value": _invalid_value} if has_null else {"value": _invalid_value}


def _pass_null(prototype: Prototype, parameter: Parameter, value: Any) -> Any:
    """Return None, which is passed as NULL."""
    return None


def _pass_generator(prototype: Prototype, parameter: Parameter, value: int | None) -> int:
    """Return the seed 1 if no generator was passed, else the same seed, which means that there is no replacement."""
    return 1 if value is None else value


_CANDIDATE_DTYPES = (Dtype.float64, Dtype.int64)
"""Element types to try; the first one that the parameter does not accept is used."""


def _use_unsupported_dtype(
    prototype: Prototype, parameter: Parameter, value: BaselineTensor | None
) -> BaselineTensor | None:
    """Return a tensor of an element type that the parameter does not accept; `value` if it accepts all candidates."""
    accepted = prototype.dtypes_of(parameter.name)
    unusual = next((dtype for dtype in _CANDIDATE_DTYPES if dtype not in accepted), None)
    return value if unusual is None else _corrupting_tensor(_shape_or_default(value), unusual)


def _add_axis(prototype: Prototype, parameter: Parameter, value: BaselineTensor | None) -> BaselineTensor:
    """Return a tensor with an additional last axis of length 3; for an omitted tensor, return one of shape (2, 3)."""
    return _corrupting_tensor(
        (*_shape_or_default(value), 3), value.dtype if value else prototype.dtypes_of(parameter.name)[0]
    )


def _shape_or_default(value: BaselineTensor | None) -> tuple[int, ...]:
    """Return the shape of a tensor, or a default shape for an omitted tensor."""
    return value.values.shape if value else (2,)


def _corrupting_tensor(shape: tuple[int, ...], dtype: Dtype) -> BaselineTensor:
    """Return a tensor that corrupts every result computed from it: NaN, or numbers far beyond all positions."""
    array = np.zeros(shape, to_numpy(dtype))
    array[...] = math.nan if array.dtype.kind != "i" else np.iinfo(array.dtype).max
    return BaselineTensor(array, dtype, "contiguous")


_MEANINGLESS_NUMBERS: dict[type, Number] = {kinds.i64: -7, kinds.i32: -7, kinds.f64: math.nan, kinds.f32: math.nan}
"""Meaningless numbers, by annotation of the parameter."""


def _invalid_value(prototype: Prototype, parameter: Parameter, value: Any) -> Any:
    """Return an invalid number, a list with an additional number −7, or the other truth value."""
    if issubclass(parameter.annotation, kinds.Size):
        return (*(value or ()), -7)
    if issubclass(parameter.annotation, kinds.boolean):
        return not value
    return next(value for kind, value in _MEANINGLESS_NUMBERS.items() if issubclass(parameter.annotation, kind))
