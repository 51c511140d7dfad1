"""Calls of a vendor's operators with NumPy arrays, which several measurements of its arithmetic use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from diopi_impl import BaseVendor
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import ProbedOperator, ProbeFailedError
from lib_rt import Context
from lib_rt.dtypes import Array, from_numpy


@final
@dataclass(frozen=True)
class Operators:
    """The operators of a vendor; `operators["diopiAdd"]` returns the operator with this name.

    Attributes:
        vendor: the vendor.
        context: the context in which all operators are called.
    """

    vendor: BaseVendor
    context: Context

    def __getitem__(self, name: str) -> ProbedOperator:
        """Return an operator; raise ProbeFailedError if the vendor does not implement it."""
        if not self.vendor.has(name):
            raise ProbeFailedError("not implemented")
        return ProbedOperator(self.vendor, self.context, name)

    def multiply(self, a: Array, b: Array) -> Array:
        """Return the matrix product of two matrices by diopiMm."""
        return self["diopiMm"](a, b, shape=(len(a), b.shape[1]), dtype=from_numpy(a.dtype))

    def convolve(self, x: Array, w: Array, *, stride: int = 1, padding: int = 0) -> Array:
        """Return the convolution of images with kernels by diopiConvolution2d.

        Args:
            x: the images, of shape (n, c, h, w).
            w: the square kernels, of shape (o, c, k, k).
            stride: the stride along both axes.
            padding: the number of zeros on each side of both axes.

        Returns:
            The results, of shape (n, o, rows, columns).
        """
        lengths = [(size + 2 * padding - w.shape[-1]) // stride + 1 for size in x.shape[2:]]
        geometry = ((stride, stride), (padding, padding), (1, 1), 1)
        return self["diopiConvolution2d"](
            x, w, None, *geometry, shape=(len(x), len(w), *lengths), dtype=from_numpy(x.dtype)
        )

    def sum_rows(self, rows: Array) -> Array:
        """Return the sum of each row by diopiSum."""
        return self["diopiSum"](rows, (1,), shape=(len(rows),), dtype=from_numpy(rows.dtype))

    def attend(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        """Compute attention by diopiFlashAttention with a scale of 1, without mask and dropout.

        Args:
            q: the queries, of shape (batch, rows, heads, size).
            k: the keys, of the same shape except for the number of rows.
            v: the values, of the same shape as the keys.

        Returns:
            The attention, of the shape of the queries, and the logsumexp of the scores, of shape (batch, heads, rows).
        """
        attributes: Sequence[Any] = (None, 0.0, 1.0, False, -1, -1)
        results = [(q.shape, from_numpy(q.dtype)), ((q.shape[0], q.shape[2], q.shape[1]), Dtype.float32)]
        attention, logsumexp = self["diopiFlashAttention"].compute_results(None, q, k, v, *attributes, results=results)
        return attention, logsumexp


def random_normal(seed: int, *shape: int) -> Array:
    """Return float32 numbers of the standard normal distribution that depend only on the seed and the shape."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
