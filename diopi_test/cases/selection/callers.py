"""Cases that call a function as known programs do: with other ranks, NULL, or empty lists.

The prototype lists these call forms (`diopi_proto.callers`). Each form is applied to one of the function's own cases
per element type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.callers import CallForm
from diopi_proto.parameters import Size
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOf, TensorSpec, Values
from diopi_test.cases.layouts import contiguous

Sizes = dict[str, int]
"""By name, the sizes that the attributes and tensors of a case determine. Call forms use these names in shapes."""


def caller_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield one case per call form and element type.

    The case is derived from the first of `cases` that the form fits and in which no named size is 1, because a size of
    1 cannot reveal a mistaken axis. If there is no such case, the first case that the form fits is used.

    Args:
        prototype: The prototype with the call forms.
        cases: The function's own cases.

    Yields:
        The derived cases, of the class `callers`.
    """
    for form in prototype.call_forms:
        formed: dict[Dtype, tuple[bool, Case]] = {}
        for case in cases:
            applied = _apply_form(prototype, form, case)
            if applied is not None and (case.dtype not in formed or (applied[0] and not formed[case.dtype][0])):
                formed[case.dtype] = applied
        yield from (case for _, case in formed.values())


def _apply_form(prototype: Prototype, form: CallForm, case: Case) -> tuple[bool, Case] | None:
    """Return a case in a call form, preceded by whether no named size is 1; None if the form does not fit the case.

    A form only fits cases of the class `basic` in which the tensors that it reshapes are contiguous and have elements.
    """
    specs = [case.arguments[name] for name in form.shapes]
    if case.case_class is not CaseClass.basic or not all(_is_usual(spec) for spec in specs):
        return None
    sizes: Sizes = {name: value for name, value in case.arguments.items() if type(value) is int}
    changed: dict[str, Any] = {
        name: () if issubclass(prototype.parameter(name).annotation, Size) else None for name in form.missing
    }
    for name, named_shape in form.shapes.items():
        shape = _resolve_shape(case.arguments[name].shape, named_shape, sizes)
        if shape is None:
            return None
        changed[name] = _reshaped(case.arguments[name], shape)
    named = {size for named_shape in form.shapes.values() for size in named_shape if isinstance(size, str)}
    label = f"{case.label.partition('-')[0]}-called-by-{form.name}"
    arguments = {**case.arguments, **changed}
    formed = replace(
        case,
        label=label,
        arguments=arguments,
        smoke=True,
        exact=False,
        case_class=CaseClass.callers,
        non_discriminating="",
    )
    return all(_resolve_size(size, sizes) != 1 for size in named), formed


def _is_usual(spec: Any) -> bool:
    """Return whether an argument is a contiguous tensor with elements."""
    return isinstance(spec, TensorSpec) and spec.layout is contiguous and 0 not in spec.shape


def _resolve_shape(shape: tuple[int, ...], named_shape: Sequence[int | str], sizes: Sizes) -> tuple[int, ...] | None:
    """Return the shape that a call form requires for a tensor.

    If both shapes have the same rank, a name stands for the size at its position. Otherwise, one name may be unknown,
    and stands for the number of remaining elements.

    Args:
        shape: The shape of the tensor in the original case.
        named_shape: The shape in the form: numbers, names of sizes, and products of names, such as "heads·width".
        sizes: The sizes by name. The function adds names whose sizes it determines.

    Returns:
        The required shape; None if the tensor cannot have it.
    """
    if len(shape) == len(named_shape):
        for size, name in zip(shape, named_shape, strict=True):
            if isinstance(name, str) and _resolve_size(name, sizes) is None:
                sizes[name] = size
            if isinstance(name, str) and _resolve_size(name, sizes) != size:
                return None
        return tuple(size if isinstance(name, str) else name for size, name in zip(shape, named_shape, strict=True))
    unknown = [size for size in named_shape if isinstance(size, str) and _resolve_size(size, sizes) is None]
    if len(unknown) > 1:
        return None
    for name in unknown:
        sizes[name] = prod(shape) // prod(
            known for size in named_shape if (known := _resolve_size(size, sizes)) is not None
        )
    new_shape = tuple(known for size in named_shape if (known := _resolve_size(size, sizes)) is not None)
    return new_shape if prod(new_shape) == prod(shape) or _broadcasts_to(shape, new_shape) else None


def _resolve_size(size: int | str, sizes: Sizes) -> int | None:
    """Return the value of a number, a name, or a product of names in a form; None if a name is unknown."""
    if isinstance(size, int) or size in sizes:
        return size if isinstance(size, int) else sizes[size]
    factors = [sizes.get(name) for name in size.split("·")]
    return None if None in factors else prod(factor for factor in factors if factor is not None)


def _broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a shape can be broadcast to the target shape."""
    aligned = shape[len(shape) - min(len(shape), len(target)) :]
    return len(shape) <= len(target) and all(
        length in (1, target_length)
        for length, target_length in zip(aligned, target[len(target) - len(aligned) :], strict=True)
    )


def _reshaped(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """Return the tensor with another shape. The values of `compute` are computed in the old shape, then reshaped."""
    compute = spec.compute
    if compute is not None and not isinstance(compute, ResultOf):
        compute = Reshaped(compute, spec.shape, shape)
    return replace(spec, shape=shape, compute=compute)


@final
@dataclass(frozen=True, eq=False)
class Reshaped:
    """A value of `TensorSpec.compute` that computes values in one shape and reshapes or broadcasts them to another.

    Attributes:
        compute: Returns the values for the values of the earlier arguments.
        shape: The shape of these values.
        wanted: The new shape.
    """

    compute: Any
    shape: tuple[int, ...]
    wanted: tuple[int, ...]

    def __call__(self, values: Values) -> NDArray[Any]:
        """Return the computed values in the wanted shape."""
        computed = np.broadcast_to(np.asarray(self.compute(values)), self.shape)
        fits = prod(self.shape) == prod(self.wanted)
        return computed.reshape(self.wanted) if fits else np.broadcast_to(computed, self.wanted)
