"""Vector norms, normalization of vectors to norm 1, and their gradients.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: PyTorch's torch.linalg.vector_norm and torch.nn.functional.normalize.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, WithTerms, reference
from diopi_test.oracle.reference.sums import SHARED_ERROR_SIGMAS, norm_terms, slice_size, sum_terms

Array = NDArray[Any]
Axes = tuple[int, ...]
"""The axes of a norm."""


def _norm_axes(dim: Sequence[int], ndim: int) -> Axes:
    """Return the axes in a list of dimensions; all axes if the list is empty."""
    return tuple(d % ndim for d in dim) if dim and ndim else tuple(range(ndim))


def _vector_norm(x: Array, p: float, axes: Axes) -> Array:
    """Return (Σ |x|^p)^(1/p), or its limit for p = 0 and p = ±∞; the reduced axes have size 1."""
    if p < 0 and slice_size(x, axes) == 0:
        raise ValueError(f"p is {p}, expected at least 0 because the slices are empty")
    if p == 0:
        return (x != 0).sum(axes, keepdims=True).astype(np.float64)
    if np.isinf(p):
        return np.asanyarray((np.max if p > 0 else np.min)(np.abs(x), axes, keepdims=True))
    powers = (np.abs(x) ** p).sum(axes, keepdims=True)
    return np.asanyarray(np.sqrt(powers) if p == 2 else powers ** (1 / p))


def _norm_slope(x: Array, norm: Array, p: float, axes: Axes) -> Array:
    """Return the derivatives of the norm of order p with respect to the elements of x.

    For the orders ±∞, all elements with the magnitude of the norm share the derivative, as in PyTorch.

    Args:
        x: The elements.
        norm: The norm along the axes, which have size 1.
        p: The order.
        axes: The axes of the norm.
    """
    if p == 0:
        return np.zeros(x.shape)
    if np.isinf(p):
        winners = (np.abs(x) == norm) | (np.isnan(x) & np.isnan(norm))
        signs = np.where(np.isnan(x), 0, np.sign(x))  # as in PyTorch
        return np.asanyarray(signs * winners / winners.sum(axes, keepdims=True))
    return np.where((x == 0) | (norm == 0), 0, np.sign(x) * (np.abs(x) / norm) ** (p - 1))


def _norm_result(x: Array, p: float, axes: Axes, keepdims: bool) -> Any:
    """Return the norm with its terms; for the orders 0 and ±∞, return it as `Exact`."""
    norm = _vector_norm(x, p, axes)
    terms = norm * norm_terms(np.abs(x), p, axes)
    norm, terms = (array if keepdims else array.squeeze(axes) for array in (norm, terms))
    return Exact(norm) if p == 0 or np.isinf(p) else WithTerms(norm, terms, signed=True)


@reference("diopiNorm")
def norm(input, p, dim, *, out):
    """Return the p-norm along the axes `dim`."""
    keepdims = out.shape is not None and len(out.shape) == input.ndim
    return _norm_result(input, p, _norm_axes(dim, input.ndim), keepdims)


@reference("diopiLinalgVecNorm")
def linalg_vec_norm(input, ord, dim, keepdim):
    """Return the norm of order `ord` along the axes `dim`."""
    return _norm_result(input, ord, _norm_axes(dim, input.ndim), keepdim)


@reference("diopiForeachnormScalar")
def foreachnorm_scalar(inputs, ord):
    """Return the norm of each tensor."""
    return [_norm_result(x, ord, _norm_axes((), x.ndim), False) for x in inputs]


@reference("diopiNormBackward")
def norm_backward(grad_output, self, norm, dim, p):
    """Return grad_output times the derivative of the p-norm; zeros of either sign for p = 0, as in PyTorch."""
    if p == 0:
        return WithTerms(np.zeros(self.shape), np.zeros(self.shape))
    axes = _norm_axes(dim, self.ndim)
    keepdims_shape = [1 if axis in axes else length for axis, length in enumerate(self.shape)]
    return np.asanyarray(grad_output.reshape(keepdims_shape) * _norm_slope(self, norm.reshape(keepdims_shape), p, axes))


@reference("diopiNormalize")
def normalize(input, p, axis, eps):
    """Return x / max(‖x‖_p, eps) along an axis."""
    axes = _norm_axes((axis,), input.ndim)
    r = _vector_norm(input, p, axes)
    normalized, terms = input / np.maximum(r, eps), np.where(r < eps, 0, norm_terms(np.abs(input), p, axes))
    return WithTerms(normalized, np.abs(normalized) * terms, signed=True)


@reference("diopiNormalizeBackward")
def normalize_backward(grad_output, input, p, axis, eps):
    """Return the gradient of the input of `normalize`."""
    axes = _norm_axes((axis,), input.ndim)
    r = _vector_norm(input, p, axes)
    projection = (grad_output * input).sum(axes, keepdims=True)
    slope = _norm_slope(input, r, p, axes)
    through_norm = slope * projection / r**2  # nearly cancels dy/r where dy is parallel to x
    through_norm = np.where(r < eps, 0, through_norm)
    direct = grad_output / np.maximum(r, eps)
    power = 0 if np.isinf(p) else p + 1  # dy/r falls like 1/r, the other addend like r^-(p + 1)
    norm_error = norm_terms(np.abs(input), p, axes) * np.abs(direct - power * through_norm)
    sum_error = SHARED_ERROR_SIGMAS * np.abs(slope) * sum_terms(grad_output * input, axes, keepdims=True) / r**2
    terms = np.abs(through_norm) + np.where(r < eps, 0, norm_error + sum_error)
    return WithTerms(direct - through_norm, terms)
