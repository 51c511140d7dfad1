"""Sums of products, such as matrix products and convolutions, with the size of the terms that may cancel in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.formats import format_of, is_inexact
from diopi_test.oracle.reference import PartlySpecified, WithTerms
from diopi_test.oracle.reference.sums import accumulated

Array = NDArray[Any]


def with_terms(sums: Callable[[Array, Array], Array], a: Array, b: Array) -> WithTerms:
    """`sums(a, b)`, bilinear, every element of it a sum of n products of an element of `a` and one of `b`.

    Its terms are those of a sum of n values; n is found by summing ones.
    """
    value, count = sums(a, b), sums(np.ones(a.shape), np.ones(b.shape))
    magnitudes = sums(_magnitude(a), _magnitude(b))
    squares = sums(_magnitude(a) ** 2, _magnitude(b) ** 2)
    return WithTerms(value, accumulated(count, magnitudes, squares, value))


def plus(product: WithTerms, addend: Any) -> WithTerms:
    """`product` with something added, whose rounding error counts as it is."""
    return WithTerms(product.value + addend, product.terms, np.abs(addend))


def times(factor: float, product: WithTerms) -> WithTerms:
    """`product` scaled by a number."""
    return WithTerms(factor * product.value, abs(factor) * product.terms)


def sum_to(array: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of broadcasting `shape` to the shape of `array`: sums over the axes that were added or stretched."""
    added = tuple(range(array.ndim - len(shape)))
    stretched = tuple(i - len(shape) for i, length in enumerate(shape) if length == 1)
    summed: Array = array.sum(added).sum(stretched, keepdims=True)
    return summed.reshape(shape)


def in_any_order(multiply: Callable[[Callable[[Array], Array]], Array], dtype: Dtype | None) -> Any:
    """Products of many factors, open where a product of some of them leaves the range of `dtype` and others lead back.

    `multiply` gives the products of what a function makes of the factors. Nothing is open in types that wrap around.
    """
    value = multiply(lambda x: x)
    if dtype is None or not is_inexact(dtype):
        return value
    form = format_of(dtype)

    def of_those(which: Callable[[Array], Array], factor: Callable[[Array], Any]) -> Array:
        return multiply(lambda x: np.where(which(np.abs(x)), factor(np.abs(x)), 1.0))

    overflows = of_those(lambda size: (size > 1) & np.isfinite(size), lambda size: size) >= form.overflow
    underflows = of_those(lambda size: (size > 0) & (size < 1), lambda size: size) < form.tiny
    some_shrink = of_those(lambda size: size < 1, lambda _: 0.5) < 1
    some_grow = of_those(lambda size: size > 1, lambda _: 2.0) > 1
    is_open = ((overflows & some_shrink) | (underflows & some_grow)) & ~np.isnan(value)
    return PartlySpecified(value, ~is_open)


def _magnitude(array: Array) -> Array:
    return np.abs(array).astype(np.float64)
