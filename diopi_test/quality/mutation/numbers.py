"""Mutants of numbers and element types: too few bits, a dropped fraction, a wrong type of operands or results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from diopi_proto.dtypes import caller_chosen, category, promoted, promoted_to_floating, truth
from diopi_proto.facts import Converted
from diopi_proto.interface import lookup
from diopi_proto.parameters import GENERATORS, Role, Scalar
from diopi_proto.types import Dtype
from diopi_test.execution.negative_cases import inferred_dtype
from diopi_test.oracle.data import convert_array, is_mask, widen
from diopi_test.oracle.records import BaselineCase, BaselineTensor, expected_arrays, tensors_in
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall

Values = Callable[[Any], Any]
"""A function that returns wrong numbers for an array or an attribute; Python numbers stay Python numbers."""

NARROW_FLOATS = frozenset({Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.complex64})
"""The floating-point and complex types that are narrower than those in which the reference computes."""


def number_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function's numbers.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    prototype = lookup(function)
    for parameter in prototype.arguments:
        is_tensor = parameter.is_tensor or parameter.is_tensor_array
        if is_tensor or (parameter.role is Role.attribute and parameter.annotation not in GENERATORS):
            subject = "tensor" if is_tensor else "attribute"
            for label, (concerns, values) in _MISTAKES.items():
                change = partial(_mutate_argument, parameter.name, concerns, values)
                yield Mutant(
                    name=f"{parameter.name} {label}",
                    corrupt=recompute_with(change),
                    corrupt_memory=None,
                    kind=f"{subject} {label}",
                    parameter=parameter.name,
                )
    yield Mutant(name="only the lowest bit of masks read", corrupt=recompute_with(_read_lowest_bit))
    operands = [p for p in prototype.arguments if p.is_tensor]
    if len(operands) > 1 and prototype.result in (promoted, promoted_to_floating, truth) and not prototype.is_inplace:
        yield Mutant(name="operands converted to the type of the first", corrupt=recompute_with(_convert_to_first_type))
    if len(operands) > 1 and prototype.common_type:
        yield Mutant(
            name="0-d operands converted to the type of the others", corrupt=recompute_with(_convert_0d_operands)
        )
    if operands:
        yield Mutant(name="arguments not converted before computing", corrupt=recompute_with(_skip_conversion))
    if prototype.numbers and Dtype.int32 in prototype.dtypes:
        yield Mutant(
            name="integer scalars not converted to the integer type", corrupt=recompute_with(_skip_integer_conversion)
        )
    if any(p.fact(Converted) for p in prototype.arguments):
        yield Mutant(name="scalars rounded instead of truncated", corrupt=recompute_with(_round_converted_scalars))
    yield Mutant(name="computed in the standard's result type, then converted", corrupt=_compute_in_standard_type)


# Numbers


def _mutate_argument(
    name: str, concerns: Callable[[BaselineCase], bool], values: Values, case: BaselineCase
) -> Mapping[str, Any] | None:
    """Return an argument with its numbers replaced.

    Args:
        name: the name of the argument.
        concerns: returns whether the mistake applies to the case.
        values: returns the wrong numbers.
        case: the case.

    Returns:
        The argument by name; None if the mistake does not apply to the case, or if no number changes.
    """
    value = case.plain_arguments()[name]
    if not concerns(case):
        return None
    with np.errstate(all="ignore"):
        mutated = _map_numbers(values, value)
    return (
        None
        if repr(mutated) == repr(value) and _comparable_bits(mutated) == _comparable_bits(value)
        else {name: mutated}
    )


def _map_numbers(values: Values, value: Any) -> Any:
    """Return a value with all numbers in it replaced; truth values, text and None stay unchanged."""
    if isinstance(value, list | tuple):
        return type(value)(_map_numbers(values, entry) for entry in value)
    if value is None or isinstance(value, bool | str) or (isinstance(value, np.ndarray) and value.dtype == bool):
        return value
    mutated = values(value)
    return mutated if isinstance(value, np.ndarray) else np.asarray(mutated).item()


def _comparable_bits(value: Any) -> Any:
    """Return the bytes of arrays, and other values unchanged, as a list for exact comparison."""
    entries = value if isinstance(value, list) else [value]
    return [entry.tobytes() if isinstance(entry, np.ndarray) else entry for entry in entries]


def _keep_six_bits(value: Any) -> Any:
    """Return nonnegative signed integers modulo 64, as hardware reads the count of a shift.

    Negative integers and values of other types stay unchanged.
    """
    array = np.asarray(value)
    return np.where(array < 0, array, array % 64) if array.dtype.kind == "i" else value


def _wrap_to_int32(value: Any) -> Any:
    """Return signed integers reduced to their lowest 32 bits; other values stay unchanged."""
    array = np.asarray(value)
    return array.astype(np.int32).astype(array.dtype) if array.dtype.kind == "i" else value


def _round_through(dtype: type[np.floating[Any]]) -> Values:
    """Return a function that rounds numbers to a floating-point type and converts them back."""

    def round_values(value: Any) -> Any:
        """Round real and integer numbers; other values stay unchanged."""
        array = np.asarray(value)
        return array.astype(dtype).astype(array.dtype) if array.dtype.kind in "if" else value

    return round_values


def _truncate(value: Any) -> Any:
    """Return real floating-point numbers without their fractions; other values stay unchanged."""
    array = np.asarray(value)
    return np.trunc(array) if array.dtype.kind == "f" else value


def _round_to_integer(value: Any) -> Any:
    """Return real floating-point numbers rounded to the nearest integer; other values stay unchanged."""
    array = np.asarray(value)
    return np.rint(array) if array.dtype.kind == "f" else value


def _every_case(case: BaselineCase) -> bool:
    """Return True: the mistake concerns every case."""
    return True


def _is_wide(case: BaselineCase) -> bool:
    """Return whether no tensor of the case has a type in `NARROW_FLOATS`."""
    return not NARROW_FLOATS & _all_types(case)


def _is_integral(case: BaselineCase) -> bool:
    """Return whether all arguments and results of the case that are tensors have integers or truth values."""
    return all(category(dtype) < 2 for dtype in _all_types(case))


def _takes_integers(case: BaselineCase) -> bool:
    """Return whether the case has tensor arguments, and all of them have integers or truth values."""
    types = {tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)}
    return bool(types) and all(category(dtype) < 2 for dtype in types)


def _all_types(case: BaselineCase) -> set[Dtype]:
    """Return the element types of all arguments and results of a case."""
    arguments = {tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)}
    return arguments | {entry.dtype for value in case.expected.values() for entry in expected_arrays(value)}


_MISTAKES: dict[str, tuple[Callable[[BaselineCase], bool], Values]] = {
    "reduced modulo 64": (_every_case, _keep_six_bits),
    "truncated to 32 bits": (_every_case, _wrap_to_int32),
    "converted to float32 and back": (_is_wide, _round_through(np.float32)),
    "converted to float64 and back": (_is_integral, _round_through(np.float64)),
    "truncated to integers": (_takes_integers, _truncate),
    "rounded to integers": (_takes_integers, _round_to_integer),
}
"""By the name of the mistake: whether it applies to a case, and the function that returns the wrong numbers."""


# Types


def _mixed_operands(case: BaselineCase) -> dict[str, BaselineTensor]:
    """Return the tensor arguments if their types differ, else nothing."""
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, BaselineTensor)}
    return tensors if len({tensor.dtype for tensor in tensors.values()}) > 1 else {}


def _skip_conversion(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the tensors and scalars without the conversion to the common or result type that the standard requires.

    Masks, which may have the type uint8, are still read as truth values.

    Returns:
        The arguments; None if there are no tensors except masks.
    """
    prototype = lookup(case.function)
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, BaselineTensor)}
    masks = {name for name, tensor in tensors.items() if is_mask(prototype, name, tensor.dtype)}
    numbers = {p.name: case.arguments[p.name] for p in prototype.arguments if issubclass(p.annotation, Scalar)}
    raw = {name: widen(tensor.values, tensor.dtype) for name, tensor in tensors.items() if name not in masks}
    return {**numbers, **raw} if raw else None


def _read_lowest_bit(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the masks in uint8 as truth values of their lowest bits; None if there are no such masks."""
    prototype = lookup(case.function)
    masks = {
        name: (value.values & 1).astype(bool)
        for name, value in case.arguments.items()
        if isinstance(value, BaselineTensor) and value.dtype is Dtype.uint8 and is_mask(prototype, name, value.dtype)
    }
    return masks or None


def _skip_integer_conversion(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the integer scalars without the conversion to an integer type that the standard requires."""
    plain = case.plain_arguments()
    numbers = {p.name: case.arguments[p.name] for p in lookup(case.function).numbers}
    return {
        name: number for name, number in numbers.items() if isinstance(number, int) and number != plain[name]
    } or None


def _round_converted_scalars(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the scalars with fractions rounded to integers, although the conversion to an integer type truncates.

    Returns:
        The changed scalars by name; None if no scalar changes.
    """
    if not _takes_integers(case):
        return None
    plain = case.plain_arguments()
    numbers = {p.name: case.arguments[p.name] for p in lookup(case.function).arguments if p.fact(Converted)}
    fractions = {name: number for name, number in numbers.items() if isinstance(number, float) and isfinite(number)}
    return {name: round(number) for name, number in fractions.items() if round(number) != plain[name]} or None


def _convert_to_first_type(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return all tensors in the type of the first one; None if their types are equal."""
    operands = _mixed_operands(case)
    if not operands:
        return None
    first_dtype = next(iter(operands.values())).dtype
    return {name: convert_array(tensor.values, first_dtype) for name, tensor in operands.items()}


def _convert_0d_operands(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the 0-d tensors converted to the common type of all tensors that have axes.

    A 0-d tensor is left out if the category of its type (such as floating-point) differs from that of the common type.
    Return None if no tensor remains, or if all tensors have the same type.
    """
    operands = _mixed_operands(case)
    common = [tensor.dtype for tensor in operands.values() if tensor.values.ndim]
    if not common:
        return None
    dtype = promoted(common)
    zero_dimensional = {name: tensor for name, tensor in operands.items() if not tensor.values.ndim}
    alike = {name: tensor for name, tensor in zero_dimensional.items() if category(tensor.dtype) == category(dtype)}
    return {name: convert_array(tensor.values, dtype) for name, tensor in alike.items()} or None


def _compute_in_standard_type(call: SimulatedCall) -> Effect:
    """Compute the results in the types that the standard infers, if the caller's tensors have others, and convert.

    Returns:
        `not_applicable` if the caller's types are the inferred types, or the function infers no type from tensors; else
        the effect of the recomputed results.
    """
    prototype, expected = call.prototype, call.case.expected
    if prototype.result is not caller_chosen and not any(map(tensors_in, call.case.arguments.values())):
        return Effect.not_applicable
    outputs = [
        result for result in prototype.results if result.role is Role.output and expected_arrays(expected[result.name])
    ]
    usual = {result.name: inferred_dtype(prototype, result, call.case) for result in outputs}
    if all(entry.dtype is usual[name] for name in usual for entry in expected_arrays(expected[name])):
        return Effect.not_applicable
    call.dtypes = usual
    return call.recompute()
