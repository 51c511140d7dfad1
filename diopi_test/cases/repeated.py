"""Cases that differ from another case in one respect, which reveals state that the other call leaves behind.

They follow the function's own cases, whose calls come earlier in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from diopi_proto.dtypes import promoted
from diopi_proto.parameters import Role, Scalar
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.callers import caller_cases
from diopi_test.cases.domains import Domain, integer_values
from diopi_test.cases.layouts import different_layout, layout_named
from diopi_test.cases.model import Case, TensorSpec, tensor_specs
from diopi_test.cases.numbers import untested_number_cases


def repeated_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases that follow a function's own `cases`."""
    for maker in MAKERS:
        yield from maker(prototype, cases)


def change_data(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield a smoke case with other data, and with another layout of what it updates in place."""
    if prototype.guarantee == "random":
        return  # two calls with equal arguments already draw different numbers
    basic = [case for case in cases if case.smoke and _has_elements(case)]
    chosen = next((case for case in basic if case.dtype is Dtype.float32), next(iter(basic), None))
    if chosen is not None:
        updated = [p.name for p in prototype.parameters if p.role is Role.inout]
        arguments = {n: _change_layout(v) if n in updated else v for n, v in chosen.arguments.items()}
        yield replace(chosen, label=f"{chosen.label}-again", arguments=arguments, smoke=False)


def _has_elements(case: Case) -> bool:
    tensors = [tensor for name, value in case.arguments.items() for tensor in tensor_specs(value)]
    return bool(tensors) and all(0 not in tensor.shape for tensor in tensors)


def _change_layout(value: Any) -> Any:
    if isinstance(value, list):
        return [_change_layout(entry) for entry in value]
    if not isinstance(value, TensorSpec):
        return value
    return replace(value, layout=layout_named(different_layout(value.layout.__name__, value.shape)))


UNUSED_SHAPE = (2, 11)
"""A shape that no other case has: the first call with it is one of these."""

FACTORS = frozenset({"alpha", "beta", "value"})
"""Scalars that do not affect the result's type."""

NEUTRAL = {"diopiAdd": 0, "diopiMul": 1, "diopiBitwiseAnd": 1, "diopiBitwiseOr": 0}
"""By function of two bools, the number that leaves the other operand unchanged."""


def change_scalar_kinds(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the same numbers as floats and as integers, or as integers and bools, which determine the result's type.

    The kind with the wider result comes first: the narrower result cannot represent what the first call leaves behind.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases.
    """
    names = [p.name for p in prototype.arguments if issubclass(p.annotation, Scalar) and p.name not in FACTORS]
    lifts = prototype.family == "arithmetic" and prototype.result is promoted and not prototype.is_inplace
    if names and lifts and Dtype.float32 in prototype.dtypes:
        case = _first_integer_case(cases, Dtype.int32, names)
        numbers = {name: case.arguments[name] for name in names}
        domain = None if prototype.base.startswith(("diopiPow", "diopiClamp")) else integer_values(1, 100)
        yield from _cases_in_both_kinds(case, numbers, (float, int), domain)
    if names and lifts and prototype.base in NEUTRAL:
        numbers = dict.fromkeys(names, NEUTRAL[prototype.base])
        yield from _cases_in_both_kinds(_first_integer_case(cases, Dtype.bool, names), numbers, (int, bool))


def _cases_in_both_kinds(
    case: Case, numbers: Mapping[str, int], kinds: Sequence[type], domain: Domain | None = None
) -> Iterator[Case]:
    """Yield a case with numbers of one kind and of the other, and tensors of an unused shape."""
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, TensorSpec)}
    reshaped = {n: replace(spec, shape=UNUSED_SHAPE, domain=domain or spec.domain) for n, spec in tensors.items()}
    for kind in kinds:
        arguments = {**case.arguments, **reshaped, **{name: kind(number) for name, number in numbers.items()}}
        yield replace(case, label=f"{case.dtype.name}-number-as-{kind.__name__}", arguments=arguments, smoke=False)


def _first_integer_case(cases: Sequence[Case], dtype: Dtype, names: Sequence[str]) -> Case:
    """Return the first case whose tensors all have the type `dtype` and whose named arguments are integers."""
    return next(case for case in cases if case.dtype is dtype and _is_integer_case(case, names))


def _is_integer_case(case: Case, names: Sequence[str]) -> bool:
    """Return whether all tensors have the case's type and the named arguments are integers."""
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    results = [override for override in case.results.values() if override is not None]
    usual = all(tensor.dtype is case.dtype for tensor in tensors) and not any(override.dtype for override in results)
    return usual and all(type(case.arguments[name]) is int for name in names)


SWAPPED = {"diopiMm": ("input", "mat2"), "diopiBmm": ("input", "mat2"), "diopiMatmul": ("input", "other")}
"""Functions whose first two tensors can change places if their shapes do too."""


def swap_tensors(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the products of a tall and a wide matrix in both orders."""
    names = SWAPPED.get(prototype.name, ())
    for label, rows, columns in (("tall-by-wide", 7, 3), ("wide-by-tall", 3, 7)) if names else ():
        batch = (2,) if prototype.name == "diopiBmm" else ()
        shapes = (*batch, rows, columns), (*batch, columns, rows)
        arguments = {name: TensorSpec(shape, Dtype.float32) for name, shape in zip(names, shapes, strict=True)}
        yield Case(f"float32-{label}", Dtype.float32, arguments)


ATTRIBUTE_CHANGES: dict[str, tuple[str, Sequence[Mapping[str, Any]]]] = {
    "diopiEmbeddingBackward": ("float32-vector", [{"num_weights": 7}]),
    "diopiIm2Col": ("float32-plain", [{"kernel_size": (2, 3)}, {"dilation": (1, 2)}]),
    "diopiIndexSelectBackward": ("float32-columns", [{"input_sizes": (4, 8)}]),
    "diopiMultinomial": ("float32-put-aside", [{"replacement": True}, {"num_samples": 3}]),
    "diopiNLLLossV2Backward": ("float32-none", [{"ignore_index": 2}]),
    "diopiRepeat": ("float32-matrix", [{"repeats_size": (2, 3)}]),
    "diopiSlice": ("float32-columns", [{"step": 1}, {"end": 4}]),
    "diopiStack": ("float32-front", [{"dim": 1}]),
    "diopiUnfold": ("float32-overlapping", [{"step": 1}, {"size": 2}, {"dim": 1, "size": 2}]),
    "diopiUnfoldBackward": ("float32-cube", [{"step": 3}, {"step": 3, "input_sizes": (6, 7, 6)}]),
    "diopiUpsampleLinear": ("float32-up-bilinear", [{"size": (3, 7)}]),
    "diopiUpsampleLinearBackward": ("float32-up-bilinear", [{"in_size": (1, 2, 3, 2)}]),
    "diopiUpsampleNearest": ("float32-up", [{"size": (3, 7)}]),
    "diopiUpsampleNearestBackward": ("float32-up", [{"in_size": (1, 2, 3, 2)}]),
}
"""The label of a case, and other attributes that its tensors allow and that no other case has."""


def change_attributes(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield a case with other attributes and the same tensors."""
    label, changes = ATTRIBUTE_CHANGES.get(prototype.name, ("", ()))
    for change in changes:
        case = next(case for case in cases if case.label == label)
        arguments = {**case.arguments, **change}
        yield replace(case, label=f"{label}-other-{'-and-'.join(change)}", arguments=arguments, smoke=False)


MAKERS = (
    change_data,
    change_scalar_kinds,
    swap_tensors,
    change_attributes,
    untested_number_cases,
    caller_cases,
)
