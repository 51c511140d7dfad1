"""Calls that differ from another one in a single thing, so that what the other left behind shows.

They come after a function's own cases, whose calls are the earlier ones in every run.
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
from diopi_test.cases.numbers import with_numbers_untried


def repeated_cases(prototype: Prototype, own: Sequence[Case]) -> Iterator[Case]:
    """The cases that follow a function's `own` ones."""
    for maker in MAKERS:
        yield from maker(prototype, own)


def with_other_data(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """A basic case with other data, and what it updates in place in another layout; nothing else differs."""
    if prototype.guarantee == "random":
        return  # two calls with equal arguments draw different numbers already
    basic = [case for case in cases if case.smoke and _has_elements(case)]
    chosen = next((case for case in basic if case.dtype is Dtype.float32), next(iter(basic), None))
    if chosen is not None:
        updated = [p.name for p in prototype.parameters if p.role is Role.inout]
        arguments = {n: _relaid(v) if n in updated else v for n, v in chosen.arguments.items()}
        yield replace(chosen, label=f"{chosen.label}-again", arguments=arguments, smoke=False)


def _has_elements(case: Case) -> bool:
    tensors = [tensor for name, value in case.arguments.items() for tensor in tensor_specs(value)]
    return bool(tensors) and all(0 not in tensor.shape for tensor in tensors)


def _relaid(value: Any) -> Any:
    if isinstance(value, list):
        return [_relaid(entry) for entry in value]
    if not isinstance(value, TensorSpec):
        return value
    return replace(value, layout=layout_named(different_layout(value.layout.__name__, value.shape)))


UNUSED = (2, 11)
"""A shape that no other case has: the first call with it is one of these."""

FACTORS = frozenset({"alpha", "beta", "value"})
"""Scalars that no result's type follows from."""

NEUTRAL = {"diopiAdd": 0, "diopiMul": 1, "diopiBitwiseAnd": 1, "diopiBitwiseOr": 0}
"""By function of two truth values, the number beside which it gives the other operand."""


def with_scalars_of_other_kinds(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """The same numbers as floats and as integers, or as integers and truth values, which decide the result's type.

    The kind that makes the wider result comes first: what its call leaves behind can't be held by the other's result.
    """
    names = [p.name for p in prototype.arguments if issubclass(p.annotation, Scalar) and p.name not in FACTORS]
    lifts = prototype.family == "arithmetic" and prototype.result is promoted and not prototype.is_inplace
    if names and lifts and Dtype.float32 in prototype.dtypes:
        case = _of_integers(cases, Dtype.int32, names)
        numbers = {name: case.arguments[name] for name in names}
        domain = None if prototype.base.startswith(("diopiPow", "diopiClamp")) else integer_values(1, 100)
        yield from _in_both_kinds(case, numbers, (float, int), domain)
    if names and lifts and prototype.base in NEUTRAL:
        numbers = dict.fromkeys(names, NEUTRAL[prototype.base])
        yield from _in_both_kinds(_of_integers(cases, Dtype.bool, names), numbers, (int, bool))


def _in_both_kinds(
    case: Case, numbers: Mapping[str, int], kinds: Sequence[type], domain: Domain | None = None
) -> Iterator[Case]:
    """A case with numbers of one kind and of the other, and tensors of a shape that is not used yet."""
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, TensorSpec)}
    reshaped = {n: replace(one, shape=UNUSED, domain=domain or one.domain) for n, one in tensors.items()}
    for kind in kinds:
        arguments = {**case.arguments, **reshaped, **{name: kind(number) for name, number in numbers.items()}}
        yield replace(case, label=f"{case.dtype.name}-number-as-{kind.__name__}", arguments=arguments, smoke=False)


def _of_integers(cases: Sequence[Case], dtype: Dtype, names: Sequence[str]) -> Case:
    """The first case all tensors of which are of a type, and the named arguments integers."""
    return next(case for case in cases if case.dtype is dtype and _is_of_integers(case, names))


def _is_of_integers(case: Case, names: Sequence[str]) -> bool:
    """Whether all tensors are of the case's type and these arguments are integers."""
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    results = [override for override in case.results.values() if override is not None]
    usual = all(tensor.dtype is case.dtype for tensor in tensors) and not any(override.dtype for override in results)
    return usual and all(type(case.arguments[name]) is int for name in names)


SWAPPED = {"diopiMm": ("input", "mat2"), "diopiBmm": ("input", "mat2"), "diopiMatmul": ("input", "other")}
"""Functions whose first two tensors may change places, if their shapes do too."""


def with_tensors_in_the_other_order(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Two products of a tall and a wide matrix: the same shapes, one the other way round."""
    names = SWAPPED.get(prototype.name, ())
    for label, rows, columns in (("tall-by-wide", 7, 3), ("wide-by-tall", 3, 7)) if names else ():
        batch = (2,) if prototype.name == "diopiBmm" else ()
        shapes = (*batch, rows, columns), (*batch, columns, rows)
        arguments = {name: TensorSpec(shape, Dtype.float32) for name, shape in zip(names, shapes, strict=True)}
        yield Case(f"float32-{label}", Dtype.float32, arguments)


ALIKE: dict[str, tuple[str, Sequence[Mapping[str, Any]]]] = {
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
"""The label of a case, and attributes that its tensors may have as well and that no other case gives them."""


def with_other_attributes(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """A case with other attributes and the same tensors."""
    label, changes = ALIKE.get(prototype.name, ("", ()))
    for change in changes:
        case = next(case for case in cases if case.label == label)
        arguments = {**case.arguments, **change}
        yield replace(case, label=f"{label}-other-{'-and-'.join(change)}", arguments=arguments, smoke=False)


MAKERS = (
    with_other_data,
    with_scalars_of_other_kinds,
    with_tensors_in_the_other_order,
    with_other_attributes,
    with_numbers_untried,
    caller_cases,
)
