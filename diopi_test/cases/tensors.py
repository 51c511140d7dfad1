"""Frequent tensor arguments of cases: fixed values, positions and masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec, Values
from diopi_test.cases.domains import Domain, any_value, integer_values
from diopi_test.cases.layouts import Layout, contiguous
from diopi_test.cases.template import Derive, TensorTemplate, tensor


def zeros(*shape: int, dtype: Dtype | None = None, layout: Layout = contiguous) -> TensorTemplate:
    """Return a tensor of zeros, for example for a result to which the call adds.

    Args:
        *shape: The shape.
        dtype: The element type; None for the type under test.
        layout: The layout.

    Returns:
        The tensor.
    """
    return tensor(*shape, dtype=dtype, layout=layout, compute=lambda _: 0)


def derive_single_tensor(domain: Domain = any_value, name: str = "input") -> Derive[Any]:
    """Return a function for the parameter `derive` of `register`: it derives one tensor argument from a template.

    Args:
        domain: The domain of the tensor.
        name: The name of the argument.

    Returns:
        The function. The argument has the template's `sizes` as its shape, and the template's layout.
    """
    return lambda template, dtype: {name: tensor(*template.sizes, domain=domain, layout=template.layout)}


@final
@dataclass(frozen=True, eq=False)
class Literal:
    """A value of `TensorSpec.compute` that returns a fixed array, whatever the other arguments are."""

    array: NDArray[Any]

    def __call__(self, values: Values) -> NDArray[Any]:
        """Return the fixed array; `values`, the earlier arguments, are not used."""
        return self.array


def literal(values: Any, dtype: Dtype = Dtype.int64, layout: Layout = contiguous) -> TensorSpec:
    """Return a tensor whose shape and values are those of `values`, a (nested) sequence or an array."""
    array = np.array(values)
    return TensorSpec(array.shape, dtype, layout=layout, compute=Literal(array))


def positions(
    *shape: int,
    end: int,
    low: int = 0,
    distinct_along: int | None = None,
    dtype: Dtype = Dtype.int64,
    layout: Layout = contiguous,
) -> TensorSpec:
    """Return a tensor of random positions in [low, end).

    Args:
        *shape: The shape of the tensor.
        end: The end of the range, which is not included.
        low: The smallest position.
        distinct_along: The axis along which no position is repeated; None allows repetitions. The axis must not be
            longer than the range.
        dtype: The element type.
        layout: The layout.

    Returns:
        The tensor.
    """
    if distinct_along is None:
        return TensorSpec(shape, dtype, integer_values(low, end - 1), layout=layout)
    axis = distinct_along % len(shape)

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        slices = count // max(shape[axis], 1)
        rows = rng.permuted(np.tile(np.arange(low, end), (slices, 1)), axis=1)[:, : shape[axis]]
        other_lengths = [length for i, length in enumerate(shape) if i != axis]
        return np.moveaxis(rows.reshape(*other_lengths, shape[axis]), -1, axis).reshape(-1)

    return TensorSpec(shape, dtype, draw, layout=layout)


def mask(
    *shape: int,
    period: int = 3,
    fill: bool | None = None,
    dtype: Dtype = Dtype.bool,
    layout: Layout = contiguous,
) -> TensorSpec:
    """Return a mask with fixed elements.

    Args:
        *shape: The shape of the mask.
        period: The elements 1, 1 + period, 1 + 2·period, … in row-major order are true. In integer masks, true elements
            are 1 or 3.
        fill: The value of all elements; None to use `period`.
        dtype: The element type.
        layout: The layout.

    Returns:
        The mask.
    """
    if fill is not None:
        return literal(np.full(shape, fill), dtype, layout)
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return literal(np.where(numbers % period == 1, 1 + numbers % 2 * 2, 0), dtype, layout)
