"""Faults of numbers and their types: too few bits, a fraction lost, operands or results taken for another type's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.dtypes import caller_chosen, category, promoted, promoted_to_floating, truth
from diopi_proto.interface import lookup
from diopi_proto.parameters import GENERATORS, Role, Scalar
from diopi_proto.types import Dtype
from diopi_test.baseline.records import BaselineCase, BaselineTensor, expected_arrays, tensors_in
from diopi_test.cases.data import convert_array, is_mask, widen
from diopi_test.execution.negative_cases import standard_dtype
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall

Values = Callable[[Any], Any]
"""From numbers, in an array or as an attribute, to those they are mistaken for; Python numbers stay Python numbers."""

NARROW_FLOATS = frozenset({Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.complex64})


def number_mutants(function: str) -> Iterator[Mutant]:
    """The faults a function's numbers can have."""
    prototype = lookup(function)
    for parameter in prototype.arguments:
        is_tensor = parameter.is_tensor or parameter.is_tensor_array
        if is_tensor or (parameter.role is Role.attribute and parameter.annotation not in GENERATORS):
            what = "tensor" if is_tensor else "attribute"
            for label, (concerns, values) in _MISTAKES.items():
                change = partial(_taken, parameter.name, concerns, values)
                yield Mutant(
                    f"{parameter.name} {label}", recompute_with(change), None, f"{what} {label}", parameter.name
                )
    operands = [p for p in prototype.arguments if p.is_tensor]
    if len(operands) > 1 and prototype.result in (promoted, promoted_to_floating, truth) and not prototype.is_inplace:
        yield Mutant("operands converted to the type of the first", recompute_with(_as_the_first))
    if len(operands) > 1 and prototype.common_type:
        yield Mutant("0-d operands converted to the type of the others", recompute_with(_as_those_with_axes))
    if operands:
        yield Mutant("arguments not converted before computing", recompute_with(_not_converted))
    if prototype.numbers and Dtype.int32 in prototype.dtypes:
        yield Mutant("integer scalars not converted to the integer type", recompute_with(_integers_not_converted))
    yield Mutant("computed in the standard's result type, then converted", _in_its_usual_type)


# Numbers


def _taken(
    name: str, concerns: Callable[[BaselineCase], bool], values: Values, case: BaselineCase
) -> Mapping[str, Any] | None:
    """One argument with its numbers taken for others; None where none of them changes."""
    given = case.plain_arguments()[name]
    if not concerns(case):
        return None
    with np.errstate(all="ignore"):
        wrong = _each(values, given)
    return None if repr(wrong) == repr(given) and _bits(wrong) == _bits(given) else {name: wrong}


def _each(values: Values, given: Any) -> Any:
    if isinstance(given, list | tuple):
        return type(given)(_each(values, one) for one in given)
    if given is None or isinstance(given, bool | str) or (isinstance(given, np.ndarray) and given.dtype == bool):
        return given
    wrong = values(given)
    return wrong if isinstance(given, np.ndarray) else np.asarray(wrong).item()


def _bits(value: Any) -> Any:
    entries = value if isinstance(value, list) else [value]
    return [one.tobytes() if isinstance(one, np.ndarray) else one for one in entries]


def _modulo_64(given: Any) -> Any:
    """The lowest six bits, as hardware takes the count of a shift."""
    array = np.asarray(given)
    return np.where(array < 0, array, array % 64) if array.dtype.kind == "i" else given


def _in_32_bits(given: Any) -> Any:
    array = np.asarray(given)
    return array.astype(np.int32).astype(array.dtype) if array.dtype.kind == "i" else given


def _through(dtype: type[np.floating[Any]]) -> Values:
    def values(given: Any) -> Any:
        array = np.asarray(given)
        return array.astype(dtype).astype(array.dtype) if array.dtype.kind in "if" else given

    return values


def _without_fraction(given: Any) -> Any:
    array = np.asarray(given)
    return np.trunc(array) if array.dtype.kind == "f" else given


def _rounded(given: Any) -> Any:
    array = np.asarray(given)
    return np.rint(array) if array.dtype.kind == "f" else given


def _always(case: BaselineCase) -> bool:
    return True


def _is_wide(case: BaselineCase) -> bool:
    """Whether no tensor's type is a floating one of 32 bits or fewer."""
    return not NARROW_FLOATS & _types(case)


def _is_whole(case: BaselineCase) -> bool:
    """Whether all tensors hold integers or truth values."""
    return all(category(dtype) < 2 for dtype in _types(case))


def _takes_integers(case: BaselineCase) -> bool:
    """Whether all tensor arguments hold integers or truth values."""
    types = {tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)}
    return bool(types) and all(category(dtype) < 2 for dtype in types)


def _types(case: BaselineCase) -> set[Dtype]:
    arguments = {tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)}
    return arguments | {entry.dtype for value in case.expected.values() for entry in expected_arrays(value)}


_MISTAKES: dict[str, tuple[Callable[[BaselineCase], bool], Values]] = {
    "reduced modulo 64": (_always, _modulo_64),
    "truncated to 32 bits": (_always, _in_32_bits),
    "converted to float32 and back": (_is_wide, _through(np.float32)),
    "converted to float64 and back": (_is_whole, _through(np.float64)),
    "truncated to integers": (_takes_integers, _without_fraction),
    "rounded to integers": (_takes_integers, _rounded),
}
"""By the name of the fault: the calls it applies to, and what numbers are mistaken for.

Where a narrower type is the right one to compute in, numbers may be rounded to it.
"""


# Types


def _operands(case: BaselineCase) -> dict[str, BaselineTensor]:
    """The tensor arguments, if there are some of different types."""
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, BaselineTensor)}
    return tensors if len({tensor.dtype for tensor in tensors.values()}) > 1 else {}


def _not_converted(case: BaselineCase) -> Mapping[str, Any] | None:
    """The arguments as they are, where the standard converts them first: operands to a common type, or to the result's.

    Masks of bytes stay the truth values they stand for.
    """
    prototype = lookup(case.function)
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, BaselineTensor)}
    masks = {name for name, tensor in tensors.items() if is_mask(prototype, name, tensor.dtype)}
    numbers = {p.name: case.arguments[p.name] for p in prototype.arguments if issubclass(p.annotation, Scalar)}
    raw = {name: widen(tensor.values, tensor.dtype) for name, tensor in tensors.items() if name not in masks}
    return {**numbers, **raw} if raw else None


def _integers_not_converted(case: BaselineCase) -> Mapping[str, Any] | None:
    """The integers among the numbers as they are given, where the standard converts them to an integer type first."""
    plain = case.plain_arguments()
    numbers = {p.name: case.arguments[p.name] for p in lookup(case.function).numbers}
    return {
        name: number for name, number in numbers.items() if isinstance(number, int) and number != plain[name]
    } or None


def _as_the_first(case: BaselineCase) -> Mapping[str, Any] | None:
    """All operands in the type of the first."""
    operands = _operands(case)
    if not operands:
        return None
    first = next(iter(operands.values())).dtype
    return {name: convert_array(tensor.values, first) for name, tensor in operands.items()}


def _as_those_with_axes(case: BaselineCase) -> Mapping[str, Any] | None:
    """The operands without axes in the common type of the others, if that is of one category with theirs."""
    operands = _operands(case)
    common = [tensor.dtype for tensor in operands.values() if tensor.values.ndim]
    if not common:
        return None
    dtype = promoted(common)
    others = {name: tensor for name, tensor in operands.items() if not tensor.values.ndim}
    alike = {name: tensor for name, tensor in others.items() if category(tensor.dtype) == category(dtype)}
    return {name: convert_array(tensor.values, dtype) for name, tensor in alike.items()} or None


def _in_its_usual_type(call: SimulatedCall) -> Effect:
    """The result is computed in the type the standard gives it, then converted to the one of the caller's tensor."""
    prototype, expected = call.prototype, call.case.expected
    if prototype.result is not caller_chosen and not any(map(tensors_in, call.case.arguments.values())):
        return Effect.not_applicable
    made = [
        result for result in prototype.results if result.role is Role.output and expected_arrays(expected[result.name])
    ]
    usual = {result.name: standard_dtype(prototype, result, call.case) for result in made}
    if all(entry.dtype is usual[name] for name in usual for entry in expected_arrays(expected[name])):
        return Effect.not_applicable
    call.dtypes = usual
    return call.recompute()
