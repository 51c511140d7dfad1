"""Sums of products, such as matrix products and convolutions, with their terms.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.oracle.reference import PartlySpecified, WithTerms
from diopi_test.oracle.reference.sums import accumulation_terms
from lib_rt.formats import format_of, is_inexact

Array = NDArray[Any]


def sum_products(sums: Callable[[Array, Array], Array], a: Array, b: Array) -> WithTerms:
    """Return `sums(a, b)` with the terms of its sums.

    Args:
        sums: A bilinear function. Each element of its result is a sum of n products of an element of `a` and an
            element of `b`; evaluating the function on arrays of ones determines n.
        a: The first operand.
        b: The second operand.

    Returns:
        The result with the terms of sums of n addends (`accumulation_terms`).
    """
    value, count = sums(a, b), sums(np.ones(a.shape), np.ones(b.shape))
    magnitudes = sums(_magnitude(a), _magnitude(b))
    squares = sums(_magnitude(a) ** 2, _magnitude(b) ** 2)
    return WithTerms(value, accumulation_terms(count, magnitudes, squares, value))


def add_rounded(product: WithTerms, addend: Any) -> WithTerms:
    """Return `product + addend`, with |addend| as a `stored` term: the product may be stored before it is added."""
    return WithTerms(product.value + addend, product.terms, np.abs(addend))


def scale_result(factor: Any, result: WithTerms) -> WithTerms:
    """Return a result and its terms multiplied by an exact factor, which broadcasts to the result."""
    return WithTerms(factor * result.value, abs(factor) * result.terms)


def sum_to_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """Return the sums of `array` over the axes along which `shape` was broadcast to its shape.

    This is the gradient of broadcasting. The result has the shape `shape`.
    """
    added = tuple(range(array.ndim - len(shape)))
    stretched = tuple(i - len(shape) for i, length in enumerate(shape) if length == 1)
    summed: Array = array.sum(added).sum(stretched, keepdims=True)
    return summed.reshape(shape)


def multiply_in_any_order(multiply: Callable[[Callable[[Array], Array]], Array], dtype: Dtype | None) -> Any:
    """Return products of many factors, unspecified where a partial product may leave the range of `dtype`.

    Such a product depends on the order of multiplication: a partial product overflows or underflows, and further
    factors lead back into the range.

    Args:
        multiply: Applies the function that it receives to each factor, and returns the products.
        dtype: The type of the partial products. If it is an integer type, bool or None, every product is specified.

    Returns:
        The products as an array; with a floating-point or complex `dtype`, as `PartlySpecified`.
    """
    value = multiply(lambda x: x)
    if dtype is None or not is_inexact(dtype):
        return value
    number_format = format_of(dtype)

    def multiply_selected(is_selected: Callable[[Array], Array], factor: Callable[[Array], Any]) -> Array:
        """Multiply `factor(|x|)` for the selected x, and 1 for all others."""
        return multiply(lambda x: np.where(is_selected(np.abs(x)), factor(np.abs(x)), 1.0))

    overflows = (
        multiply_selected(lambda size: (size > 1) & np.isfinite(size), lambda size: size) >= number_format.overflow
    )
    underflows = multiply_selected(lambda size: (size > 0) & (size < 1), lambda size: size) < number_format.tiny
    can_shrink = multiply_selected(lambda size: size < 1, lambda _: 0.5) < 1
    can_grow = multiply_selected(lambda size: size > 1, lambda _: 2.0) > 1
    is_unspecified = ((overflows & can_shrink) | (underflows & can_grow)) & ~np.isnan(value)
    return PartlySpecified(value, ~is_unspecified)


def _magnitude(array: Array) -> Array:
    """Return the absolute values as float64."""
    return np.abs(array).astype(np.float64)
