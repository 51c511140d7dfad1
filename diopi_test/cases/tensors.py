"""Tensors that cases have as arguments: fixed values, positions and masks."""

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
    """Return a tensor of zeros, by default of the element type under test: for results that the call adds to."""
    return tensor(*shape, dtype=dtype, layout=layout, compute=lambda _: 0)


def derive_single_tensor(domain: Domain = any_value, name: str = "input") -> Derive[Any]:
    """Return a function that derives a single tensor argument with the template's sizes as its shape."""
    return lambda template, dtype: {name: tensor(*template.sizes, domain=domain, layout=template.layout)}


@final
@dataclass(frozen=True, eq=False)
class Literal:
    """Computes fixed values, independent of the other arguments."""

    array: NDArray[Any]

    def __call__(self, values: Values) -> NDArray[Any]:
        """Return the fixed values."""
        return self.array


def literal(values: Any, dtype: Dtype = Dtype.int64, layout: Layout = contiguous) -> TensorSpec:
    """Return a tensor with exactly these values."""
    array = np.array(values)
    return TensorSpec(array.shape, dtype, layout=layout, compute=Literal(array))


def positions(
    *shape: int,
    below: int,
    low: int = 0,
    distinct_along: int | None = None,
    dtype: Dtype = Dtype.int64,
    layout: Layout = contiguous,
) -> TensorSpec:
    """Return a tensor of random positions in [low, below).

    Args:
        *shape: The shape of the tensor.
        below: The end of the positions.
        low: The smallest position.
        distinct_along: The axis along which no position is repeated; None allows repetitions.
        dtype: The element type.
        layout: The layout.

    Returns:
        The tensor.
    """
    if distinct_along is None:
        return TensorSpec(shape, dtype, integer_values(low, below - 1), layout=layout)
    axis = distinct_along % len(shape)

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        slices = count // max(shape[axis], 1)
        rows = rng.permuted(np.tile(np.arange(low, below), (slices, 1)), axis=1)[:, : shape[axis]]
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
    """Return a mask.

    Args:
        *shape: The shape of the mask.
        period: The mask is true at one element of this many; uint8 masks also have true values other than 1.
        fill: The value of all elements instead.
        dtype: The element type.
        layout: The layout.

    Returns:
        The mask.
    """
    if fill is not None:
        return literal(np.full(shape, fill), dtype, layout)
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return literal(np.where(numbers % period == 1, 1 + numbers % 2 * 2, 0), dtype, layout)
