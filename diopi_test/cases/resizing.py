"""Derive a case with other sizes: a size such as 5 is replaced in all tensors, and in attributes that repeat it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOf, ResultOverride, TensorSpec, Values


class ResizedAttributes(StrEnum):
    """The attributes in which sizes are replaced in addition to the shapes of tensors."""

    none = "none"
    """No attributes."""
    shapes = "shapes"
    """Tuples that equal the last sizes of a tensor, such as the normalized shape of a layer norm."""
    numbers = "numbers"
    """All integers and all tuples of integers."""


def replace_sizes(case: Case, sizes: Mapping[int, int], label: str, attributes: ResizedAttributes) -> Case:
    """Return a case with other sizes.

    Args:
        case: The original case.
        sizes: The new size by original size: `{5: 16}` replaces each axis of 5 elements by an axis of 16 elements.
        label: The label of the new case.
        attributes: The attributes in which sizes are also replaced.

    Returns:
        The new case. It is not a smoke case, and the suite derives its class.
    """

    def change(shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(sizes.get(size, size) for size in shape)

    def change_attribute(value: Any) -> Any:
        if attributes is ResizedAttributes.numbers and type(value) is int:
            return sizes.get(value, value)
        is_list = attributes is ResizedAttributes.numbers and _is_list_of_integers(value)
        is_shape = attributes is ResizedAttributes.shapes and repeats_sizes(value, case)
        return change(value) if is_list or is_shape else value

    def change_result(result: ResultOverride | None) -> ResultOverride | None:
        return result if result is None or result.shape is None else replace(result, shape=change(result.shape))

    tensors_changed = case.map_tensors(lambda _, spec: _resize(spec, change(spec.shape)))
    return replace(
        case,
        label=label,
        arguments={name: change_attribute(value) for name, value in tensors_changed.items()},
        results={name: change_result(result) for name, result in case.results.items()},
        smoke=False,
        case_class=CaseClass.basic,
    )


def _resize(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """Return a tensor with another shape. If the values of a bool tensor are computed, they are repeated or cut."""
    compute = spec.compute
    if compute is not None and not isinstance(compute, ResultOf) and spec.dtype is Dtype.bool and shape != spec.shape:
        compute = RepeatedMask(compute, shape)
    return replace(spec, shape=shape, compute=compute)


@final
@dataclass(frozen=True, eq=False)
class RepeatedMask:
    """A value of `TensorSpec.compute` that computes a mask, and repeats or cuts its elements to fill another shape.

    Attributes:
        compute: Returns the original mask for the values of the earlier arguments.
        shape: The new shape.
    """

    compute: Callable[[Values], Any]
    shape: tuple[int, ...]

    def __call__(self, values: Values) -> NDArray[Any]:
        """Return the mask in the new shape for the values of the earlier arguments."""
        return np.resize(np.asarray(self.compute(values)), self.shape)


def repeats_sizes(value: Any, case: Case) -> bool:
    """Return whether an attribute is a tuple that equals the last sizes of a tensor of the case."""
    return isinstance(value, tuple) and bool(value) and any(shape[-len(value) :] == value for shape in case.shapes)


def _is_list_of_integers(value: Any) -> bool:
    """Return whether an attribute is a tuple of integers."""
    return isinstance(value, tuple) and all(type(entry) is int for entry in value)
